package zygote_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hearth-run/hearth/sandbox"
	"github.com/hearth-run/hearth/sandbox/process"
	"github.com/hearth-run/hearth/services/worker/internal/zygote"
)

// childrenOf lists a process's children, zombies too.
func childrenOf(t testing.TB, pid int) []string {
	t.Helper()
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, thread := range threads {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, thread.Name())) // it may have ended
		all = append(all, strings.Fields(string(text))...)
	}
	return all
}

// TestKilledZygote: its containers and what grew from it live on, nothing enters it any
// more, and a new one grows in its place.
func TestKilledZygote(t *testing.T) {
	w := open(t, nil)
	z := w.grow(w.root, "decimal")
	grown := w.grow(z, "fractions")
	stdin, release, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	defer release.Close()
	c, err := w.enter(z, zygote.Begin{}, func(s *sandbox.Spec) { s.Stdin = stdin })
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.end() }()
	answer, err := c.ask("import os\ndef call():\n    os.read(0, 1)\n    return 'lived on'")
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(z.Facts().Pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-z.Ended()
	if _, err := w.enter(z, zygote.Begin{}, nil); !errors.Is(err, zygote.ErrEnded) {
		t.Errorf("entered from a dead zygote: %v", err)
	}
	if _, err := z.Grow(t.Context(), []string{"fractions"}); !errors.Is(err, zygote.ErrEnded) {
		t.Errorf("grew from a dead zygote: %v", err)
	}
	if f := z.Facts(); f.PrivateBytes != 0 || !slices.Equal(f.Modules, []string{"decimal"}) {
		t.Errorf("%+v", f)
	}
	for _, living := range []*zygote.Zygote{grown, w.grow(w.root, "decimal")} {
		if got := w.mustEnter(living, zygote.Begin{}).run(t, "import sys\ndef call(): return 'decimal' in sys.modules"); got != true {
			t.Errorf("%v", got)
		}
	}
	if _, err := release.WriteString("!"); err != nil {
		t.Fatal(err)
	}
	if got, err := answer(); got != "lived on" || err != nil {
		t.Errorf("%v, %v", got, err)
	}
	if got := c.run(t, "def call(): return 'and on'"); got != "and on" {
		t.Errorf("%v", got)
	}
	if exit := endAndWait(t, c); exit != (sandbox.Exit{}) {
		t.Errorf("%+v", exit)
	}
}

func endAndWait(t *testing.T, c *cell) sandbox.Exit {
	t.Helper()
	c.executor.Close()
	exit, err := c.Wait(t.Context())
	if err != nil {
		t.Error(err)
	}
	return exit
}

// TestExitIsTold: how an executor ended is its own wait status, since this process is
// its parent.
func TestExitIsTold(t *testing.T) {
	w := open(t, nil)
	for source, want := range map[string]sandbox.Exit{
		"import os\ndef call(): os._exit(7)":             {Code: 7},
		"import ctypes\ndef call(): ctypes.string_at(0)": {Code: -1, Signal: syscall.SIGSEGV},
		// The first process of a namespace gets no signal from within that it does not
		// handle; what abort does then is a fault.
		"import os\ndef call():\n    os.kill(os.getpid(), 9)\n    os._exit(8)": {Code: 8},
		"import os\ndef call(): os.abort()":                                    {Code: -1, Signal: syscall.SIGSEGV},
		"import sys\ndef call(): sys.exit(3)":                                  {}, // an answer; then the worker goes
	} {
		c := w.mustEnter(w.root, zygote.Begin{})
		answer, err := c.ask(source)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = answer()
		if got := endAndWait(t, c); got != want {
			t.Errorf("%s: %+v, want %+v", source, got, want)
		}
	}
}

// TestKilledWhileForking: a zygote is killed at any moment while calls enter from it and
// zygotes grow from it. Each call ends, with a container that works or an error; when
// all are destroyed, no process of any of them is left, zombies included.
func TestKilledWhileForking(t *testing.T) {
	w := open(t, nil)
	before := childrenOf(t, os.Getpid())
	for round := range 12 {
		z, err := w.root.Grow(t.Context(), []string{"decimal"})
		if err != nil {
			t.Fatal(err)
		}
		var wait sync.WaitGroup
		for range 4 {
			wait.Go(func() {
				for {
					c, err := w.enter(z, zygote.Begin{}, nil)
					if err != nil {
						return
					}
					if err := c.end(); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wait.Go(func() {
			for {
				grown, err := z.Grow(context.Background(), nil)
				if err != nil {
					return
				}
				if err := grown.Close(); err != nil {
					t.Error(err)
				}
			}
		})
		time.AfterFunc(time.Duration(rand.IntN(40))*time.Millisecond, func() {
			_ = syscall.Kill(z.Facts().Pid, syscall.SIGKILL)
		})
		wait.Wait()
		if err := z.Close(); err != nil {
			t.Error(err)
		}
		if now := childrenOf(t, os.Getpid()); len(now) != len(before) {
			t.Fatalf("round %d: children %v were %v", round, now, before)
		}
	}
	w.wantGroups(1) // the root's
}

// wantGroups counts the control groups that the driver has, of zygotes and containers.
func (w *ward) wantGroups(want int) {
	w.t.Helper()
	left, err := process.Leftovers(w.state)
	if err != nil {
		w.t.Fatal(err)
	}
	names := map[string]bool{}
	for _, path := range left {
		if name := filepath.Base(path); strings.HasPrefix(name, "zygote-") || strings.HasPrefix(name, "c") {
			names[name] = true
		}
	}
	delete(names, "cpu")
	delete(names, "cpuacct")
	if len(names) != want {
		w.t.Errorf("control groups %v, want %d", names, want)
	}
}
