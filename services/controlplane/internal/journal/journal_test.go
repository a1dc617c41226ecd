package journal

import (
	"errors"
	"testing"
)

func TestJournal(t *testing.T) {
	j := New(10, 3)
	versions := func(after int64, limit int) (out []int64) {
		t.Helper()
		events, _, err := j.After(after, limit)
		if errors.Is(err, ErrCompacted) {
			return []int64{-1}
		}
		for _, e := range events {
			out = append(out, e.Version)
		}
		return out
	}
	expect := func(after int64, limit int, want ...int64) {
		t.Helper()
		got := versions(after, limit)
		if len(got) != len(want) {
			t.Fatalf("after %d: %v, want %v", after, got, want)
		}
		for i := range got {
			if got[i] != want[i] {
				t.Fatalf("after %d: %v, want %v", after, got, want)
			}
		}
	}
	expect(10, 9)
	expect(9, 9, -1)
	expect(11, 9, -1)
	_, changed, _ := j.After(10, 9)
	select {
	case <-changed:
		t.Fatal("nothing has changed")
	default:
	}
	j.Append([]Event{{Version: 11}, {Version: 12}})
	<-changed
	expect(10, 9, 11, 12)
	expect(10, 1, 11)
	expect(12, 9)
	for v := int64(13); v < 40; v++ {
		j.Append([]Event{{Version: v}})
		expect(v-3, 9, v-2, v-1, v)
		expect(v-2, 1, v-1)
		expect(v-4, 9, -1)
	}
}
