package runtimeserver_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect/v2"

	"github.com/hearth-run/hearth/adapters/runtimeserver"
	executorv1 "github.com/hearth-run/hearth/gen/executor/v1"
	"github.com/hearth-run/hearth/internal/kit/edge"
)

func TestInvoke(t *testing.T) {
	var seen runtimeserver.Call
	h := open(t, &fake{invoke: func(_ context.Context, call runtimeserver.Call) (runtimeserver.Result, error) {
		seen = call
		return runtimeserver.Result{Output: []byte("out"), ContentType: "a/b", Outputs: map[string]string{"k": "v"}}, nil
	}})
	before := time.Now()
	ref := h.ready("run", 1)
	status, err := h.status(ref)
	if err != nil || status.GetLastActivityUnixNano() < before.UnixNano() || status.GetInFlight() != 0 {
		t.Errorf("%v %v", status, err)
	}
	res, err := h.client.InvokeFunction(context.Background(), &executorv1.InvokeFunctionRequest{Registration: ref, Input: []byte("in"), ContentType: "c/d", InvocationId: "my id~", TimeoutMillis: 5000})
	if err != nil || string(res.GetOutput()) != "out" || res.GetContentType() != "a/b" || res.GetOutputs()["k"] != "v" || res.GetInvocationId() != "my id~" || res.GetRegistration().GetRegistrationId() != ref.GetRegistrationId() {
		t.Errorf("%v %v", res, err)
	}
	if string(seen.Input) != "in" || seen.ContentType != "c/d" || seen.InvocationID != "my id~" || time.Until(seen.Deadline) > 5*time.Second {
		t.Errorf("%+v", seen)
	}
	after, err := h.status(ref)
	if err != nil || after.GetLastActivityUnixNano() <= status.GetLastActivityUnixNano() {
		t.Errorf("%v %v", after, err)
	}
	res, err = h.invoke(ref)
	if err != nil || len(res.GetInvocationId()) != 26 {
		t.Errorf("a generated ID: %v %v", res, err)
	}
	if until := time.Until(seen.Deadline); until > 30*time.Second || until < 20*time.Second {
		t.Errorf("the default timeout ends in %s", until)
	}
}

func TestInvokeArguments(t *testing.T) {
	h := open(t, &fake{})
	ref := h.ready("run", 1)
	for name, change := range map[string]func(*executorv1.InvokeFunctionRequest){
		"negative timeout": func(r *executorv1.InvokeFunctionRequest) { r.TimeoutMillis = -1 },
		"long timeout":     func(r *executorv1.InvokeFunctionRequest) { r.TimeoutMillis = 900_001 },
		"long ID":          func(r *executorv1.InvokeFunctionRequest) { r.InvocationId = strings.Repeat("x", 129) },
		"multi-byte ID":    func(r *executorv1.InvokeFunctionRequest) { r.InvocationId = "é" },
		"input":            func(r *executorv1.InvokeFunctionRequest) { r.Input = make([]byte, 1<<20+1) },
	} {
		req := &executorv1.InvokeFunctionRequest{Registration: ref}
		change(req)
		_, err := h.client.InvokeFunction(context.Background(), req)
		wants(t, name, err, connect.CodeInvalidArgument, "INVALID_ARGUMENT")
	}
	for _, req := range []*executorv1.InvokeFunctionRequest{
		{Registration: ref, InvocationId: strings.Repeat("x", 128)}, {Registration: ref, Input: make([]byte, 1<<20)}, {Registration: ref, TimeoutMillis: 900_000},
	} {
		if _, err := h.client.InvokeFunction(context.Background(), req); err != nil {
			t.Error(err)
		}
	}
}

// Each error of a language is one row of the contract.
func TestErrorsOfLanguages(t *testing.T) {
	many := map[string]string{}
	for i := range 65 {
		many[fmt.Sprint(i)] = ""
	}
	large := map[string]string{}
	for i := range 9 {
		large[fmt.Sprint(i)] = strings.Repeat("x", 8000)
	}
	for name, tc := range map[string]struct {
		result runtimeserver.Result
		err    error
		code   connect.Code
		reason string
	}{
		"handler":        {err: &runtimeserver.HandlerError{Type: "ValueError", Message: "no\xff", Trace: strings.Repeat("é", 4000), ExitCode: 3}, code: connect.CodeInternal, reason: "HANDLER_ERROR"},
		"no text":        {err: &runtimeserver.HandlerError{Type: "AssertionError"}, code: connect.CodeInternal, reason: "HANDLER_ERROR"},
		"payload":        {err: edge.Publicf(runtimeserver.ErrPayload, "not JSON"), code: connect.CodeInvalidArgument, reason: "INVALID_ARGUMENT"},
		"too large":      {err: runtimeserver.ErrResponseTooLarge, code: connect.CodeResourceExhausted, reason: "RESPONSE_TOO_LARGE"},
		"output":         {result: runtimeserver.Result{Output: make([]byte, 1<<20+1)}, code: connect.CodeResourceExhausted, reason: "RESPONSE_TOO_LARGE"},
		"65 outputs":     {result: runtimeserver.Result{Outputs: many}, code: connect.CodeResourceExhausted, reason: "OUTPUTS_TOO_LARGE"},
		"outputs' sum":   {result: runtimeserver.Result{Outputs: large}, code: connect.CodeResourceExhausted, reason: "OUTPUTS_TOO_LARGE"},
		"outputs' UTF-8": {result: runtimeserver.Result{Outputs: map[string]string{"k": "\xff"}}, code: connect.CodeInternal, reason: "OUTPUTS_INVALID"},
		"unknown":        {err: errors.New("a secret"), code: connect.CodeInternal, reason: "INTERNAL"},
	} {
		t.Run(name, func(t *testing.T) {
			h := open(t, &fake{invoke: func(context.Context, runtimeserver.Call) (runtimeserver.Result, error) { return tc.result, tc.err }})
			ref := h.ready("run", 1)
			_, err := h.invoke(ref)
			wants(t, name, err, tc.code, tc.reason)
			if strings.Contains(err.Error(), "secret") || edge.Info(err).GetMetadata()["run_uid"] != "run" || edge.Info(err).GetMetadata()["invocation_id"] == "" {
				t.Errorf("%v %v", err, edge.Info(err))
			}
			if name == "handler" {
				meta, debug := edge.Info(err).GetMetadata(), edge.DebugText(err)
				if meta["type"] != "ValueError" || meta["exit_code"] != "3" || len(debug) > 4<<10 || !strings.HasSuffix(debug, "é") {
					t.Errorf("%v, %d bytes of trace", meta, len(debug))
				}
			}
			if name == "no text" && !strings.HasSuffix(err.Error(), "AssertionError") {
				t.Errorf("says nothing: %v", err)
			}
			if status, err := h.status(ref); err != nil || status.GetInFlight() != 0 || status.GetState() != executorv1.FunctionRegistrationState_FUNCTION_REGISTRATION_STATE_READY {
				t.Errorf("%v %v", status, err)
			}
		})
	}
}

