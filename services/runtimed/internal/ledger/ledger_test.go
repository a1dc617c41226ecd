package ledger_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/hearth-run/hearth/services/runtimed/internal/ledger"
)

func open(t *testing.T, dir string) (*ledger.Ledger, string) {
	t.Helper()
	l, predecessor, err := ledger.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return l, predecessor
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func TestNextProcess(t *testing.T) {
	dir := t.TempDir()
	first, none := open(t, dir)
	if _, _, err := ledger.Open(dir); !errors.Is(err, ledger.ErrBusy) {
		t.Errorf("a second holder: %v", err)
	}
	must(t, first.SetUID("uid-1"),
		first.Put(ledger.Record{RunUID: "a", Attempt: 1}), first.Put(ledger.Record{RunUID: "b", Attempt: 1}),
		first.Put(ledger.Record{RunUID: "a", Attempt: 2, RegistrationID: "reg"}), first.Delete("b"), first.Delete("c"), first.Close())
	second, predecessor := open(t, dir)
	defer second.Close()
	r, ok := second.Get("a")
	if none != "" || predecessor != "uid-1" || !ok || r.Attempt != 2 || r.RegistrationID != "reg" || !slices.Equal(second.Runs(), []string{"a"}) {
		t.Errorf("found %q, %+v %v, %v", predecessor, r, ok, second.Runs())
	}
}

// The writer died in the middle of a line.
func TestCutOff(t *testing.T) {
	dir := t.TempDir()
	l, _ := open(t, dir)
	must(t, l.Put(ledger.Record{RunUID: "a", Attempt: 1}), l.Close())
	path := filepath.Join(dir, "runs.log")
	text, err := os.ReadFile(path)
	must(t, err, os.WriteFile(path, append(text, `{"run_uid":"b","atte`...), 0o600))
	l, _ = open(t, dir)
	must(t, l.Put(ledger.Record{RunUID: "c"}), l.Close())
	l, _ = open(t, dir)
	defer l.Close()
	if got := l.Runs(); !slices.Equal(got, []string{"a", "c"}) {
		t.Errorf("found %v", got)
	}
}

// The log does not grow with its history.
func TestCompact(t *testing.T) {
	dir := t.TempDir()
	l, _ := open(t, dir)
	for i := range 5000 {
		uid := fmt.Sprint(i)
		must(t, l.Put(ledger.Record{RunUID: uid}), l.Delete(uid))
	}
	must(t, l.Put(ledger.Record{RunUID: "kept"}))
	info, err := os.Stat(filepath.Join(dir, "runs.log"))
	must(t, err, l.Close())
	if info.Size() > 100_000 {
		t.Errorf("the log has %d bytes", info.Size())
	}
	l, _ = open(t, dir)
	defer l.Close()
	if got := l.Runs(); !slices.Equal(got, []string{"kept"}) {
		t.Errorf("found %v", got)
	}
}

// A process that is just being started has a copy of the lock's descriptor until its
// program begins: that keeps nobody out.
func TestLockIsGivenBack(t *testing.T) {
	dir := t.TempDir()
	l, _ := open(t, dir)
	entries, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	copied := false
	for _, e := range entries {
		if path, _ := os.Readlink("/proc/self/fd/" + e.Name()); path != filepath.Join(dir, "lock") {
			continue
		}
		number, err := strconv.Atoi(e.Name())
		must(t, err)
		kept, err := unix.Dup(number)
		must(t, err)
		defer unix.Close(kept)
		copied = true
	}
	if !copied {
		t.Fatal("the lock's descriptor was not found")
	}
	must(t, l.Close())
	l, _ = open(t, dir)
	must(t, l.Close())
}
