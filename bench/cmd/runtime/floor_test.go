package main

import (
	"bytes"
	"encoding/json"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestPayload(t *testing.T) {
	for _, size := range []int{16, 100, 1 << 20} {
		if p := payload(size); len(p) != size || !json.Valid(p) {
			t.Errorf("payload(%d) has %d bytes", size, len(p))
		}
	}
}

// The floors answer what the servers answer, call after call, and end.
func TestFloors(t *testing.T) {
	for language, e := range echoes {
		t.Run(language, func(t *testing.T) {
			dir := t.TempDir()
			folder, err := write(dir, language, e.file, e.code)
			if err != nil {
				t.Fatal(err)
			}
			floor, err := flags{Python: "python3"}.startFloor(language, folder, dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, size := range []int{100, 200 << 10, 16} {
				want := payload(size)
				if got, err := floor.Call(t.Context(), want); err != nil || !bytes.Equal(got, want) {
					t.Errorf("%d bytes came back as %d, %v", size, len(got), err)
				}
			}
			if err := floor.Stop(); err != nil {
				t.Error(err)
			}
		})
	}
}
