package runlog

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, cfg Config) (*Log, func() []Entry) {
	t.Helper()
	dir := t.TempDir()
	l := NewFolder(dir, 10).Open("run", cfg)
	t.Cleanup(func() {
		if err := l.Close(); err != nil || l.Err() != nil {
			t.Error(err, l.Err())
		}
	})
	return l, func() []Entry {
		entries, err := Read(dir, "run", 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		return entries
	}
}

func TestLinesAreEntries(t *testing.T) {
	l, read := open(t, Default())
	s := l.Stream("inv", "stderr")
	for _, piece := range []string{"one\ntw", "o", "\n\nthree \xff\"\\\t", "\x00"} {
		fmt.Fprint(s, piece)
	}
	l.Entry("inv", "logger", "error", "a message\nof two lines")
	s.Close()
	s.Close()
	fmt.Fprint(s, "late")
	var got []string
	for i, e := range read() {
		if e.Seq != uint64(i+1) || e.RunUID != "run" || e.InvocationID != "inv" || e.Time.IsZero() {
			t.Errorf("entry %+v", e)
		}
		got = append(got, e.Stream+" "+e.Level+" "+e.Message)
	}
	want := []string{"stderr info one", "stderr info two", "stderr info ", "logger error a message\nof two lines", "stderr info three \ufffd\"\\\t\x00"}
	if strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// 100 MiB in one line cost bounded memory and one entry.
func TestLongLine(t *testing.T) {
	l, read := open(t, Default())
	s := l.Stream("inv", "stderr")
	fmt.Fprint(s, "head ")
	chunk := bytes.Repeat([]byte("é"), 1<<19)
	for range 100 {
		s.Write(chunk)
	}
	fmt.Fprint(s, " tail\nnext\n")
	s.Close()
	entries := read()
	if len(entries) != 2 || entries[1].Message != "next" {
		t.Fatalf("%d entries", len(entries))
	}
	e := entries[0]
	if !strings.HasPrefix(e.Message, "head é") || !strings.HasSuffix(e.Message, "é tail") || len(e.Message) > 17<<10 ||
		!strings.Contains(e.Message, "bytes of this line were cut here]") || !utf8.ValidString(e.Message) || strings.Contains(e.Message, "\ufffd") {
		t.Errorf("%d bytes: %.40q … %q", len(e.Message), e.Message, e.Message[len(e.Message)-20:])
	}
	kept := int64(len(e.Message) - len(fmt.Sprintf("[hearth: %d bytes of this line were cut here]", e.CutBytes)))
	if kept+e.CutBytes != 100<<20+10 {
		t.Errorf("%d kept, %d cut", kept, e.CutBytes)
	}
}

// A flood keeps its first and its last lines, in order, with a mark between, and
// leaves the other stream's budget alone.
func TestBudgets(t *testing.T) {
	l, read := open(t, Config{FileBytes: 1 << 20, LineBytes: 1 << 10, StreamBytes: 4 << 10})
	out, err := l.Stream("inv", "stdout"), l.Stream("inv", "stderr")
	for i := range 100_000 {
		fmt.Fprintln(out, "line", i)
	}
	fmt.Fprintln(err, "fatal: this is why")
	out.Close()
	err.Close()
	var lines []string
	fatal, marks := false, 0
	for _, e := range read() {
		switch {
		case e.Stream == "stderr":
			fatal = e.Message == "fatal: this is why"
		case e.Level == LevelWarn:
			marks++
			if e.CutBytes == 0 || !strings.Contains(e.Message, "were cut here") {
				t.Errorf("mark %+v", e)
			}
			lines = append(lines, "mark")
		default:
			lines = append(lines, e.Message)
		}
	}
	if !fatal {
		t.Error("the fatal line on stderr is lost")
	}
	if marks != 1 || lines[0] != "line 0" || lines[len(lines)-1] != "line 99999" || len(lines) > 4<<10/32+2 {
		t.Errorf("%d lines, %d marks, first %q, last %q", len(lines), marks, lines[0], lines[len(lines)-1])
	}
}

func TestRotation(t *testing.T) {
	dir := t.TempDir()
	cfg := Config{FileBytes: 4 << 10, LineBytes: 1 << 10, StreamBytes: 1 << 20}
	for life := range 3 {
		l := NewFolder(dir, 10).Open("run", cfg)
		s := l.Stream("", "stdout")
		for i := range 200 {
			fmt.Fprintln(s, "life", life, "line", i)
		}
		s.Close()
		if err := l.Close(); err != nil || l.Err() != nil {
			t.Fatal(err, l.Err())
		}
	}
	for _, path := range []string{Path(dir, "run"), Path(dir, "run") + ".1"} {
		if info, err := os.Stat(path); err != nil || info.Size() > cfg.FileBytes {
			t.Errorf("%s: %v %v", path, info, err)
		}
	}
	entries, err := Read(dir, "run", 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range entries {
		if i > 0 && e.Seq != entries[i-1].Seq+1 {
			t.Errorf("seq %d after %d", e.Seq, entries[i-1].Seq)
		}
	}
	if last := entries[len(entries)-1]; last.Message != "life 2 line 199" || last.Seq != 600 {
		t.Errorf("last %+v", last)
	}
	if some, _ := Read(dir, "run", 598, 1); len(some) != 1 || some[0].Seq != 599 {
		t.Errorf("after 598: %+v", some)
	}
	if err := Remove(dir, "run"); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

// A log that cannot be written stops nobody.
func TestFullDisk(t *testing.T) {
	l := &Log{cfg: Default(), path: "/dev/full", runUID: "run"}
	if err := l.open(); err != nil {
		t.Fatalf("no /dev/full: %v", err)
	}
	s := l.Stream("", "stdout")
	for range 3 {
		if n, err := fmt.Fprintln(s, "x"); n != 2 || err != nil {
			t.Error(n, err)
		}
	}
	s.Close()
	if l.Err() == nil {
		t.Error("the failure was not kept")
	}
	l.Close()
}

func TestTrim(t *testing.T) {
	dir := t.TempDir()
	for i := range 5 {
		l := NewFolder(dir, 10).Open(fmt.Sprint("run", i), Default())
		l.Entry("", "logger", "info", "x")
		l.Close()
		at := time.Unix(int64(1000+i), 0)
		os.Chtimes(Path(dir, fmt.Sprint("run", i)), at, at)
	}
	if err := Trim(dir, 2); err != nil {
		t.Fatal(err)
	}
	left, _ := os.ReadDir(dir)
	if len(left) != 2 || left[0].Name() != "run3.jsonl" || left[1].Name() != "run4.jsonl" {
		t.Errorf("left %v", left)
	}
}

func TestFolderIsBounded(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "logs")
	folder := NewFolder(dir, 40)
	for i := range 100 {
		silent, loud := folder.Open("silent", Default()), folder.Open(fmt.Sprintf("run%03d", i), Default())
		loud.Entry("", "logger", "info", "x")
		for _, l := range []*Log{silent, loud} {
			if err := errors.Join(l.Err(), l.Close()); err != nil {
				t.Fatal(err)
			}
		}
		at := time.Unix(int64(1000+i), 0)
		if err := os.Chtimes(loud.path, at, at); err != nil {
			t.Fatal(err)
		}
		left, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		if len(left) > 40 || len(left) < min(i+1, 39) || left[len(left)-1].Name() != filepath.Base(loud.path) {
			t.Fatalf("after %d: %d logs, the last is %v", i+1, len(left), left[len(left)-1])
		}
	}
}
