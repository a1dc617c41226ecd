package archive

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

func put(t *testing.T, s *Shelf, text string) string {
	t.Helper()
	u, err := s.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := u.Write([]byte("\x1f\x8b" + text)); err != nil {
		t.Fatal(err)
	}
	sum, _, err := u.Commit("")
	if err != nil {
		t.Fatal(err)
	}
	if err := u.End(); err != nil {
		t.Fatal(err)
	}
	return sum
}

// age makes an archive look as old as that.
func age(t *testing.T, s *Shelf, sum string, by time.Duration) {
	t.Helper()
	then := time.Now().Add(-by)
	if err := os.Chtimes(s.path(sum), then, then); err != nil {
		t.Fatal(err)
	}
}

// What is named, held or young stays.
func TestCollect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := Open(t.TempDir(), time.Hour, true)
		if err != nil {
			t.Fatal(err)
		}
		young, named, held, old := put(t, s, "young"), put(t, s, "named"), put(t, s, "held"), put(t, s, "old")
		release, err := s.Hold(held)
		if err != nil {
			t.Fatal(err)
		}
		for _, sum := range []string{named, held, old} {
			age(t, s, sum, time.Hour)
		}
		age(t, s, young, 59*time.Minute)
		collect := func(want int) {
			t.Helper()
			if n, err := s.Collect(func(sum string) bool { return sum == named }); err != nil || n != want {
				t.Errorf("collected %d, %v; want %d", n, err, want)
			}
		}
		collect(1)
		if _, err := s.Read(old); err != ErrNotFound {
			t.Errorf("the old one: %v", err)
		}
		if _, err := s.Hold(old); err != ErrNotFound {
			t.Errorf("the old one: %v", err)
		}
		release()
		collect(1)
		time.Sleep(2 * time.Minute)
		collect(1)
		// Its being named a moment ago counts, once it is named no more.
		if n, err := s.Collect(func(string) bool { return false }); err != nil || n != 0 {
			t.Errorf("collected %d, %v", n, err)
		}
		time.Sleep(time.Hour)
		if n, err := s.Collect(func(string) bool { return false }); err != nil || n != 1 {
			t.Errorf("collected %d, %v", n, err)
		}
	})
}

// A start sweeps what an upload left that a kill cut off.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, time.Hour, true)
	if err != nil {
		t.Fatal(err)
	}
	kept := put(t, s, "kept")
	u, err := s.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if err := u.file.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, time.Hour, true); err != nil {
		t.Fatal(err)
	}
	left, _ := filepath.Glob(filepath.Join(dir, "*"))
	hidden, _ := filepath.Glob(filepath.Join(dir, ".*"))
	if len(left) != 1 || filepath.Base(left[0]) != kept || len(hidden) != 0 {
		t.Errorf("left %v %v", left, hidden)
	}
}

// The bound is kept while the pieces come in, and leaves nothing.
func TestTooLarge(t *testing.T) {
	s, err := Open(t.TempDir(), time.Hour, false)
	if err != nil {
		t.Fatal(err)
	}
	u, err := s.Begin()
	if err != nil {
		t.Fatal(err)
	}
	piece := make([]byte, MaxSize/2)
	piece[0], piece[1] = 0x1f, 0x8b
	for range 2 {
		if _, err := u.Write(piece); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := u.Write(piece[:1]); err != ErrTooLarge {
		t.Errorf("one byte more: %v", err)
	}
	if err := u.End(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(s.dir); err != nil || len(left) != 0 {
		t.Errorf("left %v %v", left, err)
	}
}
