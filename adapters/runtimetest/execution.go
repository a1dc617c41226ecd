package runtimetest

import (
	"context"
	"maps"
	"os"
	"path/filepath"

	executorv1 "github.com/hearth-run/hearth/gen/executor/v1"
)

const (
	execPending   = executorv1.ExecutionState_EXECUTION_STATE_PENDING
	execRunning   = executorv1.ExecutionState_EXECUTION_STATE_RUNNING
	execSucceeded = executorv1.ExecutionState_EXECUTION_STATE_SUCCEEDED
	execFailed    = executorv1.ExecutionState_EXECUTION_STATE_FAILED
)

// execution is one one-shot execution as the suite plays it.
type execution struct {
	*function // for its files
	req       *executorv1.ExecuteRequest
}

// execution prepares one and starts nothing.
func (t *T) execution(behaviour string) *execution {
	spec := t.target.Fixtures.Manifest.Executions[behaviour]
	dir := t.path(name("dir"))
	t.must(t.target.Fixtures.copyTo(dir))
	e := &execution{function: &function{t: t, dir: dir}, req: &executorv1.ExecuteRequest{
		Id:         name("execution"),
		Args:       spec.Args,
		WorkingDir: dir,
		Entrypoint: spec.Entrypoint,
		Handler:    spec.Handler,
	}}
	if spec.Script != "" {
		data, err := os.ReadFile(filepath.Join(dir, spec.Script))
		t.must(err)
		t.must(os.WriteFile(filepath.Join(dir, "script"), data, 0o755))
	}
	t.cleanups = append(t.cleanups, e.discard)
	return e
}

func (e *execution) with(env map[string]string) *execution {
	e.req.Env = maps.Clone(env)
	return e
}

func (e *execution) discard(ctx context.Context) {
	if _, err := e.t.base.Cancel(ctx, &executorv1.CancelRequest{Id: e.req.GetId()}); err == nil {
		_, _ = e.t.base.Forget(ctx, &executorv1.ForgetRequest{Id: e.req.GetId()})
	}
}

func (e *execution) execute() error {
	res, err := call(e.t, e.t.base.Execute, e.req)
	if err == nil {
		e.t.check(res.GetId() == e.req.GetId(), "the id "+e.req.GetId(), "%q", res.GetId())
	}
	return err
}

// start executes, which has to be accepted.
func (e *execution) start() *execution {
	e.t.ok(e.execute(), "Execute")
	return e
}

// held starts a holding execution and returns once it runs.
func (e *execution) held() *execution {
	e.start()
	e.t.eventually("the execution to run", func() bool { return e.there("started") })
	return e
}

func (e *execution) status() *executorv1.StatusResponse {
	res, err := call(e.t, e.t.base.Status, &executorv1.StatusRequest{Id: e.req.GetId()})
	e.t.ok(err, "Status")
	return res
}

// end waits until the execution has ended.
func (e *execution) end() *executorv1.StatusResponse {
	var last *executorv1.StatusResponse
	e.t.eventually("the execution to end", func() bool {
		last = e.status()
		return last.GetState() == execSucceeded || last.GetState() == execFailed
	})
	return last
}

// succeeds waits for the end, which has to be good.
func (e *execution) succeeds() *executorv1.StatusResponse {
	s := e.end()
	e.t.check(s.GetState() == execSucceeded && s.GetExitCode() == 0, "SUCCEEDED with exit code 0",
		"%v, exit code %d, %q, standard error %s", s.GetState(), s.GetExitCode(), s.GetErrorMessage(), clip([]byte(s.GetStderr())))
	return s
}

func (e *execution) cancel() error {
	_, err := call(e.t, e.t.base.Cancel, &executorv1.CancelRequest{Id: e.req.GetId()})
	return err
}

func (e *execution) forget() error {
	_, err := call(e.t, e.t.base.Forget, &executorv1.ForgetRequest{Id: e.req.GetId()})
	return err
}
