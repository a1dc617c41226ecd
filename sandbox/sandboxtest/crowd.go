//go:build linux

package sandboxtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/hearth-run/hearth/sandbox"
)

// crowdTests: many at once, and many one after another.
var crowdTests = map[string]func(*testing.T, *suite){
	"HundredAtOnce": hundredAtOnce,
	"ManyLeaveFlat": manyLeaveFlat,
}

func hundredAtOnce(t *testing.T, s *suite) {
	d := s.open(t)
	var wait sync.WaitGroup
	for i := range 100 {
		wait.Go(func() {
			if err := once(t, d.Create, fmt.Sprintf("crowd-%d", i)); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
}

func manyLeaveFlat(t *testing.T, s *suite) {
	root := t.TempDir()
	d, err := s.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}()
	warm := func(n int) {
		for i := range n {
			if err := once(t, d.Create, fmt.Sprintf("flat-%d", i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	warm(10)
	before := takeCensus(t, s, root)
	lives := s.Lives
	if lives == 0 {
		lives = 500
	}
	warm(lives)
	if after := takeCensus(t, s, root); after != before {
		t.Errorf("before %+v, after %+v", before, after)
	}
}

type create = func(context.Context, sandbox.Spec) (sandbox.Container, error)

// once takes one container through its whole life.
func once(t *testing.T, create create, id string) error {
	spec := shell("exit 5")
	spec.ID = id
	c, err := create(patience(t), spec)
	if err != nil {
		return err
	}
	err = c.Start(patience(t))
	if err == nil {
		var exit sandbox.Exit
		exit, err = c.Wait(patience(t))
		if exit.Code != 5 {
			err = errors.Join(err, fmt.Errorf("%s: %+v", id, exit))
		}
	}
	return errors.Join(err, c.Destroy())
}

// census counts what could leak. Goroutines are the suite's TestMain's to check.
type census struct{ descriptors, mounts, left, children int }

func takeCensus(t *testing.T, s *suite, root string) census {
	t.Helper()
	left, err := s.Leftovers(root)
	if err != nil {
		t.Fatal(err)
	}
	return census{
		descriptors: entries(t, "/proc/self/fd"),
		mounts:      mounts(t, root),
		left:        len(left),
		children:    children(t),
	}
}

func entries(t *testing.T, dir string) int {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// mounts counts what a driver could have left in this namespace: other mounts come
// and go meanwhile.
func mounts(t *testing.T, root string) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(text), root) + strings.Count(string(text), " tmpfs scratch ")
}

// children counts this process's children, zombies too.
func children(t *testing.T) int {
	t.Helper()
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, thread := range threads {
		text, _ := os.ReadFile("/proc/self/task/" + thread.Name() + "/children") // a thread may have ended
		n += len(strings.Fields(string(text)))
	}
	return n
}
