package runtimed_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	executorv1 "github.com/hearth-run/hearth/gen/executor/v1"
	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
)

func task() *hearthv1.RunSpec {
	return &hearthv1.RunSpec{
		Runtime: "bash", Env: map[string]string{"A": "1"},
		Mode: &hearthv1.RunSpec_Task{Task: &hearthv1.TaskMode{Args: []string{"echo hello"}}},
	}
}

// A task's result is reported before it is forgotten, with its outputs.
func TestTask(t *testing.T) {
	story(t, func(t *testing.T, h *house) {
		h.runtime.execute = func(req *executorv1.ExecuteRequest) *executorv1.StatusResponse {
			outputs := filepath.Join(req.GetWorkingDir(), ".hearth-outputs")
			if err := os.WriteFile(outputs, []byte("answer=42\n"), 0o600); err != nil {
				t.Error(err)
			}
			return &executorv1.StatusResponse{State: executorv1.ExecutionState_EXECUTION_STATE_FAILED, ExitCode: 3, Stdout: "hello\n", Stderr: "oops"}
		}
		h.control.assign("run-1", 1, task(), 0)
		h.hear(`run-1#1 finished 3 "hello\n" map[answer:42]`)
		synctest.Wait()
		if got, want := h.runtime.asked(), []string{"execute run-1.1.node-a", "forget run-1.1.node-a"}; !slices.Equal(got, want) {
			t.Errorf("asked %q, want %q", got, want)
		}
		h.close()
	})
}

// The control plane is away when the task ends: its result waits to be heard.
func TestTaskResultWaits(t *testing.T) {
	story(t, func(t *testing.T, h *house) {
		h.control.assign("run-1", 1, task(), 0)
		h.hear("run-1#1 started")
		time.Sleep(time.Second)
		h.control.edit(func() { h.control.down = true })
		h.runtime.set(func(f *runtimeFake) {
			f.tasks["run-1.1.node-a"].State = executorv1.ExecutionState_EXECUTION_STATE_SUCCEEDED
		})
		time.Sleep(3 * time.Second)
		if calls := h.runtime.asked(); slices.Contains(calls, "forget run-1.1.node-a") {
			t.Errorf("forgotten before it was heard: %q", calls)
		}
		h.control.edit(func() { h.control.down = false })
		h.hear(`run-1#1 finished 0`)
		h.close()
	})
}

// A node whose Runtime Server was started anew with it does not run a task a second
// time in the same attempt: that one is lost.
func TestTaskIsNotRepeated(t *testing.T) {
	story(t, func(t *testing.T, h *house) {
		h.control.assign("run-1", 1, task(), 0)
		h.hear("run-1#1 started")
		time.Sleep(time.Second)
		// The lease ends while the control plane is away; the node comes back as another.
		h.control.edit(func() { h.control.down = true })
		h.runtime.set(func(f *runtimeFake) { clear(f.tasks); f.down = true })
		time.Sleep(2 * h.control.lease)
		h.runtime.set(func(f *runtimeFake) { f.down = false })
		h.control.edit(func() { h.control.down = false })
		h.hear("run-1#1 failed EXECUTION_LOST")
		calls := h.runtime.asked()
		if n := len(slices.DeleteFunc(calls, func(c string) bool { return c != "execute run-1.1.node-a" })); n != 1 {
			t.Errorf("executed %d times", n)
		}
		h.close()
	})
}

func TestTaskEnds(t *testing.T) {
	for name, tc := range map[string]struct {
		lifetime time.Duration
		end      func(h *house)
		report   string
		asked    string
	}{
		"cancel":   {0, func(h *house) { h.control.release("run-1", hearthv1.RunReason_RUN_REASON_CANCELLED) }, "run-1#1 released", "cancel run-1.1.node-a"},
		"lifetime": {5 * time.Second, func(*house) {}, "run-1#1 failed LIFETIME_EXCEEDED", "cancel run-1.1.node-a"},
		"lost": {0, func(h *house) {
			h.runtime.set(func(f *runtimeFake) { clear(f.tasks) })
		}, "run-1#1 failed EXECUTION_LOST", "forget run-1.1.node-a"},
		"unreachable": {0, func(h *house) {
			h.runtime.set(func(f *runtimeFake) { f.down = true })
			time.AfterFunc(15*time.Second, func() { h.runtime.set(func(f *runtimeFake) { f.down = false }) })
		}, "run-1#1 failed RUNTIME_UNAVAILABLE", "cancel run-1.1.node-a"},
	} {
		t.Run(name, func(t *testing.T) {
			story(t, func(t *testing.T, h *house) {
				h.control.assign("run-1", 1, task(), tc.lifetime)
				h.hear("run-1#1 started")
				time.Sleep(time.Second)
				tc.end(h)
				h.hear(tc.report)
				time.Sleep(20 * time.Second)
				if calls := h.runtime.asked(); !slices.Contains(calls, tc.asked) {
					t.Errorf("asked %q", calls)
				}
				h.close()
			})
		})
	}
}

// Outputs that break their bounds are said to, and do not take the exit code away.
func TestTaskOutputs(t *testing.T) {
	for name, tc := range map[string]struct {
		make func(path string) error
		want string
	}{
		"none":  {func(string) error { return nil }, `finished 0 "" map[] `},
		"line":  {func(p string) error { return os.WriteFile(p, []byte("no equals\n"), 0o600) }, "has no \"=\""},
		"key":   {func(p string) error { return os.WriteFile(p, []byte(strings.Repeat("k", 129)+"=v\n"), 0o600) }, "at most 128"},
		"value": {func(p string) error { return os.WriteFile(p, []byte("k="+strings.Repeat("v", 8193)+"\n"), 0o600) }, "at most 8192"},
		"huge":  {func(p string) error { return os.WriteFile(p, make([]byte, 1<<20), 0o600) }, "more than 65664 bytes"},
		"link":  {func(p string) error { return os.Symlink("/etc/passwd", p) }, "made a link"},
		"pipe":  {mkfifo, "no regular file"},
		"dir":   {func(p string) error { return os.Mkdir(p, 0o755) }, "no regular file"},
	} {
		t.Run(name, func(t *testing.T) {
			story(t, func(t *testing.T, h *house) {
				h.runtime.execute = func(req *executorv1.ExecuteRequest) *executorv1.StatusResponse {
					if err := tc.make(filepath.Join(req.GetWorkingDir(), ".hearth-outputs")); err != nil {
						t.Error(err)
					}
					return &executorv1.StatusResponse{State: executorv1.ExecutionState_EXECUTION_STATE_SUCCEEDED}
				}
				h.control.assign("run-1", 1, task(), 0)
				h.hear("run-1#1 finished 0")
				if got := h.control.reports[len(h.control.reports)-1]; !strings.Contains(got, tc.want) {
					t.Errorf("reported %q, want %q", got, tc.want)
				}
				h.close()
			})
		})
	}
}
