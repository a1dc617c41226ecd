package frame_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"testing"
	"testing/iotest"

	"github.com/hearth-run/hearth/pyrunner/frame"
)

func TestChunksPassThrough(t *testing.T) {
	var wire bytes.Buffer
	w := frame.NewChunkWriter(&wire)
	for _, piece := range []string{"hello ", "", "world"} {
		if _, err := io.WriteString(w, piece); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	const want = "0000000000000006" + "68656c6c6f20" + "0000000000000005" + "776f726c64" + "0000000000000000"
	if got := hex.EncodeToString(wire.Bytes()); got != want {
		t.Errorf("wire %s, want %s", got, want)
	}
	wire.WriteString("next")
	got, err := io.ReadAll(frame.NewChunkReader(iotest.OneByteReader(&wire)))
	if string(got) != "hello world" || err != nil {
		t.Errorf("read %q, %v", got, err)
	}
	if wire.String() != "next" {
		t.Errorf("the reader went beyond its message: %q is left", wire.String())
	}
}

func TestChunkBounds(t *testing.T) {
	for name, tc := range map[string]struct {
		wire string
		want error
	}{
		"nothing":               {"", frame.ErrTruncated},
		"half a length":         {"\x00\x00", frame.ErrTruncated},
		"end inside a chunk":    {"\x00\x00\x00\x00\x00\x00\x00\x05ab", frame.ErrTruncated},
		"no terminator":         {"\x00\x00\x00\x00\x00\x00\x00\x01a", frame.ErrTruncated},
		"a chunk over its most": {"\x00\x00\x00\x00\x04\x00\x00\x01", frame.ErrChunkTooLarge},
		"a negative length":     {"\xff\xff\xff\xff\xff\xff\xff\xff", frame.ErrChunkTooLarge},
	} {
		if _, err := io.ReadAll(frame.NewChunkReader(bytes.NewBufferString(tc.wire))); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", name, err, tc.want)
		}
	}
	if _, err := frame.NewChunkWriter(io.Discard).Write(make([]byte, frame.MaxChunk+1)); !errors.Is(err, frame.ErrChunkTooLarge) {
		t.Errorf("a chunk too large was written: %v", err)
	}
}
