package runtimeserver_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect/v2"

	"github.com/hearth-run/hearth/adapters/runtimeserver"
	executorv1 "github.com/hearth-run/hearth/gen/executor/v1"
	"github.com/hearth-run/hearth/internal/kit/edge"
)

// Fifty repeats at once are one load and one ID.
func TestRegisterIsIdempotent(t *testing.T) {
	gate := make(chan struct{})
	h := open(t, &fake{load: func(ctx context.Context, _ runtimeserver.Function) error { <-gate; return nil }})
	ids := make(chan string, 50)
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			res, err := h.register("run", 1, "a")
			if err != nil {
				t.Error(err)
			}
			ids <- res.GetRegistration().GetRegistrationId()
		})
	}
	close(gate)
	wg.Wait()
	first := <-ids
	for range 49 {
		if id := <-ids; id != first || !strings.HasPrefix(id, "reg_") {
			t.Errorf("%q and %q", id, first)
		}
	}
	if n := h.language.loads.Load(); n != 1 {
		t.Errorf("%d loads", n)
	}
}

// A register outlives its caller's deadline, and a repeat joins it.
func TestRegisterOutlivesItsCaller(t *testing.T) {
	gate := make(chan struct{})
	h := open(t, &fake{load: func(ctx context.Context, _ runtimeserver.Function) error {
		select {
		case <-gate:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}})
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
	defer cancel()
	_, err := h.client.RegisterFunction(ctx, h.request("run", 1, "a"))
	wants(t, "the first", err, connect.CodeDeadlineExceeded, edge.Reason(err))
	close(gate)
	h.ready("run", 1)
	if n := h.language.loads.Load(); n != 1 {
		t.Errorf("%d loads", n)
	}
}

func TestFence(t *testing.T) {
	h := open(t, &fake{})
	old := h.ready("run", 2)
	_, err := h.register("run", 2, "b")
	wants(t, "another digest", err, connect.CodeAlreadyExists, "REGISTRATION_DIGEST_MISMATCH")
	_, err = h.register("run", 1, "a")
	wants(t, "a lower attempt", err, connect.CodeFailedPrecondition, "REGISTRATION_ATTEMPT_STALE")
	current := h.ready("run", 3)
	if current.GetRegistrationId() == old.GetRegistrationId() {
		t.Error("the ID is the old one")
	}
	_, err = h.invoke(old)
	wants(t, "invoke with a stale ID", err, connect.CodeFailedPrecondition, "REGISTRATION_STALE")
	_, err = h.status(old)
	wants(t, "status of a stale ID", err, connect.CodeFailedPrecondition, "REGISTRATION_STALE")
	wants(t, "unregister of a stale ID", h.unregister(old, true, 0), connect.CodeFailedPrecondition, "REGISTRATION_STALE")
	if _, err := h.invoke(current); err != nil {
		t.Errorf("the current one: %v", err)
	}
	if err := h.unregister(current, false, 0); err != nil {
		t.Error(err)
	}
	if err := h.unregister(current, false, 0); err != nil {
		t.Errorf("unregister twice: %v", err)
	}
	_, err = h.register("run", 2, "a")
	wants(t, "a lower attempt after unregister", err, connect.CodeFailedPrecondition, "REGISTRATION_ATTEMPT_STALE")
	_, err = h.status(current)
	wants(t, "status after unregister", err, connect.CodeNotFound, "RUN_NOT_FOUND")
	_, err = h.invoke(current)
	wants(t, "invoke after unregister", err, connect.CodeNotFound, "RUN_NOT_FOUND")
	h.ready("run", 3)
	for _, ref := range []*executorv1.FunctionRegistration{{RunUid: "run"}} {
		_, err = h.invoke(ref)
		wants(t, "invoke without an ID", err, connect.CodeInvalidArgument, "INVALID_ARGUMENT")
		_, err = h.status(ref)
		wants(t, "status without an ID", err, connect.CodeInvalidArgument, "INVALID_ARGUMENT")
		wants(t, "unregister without an ID", h.unregister(ref, true, 0), connect.CodeInvalidArgument, "INVALID_ARGUMENT")
	}
}

// held starts a call that goes on until its context ends, and returns when it runs.
func held(t *testing.T) (*house, *executorv1.FunctionRegistration, chan error) {
	t.Helper()
	began := make(chan struct{}, 8)
	h := open(t, &fake{invoke: func(ctx context.Context, call runtimeserver.Call) (runtimeserver.Result, error) {
		began <- struct{}{}
		<-ctx.Done()
		return runtimeserver.Result{}, context.Cause(ctx)
	}})
	ref := h.ready("run", 1)
	done := make(chan error, 1)
	go func() {
		_, err := h.invoke(ref)
		done <- err
	}()
	<-began
	return h, ref, done
}

func TestHigherAttemptEndsTheInvocation(t *testing.T) {
	h, old, done := held(t)
	h.ready("run", 2)
	wants(t, "the old one's call", <-done, connect.CodeCanceled, "CANCELED")
	_, err := h.status(old)
	wants(t, "the old ID", err, connect.CodeFailedPrecondition, "REGISTRATION_STALE")
}

func TestOneInFlight(t *testing.T) {
	h, ref, done := held(t)
	_, err := h.invoke(ref)
	wants(t, "a second call", err, connect.CodeResourceExhausted, "INVOCATION_ACTIVE")
	res, err := h.status(ref)
	if err != nil || res.GetInFlight() != 1 || res.GetState() != executorv1.FunctionRegistrationState_FUNCTION_REGISTRATION_STATE_READY {
		t.Errorf("%v %v", res, err)
	}
	if err := h.unregister(ref, true, 0); err != nil {
		t.Error(err)
	}
	wants(t, "the call", <-done, connect.CodeCanceled, "CANCELED")
}

// A drain refuses new calls, shows itself, is joined by a second one, and gives
// up at its timeout.
func TestDrain(t *testing.T) {
	h, ref, done := held(t)
	unregistered := make(chan error, 2)
	go func() { unregistered <- h.unregister(ref, false, 300*time.Millisecond) }()
	for {
		res, err := h.status(ref)
		if err != nil {
			t.Fatal(err)
		}
		if res.GetState() == executorv1.FunctionRegistrationState_FUNCTION_REGISTRATION_STATE_DRAINING {
			break
		}
		time.Sleep(time.Millisecond)
	}
	_, err := h.invoke(ref)
	wants(t, "a call while draining", err, connect.CodeFailedPrecondition, "REGISTRATION_DRAINING")
	_, err = h.register("run", 1, "a")
	wants(t, "the same registration again", err, connect.CodeFailedPrecondition, "REGISTRATION_DRAINING")
	go func() { unregistered <- h.unregister(ref, false, 5*time.Minute) }()
	wants(t, "the call", <-done, connect.CodeCanceled, "CANCELED")
	for range 2 {
		if err := <-unregistered; err != nil {
			t.Error(err)
		}
	}
	wants(t, "a drain that is too long", h.unregister(ref, false, 5*time.Minute+time.Millisecond), connect.CodeInvalidArgument, "INVALID_ARGUMENT")
	wants(t, "a negative drain", h.unregister(ref, false, -time.Millisecond), connect.CodeInvalidArgument, "INVALID_ARGUMENT")
}

// The server's stop ends calls, loads and waits.
func TestStop(t *testing.T) {
	h, ref, done := held(t)
	h.stop()
	wants(t, "the call", <-done, connect.CodeUnavailable, "RUNTIME_UNAVAILABLE")
	_, err := h.register("other", 1, "a")
	wants(t, "a register", err, connect.CodeUnavailable, "RUNTIME_UNAVAILABLE")
	_, err = h.invoke(ref)
	wants(t, "an invoke", err, connect.CodeUnavailable, "RUNTIME_UNAVAILABLE")
	if left, _ := filepath.Glob(filepath.Join(h.workspace, ".hearth", "tmp*")); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

func TestLoadFailures(t *testing.T) {
	for name, tc := range map[string]struct {
		err   error
		fatal string
	}{
		"raised":  {&runtimeserver.LoadError{Text: "boom"}, "boom"},
		"long":    {&runtimeserver.LoadError{Text: strings.Repeat("é", 4000)}, "é"},
		"unknown": {errors.New("a secret"), "the Runtime Server could not start an instance: its log says why"},
	} {
		t.Run(name, func(t *testing.T) {
			h := open(t, &fake{load: func(context.Context, runtimeserver.Function) error { return tc.err }})
			for range 2 {
				res, err := h.register("run", 1, "a")
				if err != nil || res.GetState() != executorv1.FunctionRegistrationState_FUNCTION_REGISTRATION_STATE_FAILED {
					t.Fatalf("%v %v", res, err)
				}
				status, err := h.status(res.GetRegistration())
				if err != nil || !strings.HasPrefix(status.GetFatalError(), tc.fatal) || len(status.GetFatalError()) > 4<<10 || status.GetLastActivityUnixNano() != 0 {
					t.Errorf("%v %v", status, err)
				}
				_, err = h.invoke(res.GetRegistration())
				wants(t, "invoke", err, connect.CodeFailedPrecondition, "REGISTRATION_FAILED")
			}
			if n := h.language.loads.Load(); n != 1 {
				t.Errorf("%d loads", n)
			}
		})
	}
}

func TestLoadTimeout(t *testing.T) {
	h := open(t, &fake{load: func(ctx context.Context, _ runtimeserver.Function) error { <-ctx.Done(); return context.Cause(ctx) }},
		func(c *runtimeserver.Config) { c.LoadTimeout = 50 * time.Millisecond })
	res, err := h.register("run", 1, "a")
	if err != nil {
		t.Fatal(err)
	}
	status, err := h.status(res.GetRegistration())
	if err != nil || !strings.Contains(status.GetFatalError(), "longer than 50ms") {
		t.Errorf("%v %v", status, err)
	}
}

// What cannot be a handler leaves no registration behind; one that turns out so
// while it loads neither.
func TestInvalidHandlers(t *testing.T) {
	h := open(t, &fake{load: func(context.Context, runtimeserver.Function) error {
		return edge.Publicf(runtimeserver.ErrHandlerInvalid, "no such function")
	}})
	req := h.request("run", 1, "a")
	req.Handler = "bad"
	_, err := h.client.RegisterFunction(context.Background(), req)
	wants(t, "by form", err, connect.CodeInvalidArgument, "HANDLER_INVALID")
	if !strings.Contains(err.Error(), "bad is no handler") {
		t.Errorf("%v", err)
	}
	_, err = h.register("run", 1, "a")
	wants(t, "by load", err, connect.CodeInvalidArgument, "HANDLER_INVALID")
	_, err = h.status(&executorv1.FunctionRegistration{RunUid: "run", RegistrationId: "reg_x"})
	wants(t, "status", err, connect.CodeNotFound, "RUN_NOT_FOUND")
}

func TestInvalidArguments(t *testing.T) {
	h := open(t, &fake{})
	outside := t.TempDir()
	link := filepath.Join(h.workspace, "link")
	if err := errors.Join(os.Symlink(outside, link), os.WriteFile(filepath.Join(h.workspace, "file"), nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	big := map[string]string{}
	for _, name := range []string{"A", "B", "C", "D", "E"} {
		big[name] = strings.Repeat("x", 27<<10)
	}
	for name, change := range map[string]func(*executorv1.RegisterFunctionRequest){
		"relative":         func(r *executorv1.RegisterFunctionRequest) { r.WorkingDir = "run" },
		"missing":          func(r *executorv1.RegisterFunctionRequest) { r.WorkingDir += "/none" },
		"workspace itself": func(r *executorv1.RegisterFunctionRequest) { r.WorkingDir = h.workspace },
		"outside":          func(r *executorv1.RegisterFunctionRequest) { r.WorkingDir = outside },
		"by dots":          func(r *executorv1.RegisterFunctionRequest) { r.WorkingDir += "/../.." },
		"by link":          func(r *executorv1.RegisterFunctionRequest) { r.WorkingDir = link },
		"a file":           func(r *executorv1.RegisterFunctionRequest) { r.WorkingDir = h.workspace + "/file" },
		"the server's own": func(r *executorv1.RegisterFunctionRequest) { r.WorkingDir = h.workspace + "/.hearth/logs" },
		"nul":              func(r *executorv1.RegisterFunctionRequest) { r.WorkingDir += "\x00" },
		"attempt 0":        func(r *executorv1.RegisterFunctionRequest) { r.RegistrationAttempt = 0 },
		"negative attempt": func(r *executorv1.RegisterFunctionRequest) { r.RegistrationAttempt = -1 },
		"digest":           func(r *executorv1.RegisterFunctionRequest) { r.RegistrationDigest = digest("A") },
		"env sum":          func(r *executorv1.RegisterFunctionRequest) { r.Env = big },
		"env name":         func(r *executorv1.RegisterFunctionRequest) { r.Env = map[string]string{"1A": ""} },
		"env reserved":     func(r *executorv1.RegisterFunctionRequest) { r.Env = map[string]string{"HEARTH_X": ""} },
		"env nul":          func(r *executorv1.RegisterFunctionRequest) { r.Env = map[string]string{"A": "\x00"} },
		"idle timeout":     func(r *executorv1.RegisterFunctionRequest) { r.IdleTimeoutSeconds = -1 },
		"run uid":          func(r *executorv1.RegisterFunctionRequest) { r.RunUid = "../x" },
	} {
		req := h.request("run", 1, "a")
		change(req)
		_, err := h.client.RegisterFunction(context.Background(), req)
		wants(t, name, err, connect.CodeInvalidArgument, "INVALID_ARGUMENT")
	}
	if n := h.language.loads.Load(); n != 0 {
		t.Errorf("%d loads", n)
	}
}

func TestMaxRegistrations(t *testing.T) {
	h := open(t, &fake{}, func(c *runtimeserver.Config) { c.MaxRegistrations = 1 })
	ref := h.ready("one", 1)
	_, err := h.register("two", 1, "a")
	wants(t, "a second Run", err, connect.CodeUnavailable, "RUNTIME_UNAVAILABLE")
	h.ready("one", 2)
	_ = ref
}
