package violator

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/proto"

	executorv1 "github.com/hearth-run/hearth/gen/executor/v1"
)

const (
	running   = executorv1.ExecutionState_EXECUTION_STATE_RUNNING
	succeeded = executorv1.ExecutionState_EXECUTION_STATE_SUCCEEDED
	ended     = executorv1.ExecutionState_EXECUTION_STATE_FAILED
)

// execution is one fake execution. Its program writes to the buffers before it
// returns; state and buffers are read under Runtime.mu after that.
type execution struct {
	r    *Runtime
	req  *executorv1.ExecuteRequest
	kill context.Context // done on KILL
	term chan struct{}   // closed on TERM
	done chan struct{}

	cancelKill context.CancelFunc

	// guarded by Runtime.mu
	state          executorv1.ExecutionState
	exit           int32
	message        string
	cancelled      bool
	stdout, stderr []byte
}

func newExecution(r *Runtime, req *executorv1.ExecuteRequest) *execution {
	e := &execution{r: r, req: proto.CloneOf(req), state: running, term: make(chan struct{}), done: make(chan struct{})}
	e.kill, e.cancelKill = context.WithCancel(r.ctx)
	return e
}

// program is a fake executable.
type program func(e *execution, out, err func(string)) int32

// program finds what the request asks to run.
func (r *Runtime) program(req *executorv1.ExecuteRequest) (program, error) {
	switch {
	case req.GetHandler() != "":
		return event, nil
	case req.GetEntrypoint() != "":
		inside := filepath.IsLocal(req.GetEntrypoint())
		if !inside && !r.is("runs-anything") {
			return nil, r.refuse(connect.CodeInvalidArgument, "INVALID_ARGUMENT", "", "", "entrypoint: leaves working_dir")
		}
		return named(filepath.Join(req.GetWorkingDir(), filepath.Base(req.GetEntrypoint()))), nil
	}
	script := filepath.Join(req.GetWorkingDir(), "script")
	if _, err := os.Stat(script); err == nil && !r.is("no-script") {
		return named(script), nil
	}
	if r.is("args-run-nothing") || len(req.GetArgs()) == 0 {
		return func(*execution, func(string), func(string)) int32 { return 0 }, nil
	}
	return programs()[req.GetArgs()[0]], nil
}

// named reads the name of a program from its file.
func named(file string) program {
	text, err := os.ReadFile(file)
	if p := programs()[strings.TrimSpace(strings.TrimPrefix(string(text), "run "))]; err == nil && p != nil {
		return p
	}
	return func(*execution, func(string), func(string)) int32 { return 127 }
}

// run runs the program to its end.
func (e *execution) run(p program) {
	var timer <-chan time.Time
	if limit := e.req.GetTimeoutSeconds(); limit > 0 && !e.r.is("no-execution-timeout") {
		t := time.NewTimer(time.Duration(limit) * time.Second)
		defer t.Stop()
		timer = t.C
	}
	var stdout, stderr strings.Builder
	out, err := func(s string) { stdout.WriteString(s) }, func(s string) { stderr.WriteString(s) }
	if e.r.is("mixes-streams") {
		err = out
	}
	exit := make(chan int32, 1)
	e.r.background(func() { exit <- p(e, out, err) })
	for {
		select {
		case code := <-exit:
			e.end(code, stdout.String(), stderr.String())
			return
		case <-timer:
			e.r.mu.Lock()
			e.stop("the timeout passed")
			e.r.mu.Unlock()
		}
	}
}

// stop sends TERM and, after the grace, KILL. The caller holds mu.
func (e *execution) stop(why string) {
	e.cancelled = true
	if e.state != running {
		if e.r.is("cancel-rewrites") {
			e.state = ended
		}
		return
	}
	if e.message == "" {
		e.message = why
		close(e.term)
		if e.r.is("kills-outright") {
			e.cancelKill()
		} else if !e.r.is("never-kills") {
			e.r.background(func() {
				e.r.await(e.kill, e.r.cfg.Grace)
				e.cancelKill()
			})
		}
	}
}

// end records how the program ended.
func (e *execution) end(code int32, stdout, stderr string) {
	e.r.mu.Lock()
	defer e.r.mu.Unlock()
	e.cancelKill()
	e.exit, e.state = code, succeeded
	if (code != 0 || e.message != "") && !e.r.is("exit-is-success") {
		e.state = ended
	}
	if e.r.is("killed-without-code") {
		e.exit = -1
	}
	e.stdout, e.stderr = e.bounded(stdout), e.bounded(stderr)
	for p := range e.r.processes {
		if p.token == e.req.GetEnv()["TOKEN"] && !e.r.is("kills-leader-only") {
			delete(e.r.processes, p)
		}
	}
	close(e.done)
}

const cut = "[cut]\n"

// bounded keeps the tail of a stream and marks where it was cut.
func (e *execution) bounded(s string) []byte {
	const limit = 1 << 20
	switch {
	case len(s) <= limit, e.r.is("output-unlimited"):
		return []byte(s)
	case e.r.is("cut-without-mark"):
		return []byte(s[len(s)-limit:])
	}
	return []byte(cut + s[len(s)-limit+len(cut):])
}

func (e *execution) status() *executorv1.StatusResponse {
	return &executorv1.StatusResponse{
		Id: e.req.GetId(), State: e.state, ExitCode: e.exit, ErrorMessage: e.message,
		Stdout: string(slices.Clone(e.stdout)), Stderr: string(slices.Clone(e.stderr)),
	}
}
