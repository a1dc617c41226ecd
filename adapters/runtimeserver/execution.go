package runtimeserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hearth-run/hearth/adapters/internal/process"
	"github.com/hearth-run/hearth/adapters/runtimeserver/internal/runlog"
	executorv1 "github.com/hearth-run/hearth/gen/executor/v1"
	"github.com/hearth-run/hearth/internal/kit/edge"
)

// grace is what lies between TERM and KILL.
const grace = 2 * time.Second

// Why an execution was ended from outside.
var (
	errCanceled = errors.New("the execution was canceled")
	errTimedOut = errors.New("the execution has timed out")
)

// execution is one one-shot execution. One goroutine (run) drives it.
type execution struct {
	server   *Server
	request  *executorv1.ExecuteRequest
	plan     plan
	accepted time.Time

	ctx    context.Context // done when it shall end
	cancel context.CancelCauseFunc
	log    *runlog.Log // of its Run; run's, nil where it is of none

	mu             sync.Mutex // guards the fields below
	state          executorv1.ExecutionState
	exitCode       int32
	message        string
	stdout, stderr keeper
}

func newExecution(s *Server, req *executorv1.ExecuteRequest, p plan) *execution {
	e := &execution{server: s, request: req, plan: p, accepted: time.Now(), state: executorv1.ExecutionState_EXECUTION_STATE_PENDING}
	e.ctx, e.cancel = context.WithCancelCause(context.Background())
	return e
}

// run drives the execution to its end.
func (e *execution) run() {
	defer e.cancel(nil)
	released := make(chan struct{})
	defer close(released)
	e.server.workers.Go(func() {
		select {
		case <-e.server.over:
			e.cancel(errStopping)
		case <-released:
		}
	})
	e.log = e.server.openLog(e.request.GetId())
	code, err := e.work()
	e.closeLog() // whoever hears of the end finds all of it
	e.finish(code, err)
}

// work runs the plan and leaves no process.
func (e *execution) work() (code int, err error) {
	group, err := e.server.keeper.Group("exec")
	if err != nil {
		return 1, err
	}
	temp, err := os.MkdirTemp(e.server.tempDir(), "exec-")
	defer func() {
		if e2 := errors.Join(group.Close(), os.RemoveAll(temp)); e2 != nil {
			e.server.log.Error("clean up after an execution", "execution_id", e.request.GetId(), "err", e2)
		}
	}()
	if err != nil {
		return 1, err
	}
	if e.plan.dir == "" {
		e.plan.dir = temp
	}
	hard, kill := context.WithCancelCause(context.Background())
	defer kill(nil)
	defer e.watch(group, kill)()
	e.set(executorv1.ExecutionState_EXECUTION_STATE_RUNNING)
	if e.plan.handler != "" {
		return e.callHandler(hard, group, temp)
	}
	return e.runCommand(hard, group, temp)
}

// watch ends the work in two steps when it is time. The function that it returns
// ends the watch.
func (e *execution) watch(group *process.Group, kill context.CancelCauseFunc) (stop func()) {
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		var late <-chan time.Time
		if e.plan.timeout > 0 {
			timer := time.NewTimer(e.plan.timeout)
			defer timer.Stop()
			late = timer.C
		}
		select {
		case <-over:
			return
		case <-late:
			e.cancel(errTimedOut)
		case <-e.ctx.Done():
		}
		if err := group.Signal(unix.SIGTERM); err != nil {
			e.server.log.Warn("ask an execution to end", "execution_id", e.request.GetId(), "err", err)
		}
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-over:
		case <-timer.C:
			kill(context.Cause(e.ctx))
		}
	}()
	return func() { close(over); <-done }
}

// outputs is the file that takes the execution's outputs. Its place is part of the
// contract: whoever prepared the working directory reads it after the end.
func (e *execution) outputs() string { return filepath.Join(e.plan.dir, ".hearth-outputs") }

