package runtimed_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"connectrpc.com/connect/v2"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	executorv1 "github.com/hearth-run/hearth/gen/executor/v1"
	"github.com/hearth-run/hearth/gen/executor/v1/executorv1connect"
	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/internal/kit/dial"
	"github.com/hearth-run/hearth/internal/kit/edge"
	"github.com/hearth-run/hearth/services/runtimed"
)

// child is set for a test process that is a runtimed; its value is the settings.
const child = "RUNTIMED_TEST_CHILD"

func TestMain(m *testing.M) {
	settings := os.Getenv(child)
	if settings == "" {
		goleak.VerifyTestMain(m)
		return
	}
	var p runtimed.Process
	if err := json.Unmarshal([]byte(settings), &p); err != nil {
		panic(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := p.Run(ctx, slog.New(slog.NewTextHandler(os.Stderr, nil))); err != nil {
		slog.Error("runtimed ended", "cause", err)
		os.Exit(1)
	}
}

// process is a runtimed as a process of its own, beside fakes on unix sockets.
type process struct {
	*house
	settings runtimed.Process
	cmd      *exec.Cmd
}

func startProcess(t *testing.T) *process {
	t.Helper()
	dir := t.TempDir()
	h := &house{t: t, control: newControlFake(), runtime: newRuntimeFake(), cfg: config(t)}
	h.control.lease = 600 * time.Millisecond
	p := &process{house: h}
	p.settings = runtimed.Process{
		Listen:        "unix:" + filepath.Join(dir, "node"),
		ControlPlane:  h.listen("unix:"+filepath.Join(dir, "control"), h.control),
		RuntimeServer: h.listen("unix:"+filepath.Join(dir, "runtime"), h.runtime),
		Config:        h.cfg,
	}
	p.settings.Advertise = ""
	dialer := dial.New(nil)
	t.Cleanup(dialer.Close)
	client, err := dialer.Client(p.settings.Listen)
	if err != nil {
		t.Fatal(err)
	}
	h.gateway = executorv1connect.NewFunctionRuntimeClient(client)
	p.launch()
	t.Cleanup(func() { p.kill(syscall.SIGKILL) })
	return p
}

func (p *process) launch() {
	p.t.Helper()
	settings, err := json.Marshal(p.settings)
	if err != nil {
		p.t.Fatal(err)
	}
	p.cmd = exec.Command(os.Args[0])
	p.cmd.Env = append(os.Environ(), child+"="+string(settings))
	p.cmd.Stderr = io.Discard
	if testing.Verbose() {
		p.cmd.Stderr = os.Stderr
	}
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
}

// kill ends the process with a signal and returns how it ended.
func (p *process) kill(sig syscall.Signal) *os.ProcessState {
	if p.cmd.ProcessState == nil {
		_ = p.cmd.Process.Signal(sig)
		_ = p.cmd.Wait()
	}
	return p.cmd.ProcessState
}

func (p *process) uid() string { return p.fence(0).NodeUID }

// After kill -9 the next process names its dead predecessor, takes up the
// registration that the Runtime Server still holds without loading it again, and
// undoes what nobody wants any more.
func TestKilled(t *testing.T) {
	p := startProcess(t)
	p.await("the node", func() bool { return p.control.node != nil })
	p.control.assign("kept", 1, function(), 0)
	p.control.assign("gone", 1, function(), 0)
	p.control.assign("task", 1, task(), 0)
	p.hear("kept#1 ready")
	p.hear("gone#1 ready")
	first := p.uid()
	p.awaitCall("execute task.1.node-a")
	// What a function wrote beside its code is still there for it.
	written := filepath.Join(p.cfg.Workspace, "kept", "written")
	if err := os.WriteFile(written, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	leftover := filepath.Join(p.cfg.Workspace, ".hearth-prepare-1")
	if err := os.Mkdir(leftover, 0o755); err != nil {
		t.Fatal(err)
	}
	p.kill(syscall.SIGKILL)
	p.control.edit(func() { delete(p.control.runs, "gone"); p.control.reports = nil })
	id := p.runtime.registrations["kept"].id
	p.launch()
	p.hear("kept#1 ready")
	p.awaitCall("unregister gone cancel=true")
	if got := p.control.predecessors; !slices.Equal(got, []string{"", first}) {
		t.Errorf("predecessors %q", got)
	}
	if got := p.runtime.registrations["kept"].id; got != id {
		t.Errorf("the registration was made anew: %s, then %s", id, got)
	}
	if _, err := p.call(t.Context(), "kept", p.fence(1), "x"); err != nil {
		t.Error(err)
	}
	p.runtime.set(func(f *runtimeFake) {
		f.tasks["task.1.node-a"].State = executorv1.ExecutionState_EXECUTION_STATE_SUCCEEDED
	})
	p.hear("task#1 finished 0")
	if exists(leftover) || !exists(written) {
		t.Errorf("swept: %v; the folder of a function that went on was kept: %v", !exists(leftover), exists(written))
	}
	if state := p.kill(syscall.SIGTERM); state.ExitCode() != 0 {
		t.Errorf("ended with %v", state)
	}
	p.nothingLeft()
	if exists(strings.TrimPrefix(p.settings.Listen, "unix:")) {
		t.Error("the socket is still there")
	}
}

// A process that was stopped for longer than its lease refuses the first call
// after it wakes, and its late reports are refused.
func TestStoppedAndContinued(t *testing.T) {
	p := startProcess(t)
	p.await("the node", func() bool { return p.control.node != nil })
	p.control.assign("run-1", 1, function(), 0)
	p.hear("run-1#1 ready")
	fence := p.fence(1)
	if _, err := p.call(t.Context(), "run-1", fence, ""); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	// A signal is not yet a stop: wait until every thread has taken notice.
	if err := unix.Waitid(unix.P_PID, p.cmd.Process.Pid, nil, unix.WSTOPPED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
	// The call waits in the socket while the lease runs out.
	answered := make(chan error, 1)
	go func() {
		_, err := p.call(context.WithoutCancel(t.Context()), "run-1", fence, "")
		answered <- err
	}()
	timer := time.NewTimer(2 * p.control.lease)
	<-timer.C
	p.control.edit(func() {
		p.control.runs["run-1"].Attempt, p.control.runs["run-1"].NodeUid = 2, "another"
		p.control.runs["run-1"].Action = hearthv1.AssignmentAction_ASSIGNMENT_ACTION_SERVE
	})
	p.runtime.asked()
	if err := p.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := <-answered; connect.CodeOf(err) != connect.CodeFailedPrecondition || edge.Reason(err) != "NODE_FENCED" {
		t.Errorf("the first call after the stop: %v", err)
	}
	p.await("another uid", func() bool { return p.control.node.GetUid() != fence.NodeUID })
	for _, call := range p.runtime.asked() {
		if strings.HasPrefix(call, "invoke") {
			t.Errorf("a stopped node invoked: %q", call)
		}
	}
	p.control.edit(func() { clear(p.control.runs) })
	if state := p.kill(syscall.SIGTERM); state.ExitCode() != 0 {
		t.Errorf("ended with %v", state)
	}
	p.nothingLeft()
}
