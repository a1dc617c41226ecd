package runtimed_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	executorv1 "github.com/hearth-run/hearth/gen/executor/v1"
)

const (
	running   = executorv1.ExecutionState_EXECUTION_STATE_RUNNING
	succeeded = executorv1.ExecutionState_EXECUTION_STATE_SUCCEEDED
)

// witnessed makes the Runtime Server's executions write a line each into a file of
// their folder, and an output.
func (h *house) witnessed(also func()) (executed func(run string) int) {
	h.runtime.execute = func(req *executorv1.ExecuteRequest) *executorv1.StatusResponse {
		witness, err := os.OpenFile(h.witness(filepath.Base(req.GetWorkingDir())), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = fmt.Fprintln(witness, req.GetId())
			witness.Close()
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(req.GetWorkingDir(), ".hearth-outputs"), []byte("answer=42\n"), 0o600)
		}
		if err != nil {
			h.t.Error(err)
		}
		also()
		return &executorv1.StatusResponse{State: running}
	}
	return func(run string) int {
		text, err := os.ReadFile(h.witness(run))
		if err != nil && !os.IsNotExist(err) {
			h.t.Error(err)
		}
		return strings.Count(string(text), "\n")
	}
}

func (h *house) witness(run string) string {
	return filepath.Join(filepath.Dir(h.cfg.Data), "witness-"+run)
}

// The ledger is lost between two lives of a node: its task is found by what the
// Runtime Server lists, not executed again, and keeps its folder. What has no
// assignment is ended and forgotten; what is others' is left alone.
func TestLedgerLost(t *testing.T) {
	p := startProcess(t)
	executed := p.witnessed(func() {})
	p.await("the node", func() bool { return p.control.node != nil })
	p.control.assign("task", 2, task(), 0)
	p.hear("task#2 started")
	p.awaitCall("execute task.2.node-a")
	p.kill(syscall.SIGKILL)
	if err := os.RemoveAll(p.cfg.Data); err != nil {
		t.Fatal(err)
	}
	others := []string{"ci-7", "gone.1", "gone.1.node-b", "gone.1.node-a.x", "gone.01.node-a", ".1.node-a"}
	p.runtime.holds(running, append(others, "gone.1.node-a", "task.1.node-a")...)
	p.runtime.holds(succeeded, "ended.3.node-a")
	p.launch()
	for _, id := range []string{"gone.1.node-a", "task.1.node-a", "ended.3.node-a"} {
		p.awaitForgotten(id)
	}
	p.runtime.holds(succeeded, "task.2.node-a")
	p.hear(`task#2 finished 0 "" map[answer:42]`)
	p.awaitCall("forget task.2.node-a")
	if n := executed("task"); n != 1 {
		t.Errorf("executed %d times", n)
	}
	if state := p.kill(syscall.SIGTERM); state.ExitCode() != 0 {
		t.Errorf("ended with %v", state)
	}
	slices.Sort(others)
	if left := p.runtime.held(); !slices.Equal(left, others) {
		t.Errorf("left on the Runtime Server: %q, want %q", left, others)
	}
	p.runtime.set(func(f *runtimeFake) { clear(f.tasks) })
	p.nothingLeft()
}

// A node dies after the Runtime Server has accepted an execution, and before it was
// told. The execution goes on; where the Runtime Server has died too, it is lost, and
// no second one is begun in its attempt.
func TestKilledWhileTaskBegins(t *testing.T) {
	for name, tc := range map[string]struct {
		report         string
		ledger, server bool
	}{
		"node":            {report: "task#1 finished 0"},
		"node and ledger": {report: "task#1 finished 0", ledger: true},
		"node and server": {report: "task#1 failed EXECUTION_LOST", server: true},
	} {
		t.Run(name, func(t *testing.T) {
			p := startProcess(t)
			var death sync.Once
			executed := p.witnessed(func() { death.Do(func() { p.kill(syscall.SIGKILL) }) })
			p.await("the node", func() bool { return p.control.node != nil })
			p.control.assign("task", 1, task(), 0)
			p.awaitCall("execute task.1.node-a")
			p.runtime.set(func(f *runtimeFake) {
				f.tasks["task.1.node-a"].State = succeeded
				if tc.server {
					clear(f.tasks)
				}
			})
			if tc.ledger {
				if err := os.RemoveAll(p.cfg.Data); err != nil {
					t.Fatal(err)
				}
			}
			p.launch()
			p.hear(tc.report)
			if n := executed("task"); n != 1 {
				t.Errorf("executed %d times", n)
			}
			if state := p.kill(syscall.SIGTERM); state.ExitCode() != 0 {
				t.Errorf("ended with %v", state)
			}
			p.nothingLeft()
		})
	}
}

// The Runtime Server is asked what it executes once at the start, and once more when
// it was away.
func TestRecoversAfterReconnect(t *testing.T) {
	story(t, func(t *testing.T, h *house) {
		h.control.assign("run-1", 2, task(), 0)
		h.hear("run-1#2 started")
		time.Sleep(time.Minute)
		h.runtime.set(func(f *runtimeFake) { f.down = true })
		time.Sleep(h.cfg.HealthInterval + time.Second)
		h.runtime.holds(running, "run-1.1.node-a", "run-9.1.node-a", "ci-7")
		h.runtime.set(func(f *runtimeFake) { f.down = false })
		time.Sleep(20 * time.Second)
		if held := h.runtime.held(); !slices.Equal(held, []string{"ci-7", "run-1.2.node-a"}) {
			t.Errorf("held %q", held)
		}
		h.runtime.set(func(f *runtimeFake) {
			if f.lists != 2 {
				t.Errorf("listed %d times, want 2", f.lists)
			}
			delete(f.tasks, "ci-7")
			f.tasks["run-1.2.node-a"].State = succeeded
		})
		h.hear("run-1#2 finished 0")
		synctest.Wait()
		h.close()
	})
}

// A release of what only the Runtime Server knows is reported when that has ended.
func TestReleaseOfWhatTheLedgerLost(t *testing.T) {
	story(t, func(t *testing.T, h *house) {
		h.close()
		h.runtime.holds(running, "run-1.1.node-a")
		h.start()
		h.control.assign("run-1", 1, task(), 0)
		h.control.release("run-1", 0)
		h.hear("run-1#1 released")
		if held := h.runtime.held(); len(held) > 0 {
			t.Errorf("held %q", held)
		}
		h.close()
	})
}

// A later attempt of a task begins when the earlier one has ended, and fails where
// that cannot be had.
func TestTaskIsSuperseded(t *testing.T) {
	story(t, func(t *testing.T, h *house) {
		h.control.assign("run-1", 1, task(), 0)
		h.hear("run-1#1 started")
		time.Sleep(time.Second)
		h.runtime.set(func(f *runtimeFake) { f.down = true })
		h.control.assign("run-1", 2, task(), 0)
		h.hear("run-1#2 failed RUNTIME_UNAVAILABLE")
		h.runtime.set(func(f *runtimeFake) { f.down = false })
		h.control.assign("run-1", 3, task(), 0)
		h.hear("run-1#3 started")
		time.Sleep(time.Minute)
		calls := h.runtime.asked()
		calls = slices.DeleteFunc(calls, func(c string) bool { return !strings.HasPrefix(c, "execute") })
		if want := []string{"execute run-1.1.node-a", "execute run-1.3.node-a"}; !slices.Equal(calls, want) {
			t.Errorf("asked %q, want %q", calls, want)
		}
		if held := h.runtime.held(); !slices.Equal(held, []string{"run-1.3.node-a"}) {
			t.Errorf("held %q", held)
		}
		h.close()
	})
}