// After a kill without a successor the registration is FAILED, and the call still
// tells why it ended.
func TestLostInstance(t *testing.T) {
	h := open(t, &fake{invoke: func(ctx context.Context, call runtimeserver.Call) (runtimeserver.Result, error) {
		<-ctx.Done()
		return runtimeserver.Result{}, errors.Join(context.Cause(ctx), &runtimeserver.LoadError{Text: "the disk is gone"})
	}})
	ref := h.ready("run", 1)
	_, err := h.client.InvokeFunction(context.Background(), &executorv1.InvokeFunctionRequest{Registration: ref, TimeoutMillis: 20})
	wants(t, "the call", err, connect.CodeDeadlineExceeded, "DEADLINE_EXCEEDED")
	status, err := h.status(ref)
	if err != nil || status.GetState() != executorv1.FunctionRegistrationState_FUNCTION_REGISTRATION_STATE_FAILED || status.GetFatalError() != "the disk is gone" {
		t.Errorf("%v %v", status, err)
	}
	_, err = h.invoke(ref)
	wants(t, "the next call", err, connect.CodeFailedPrecondition, "REGISTRATION_FAILED")
	if err := h.unregister(ref, false, 0); err != nil {
		t.Error(err)
	}
}

func TestEnvironment(t *testing.T) {
	h := open(t, &fake{}, func(c *runtimeserver.Config) { c.Path = "/p" })
	t.Setenv("SECRET", "x")
	req := h.request("run", 1, "a")
	req.Env = map[string]string{"A": "1", "LANG": "de", "PATH": "/mine"}
	if _, err := h.client.RegisterFunction(context.Background(), req); err != nil {
		t.Fatal(err)
	}
	f := h.language.last
	want := fmt.Sprintf("A=1 HEARTH_ATTEMPT=1 HEARTH_RUN_UID=run HOME=%s LANG=de PATH=/mine TMPDIR=%s TZ=UTC", f.Temp, f.Temp)
	if got := strings.Join(f.Env, " "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if f.Dir != h.dir("run") || f.RunUID != "run" || f.Attempt != 1 || !strings.HasPrefix(f.RegistrationID, "reg_") {
		t.Errorf("%+v", f)
	}
}

// Recycling puts a new instance in the old one's place between two calls, and
// never loses a call.
func TestRecycling(t *testing.T) {
	for name, change := range map[string]func(*runtimeserver.Config){
		"calls":  func(c *runtimeserver.Config) { c.RecycleCalls = 3 },
		"age":    func(c *runtimeserver.Config) { c.RecycleAge = time.Millisecond },
		"memory": func(c *runtimeserver.Config) { c.RecycleMemory = 1 },
	} {
		t.Run(name, func(t *testing.T) {
			h := open(t, &fake{}, change)
			ref := h.ready("run", 1)
			for h.language.loads.Load() < 4 {
				if _, err := h.invoke(ref); err != nil {
					t.Fatal(err)
				}
			}
			if err := h.unregister(ref, false, 0); err != nil {
				t.Error(err)
			}
			if n := h.language.live.Load(); n != 0 {
				t.Errorf("%d instances are left", n)
			}
		})
	}
}

// A replacement that cannot be loaded leaves the old instance in service.
func TestRecyclingFails(t *testing.T) {
	language := &fake{}
	language.load = func(context.Context, runtimeserver.Function) error {
		if language.loads.Load() > 1 {
			return &runtimeserver.LoadError{Text: "not again"}
		}
		return nil
	}
	h := open(t, language, func(c *runtimeserver.Config) { c.RecycleCalls = 2 })
	ref := h.ready("run", 1)
	for language.loads.Load() < 4 {
		if _, err := h.invoke(ref); err != nil {
			t.Fatal(err)
		}
	}
}