// makeOutputs makes that file anew and empty, whatever the source has put there.
func (e *execution) makeOutputs() error {
	if err := os.RemoveAll(e.outputs()); err != nil {
		return err
	}
	file, err := os.OpenFile(e.outputs(), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return file.Close()
}

// environ is the environment of an execution.
func (e *execution) environ(temp string) []string {
	return e.server.cfg.environ(temp, e.request.GetEnv(), map[string]string{
		"HEARTH_RUN_UID": e.request.GetId(),
		"HEARTH_OUTPUTS": e.outputs(),
	})
}

// runCommand runs a process and waits for it; what it leaves is killed.
func (e *execution) runCommand(hard context.Context, group *process.Group, temp string) (int, error) {
	out, err := newStreamPipe()
	if err != nil {
		return 1, err
	}
	defer out.close()
	errs, err := newStreamPipe()
	if err != nil {
		return 1, err
	}
	defer errs.close()
	cmd := exec.Command(e.plan.command[0], e.plan.command[1:]...)
	cmd.Dir, cmd.Env = e.plan.dir, e.environ(temp)
	cmd.Stdout, cmd.Stderr = out.write, errs.write
	if err := e.makeOutputs(); err != nil {
		return 1, err
	}
	leader, err := group.Start(cmd)
	if err != nil {
		return 1, edge.Publicf(err, "%s could not be started: %s", filepath.Base(e.plan.command[0]), why(err))
	}
	out.copyTo(e.writer(Stdout))
	errs.copyTo(e.writer(Stderr))
	select {
	case <-leader.Done():
	case <-hard.Done():
	}
	if err := group.Kill(); err != nil {
		return 1, err
	}
	out.finish()
	errs.finish()
	return verdict(leader.State())
}

// verdict is the exit code of a process, 128 and the signal's number for one that
// a signal ended.
func verdict(state *os.ProcessState) (int, error) {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal()), edge.Publicf(ErrHandler, "ended by signal %d (%s)", status.Signal(), status.Signal())
	}
	if code := state.ExitCode(); code != 0 {
		return code, edge.Publicf(ErrHandler, "exited with status %d", code)
	}
	return 0, nil
}

// callHandler loads a function, calls it once and unloads it.
func (e *execution) callHandler(hard context.Context, group *process.Group, temp string) (int, error) {
	load, cancel := context.WithTimeoutCause(hard, e.server.cfg.LoadTimeout, &LoadError{Text: "loading took longer than " + e.server.cfg.LoadTimeout.String()})
	defer cancel()
	instance, err := e.server.language.Load(load, Function{
		RunUID: e.request.GetId(), Attempt: 1, Dir: e.plan.dir, Handler: e.plan.handler,
		Env: e.environ(temp), Processes: group, Temp: temp, Logs: e,
	})
	if err != nil {
		if load.Err() != nil {
			err = context.Cause(load)
		}
		return 1, err
	}
	input, err := json.Marshal(map[string][]string{"args": append([]string{}, e.request.GetArgs()...)})
	if err != nil {
		return 1, err
	}
	deadline, bounded := e.ctx.Deadline()
	if !bounded {
		deadline = time.Now().Add(365 * 24 * time.Hour)
	}
	result, err := checked(instance.Invoke(hard, Call{InvocationID: e.request.GetId(), Input: input, ContentType: "application/json", Deadline: deadline}))
	if closing := instance.Close(); closing != nil && err == nil {
		err = closing
	}
	if err != nil {
		if failed, ok := errors.AsType[*HandlerError](err); ok && failed.ExitCode != 0 {
			return failed.ExitCode, err
		}
		return 1, err
	}
	out := e.writer(Stdout)
	_, _ = out.Write(result.Output)
	_ = out.Close()
	return 0, nil
}

func (e *execution) set(state executorv1.ExecutionState) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.state = state
}

// finish writes the verdict.
func (e *execution) finish(code int, err error) {
	cause := context.Cause(e.ctx)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.exitCode = int32(code)
	e.state = executorv1.ExecutionState_EXECUTION_STATE_SUCCEEDED
	if err == nil && cause == nil {
		return
	}
	e.state = executorv1.ExecutionState_EXECUTION_STATE_FAILED
	e.message = clip(e.explain(cause, err), MaxFatalError)
}

// explain is the text for the client.
func (e *execution) explain(cause, err error) string {
	switch {
	case errors.Is(cause, errTimedOut):
		return fmt.Sprintf("timed out after %s", e.plan.timeout)
	case errors.Is(cause, errCanceled):
		return "canceled"
	case errors.Is(cause, errStopping):
		return "the Runtime Server was stopped"
	}
	if failed, ok := errors.AsType[*LoadError](err); ok {
		return failed.Text
	}
	if told, ok := errors.AsType[interface {
		error
		Public() string
	}](err); ok {
		return told.Public()
	}
	e.server.log.Error("execution failed", "execution_id", e.request.GetId(), "err", err)
	return "the Runtime Server could not run it: its log says why"
}

func (e *execution) over() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.state == executorv1.ExecutionState_EXECUTION_STATE_SUCCEEDED || e.state == executorv1.ExecutionState_EXECUTION_STATE_FAILED
}

func (e *execution) status(bound int) *executorv1.StatusResponse {
	e.mu.Lock()
	defer e.mu.Unlock()
	return &executorv1.StatusResponse{
		Id: e.request.GetId(), State: e.state, ExitCode: e.exitCode, ErrorMessage: e.message,
		Stdout: e.stdout.text(bound), Stderr: e.stderr.text(bound),
	}
}
