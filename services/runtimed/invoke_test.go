package runtimed_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect/v2"

	executorv1 "github.com/hearth-run/hearth/gen/executor/v1"
	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/internal/kit/edge"
	"github.com/hearth-run/hearth/internal/kit/hop"
)

type answerer = func(ctx context.Context, req *executorv1.InvokeFunctionRequest) (*executorv1.InvokeFunctionResponse, error)

func answers(res *executorv1.InvokeFunctionResponse) answerer {
	return func(context.Context, *executorv1.InvokeFunctionRequest) (*executorv1.InvokeFunctionResponse, error) {
		return res, nil
	}
}

func refuses(code connect.Code, reason string) answerer {
	return func(context.Context, *executorv1.InvokeFunctionRequest) (*executorv1.InvokeFunctionResponse, error) {
		return nil, edge.New(code, reason, "the verdict", map[string]string{"type": "ValueError"})
	}
}

// The Runtime Server's verdict passes on; its answer is held to its bounds.
func TestAnswers(t *testing.T) {
	big := strings.Repeat("x", 8<<10)
	many := map[string]string{}
	for i := range 9 {
		many[strings.Repeat("k", i+1)] = big
	}
	for name, tc := range map[string]struct {
		answer answerer
		code   connect.Code
		reason string
	}{
		"handler failed": {refuses(connect.CodeInternal, "HANDLER_ERROR"), connect.CodeInternal, "HANDLER_ERROR"},
		"active":         {refuses(connect.CodeResourceExhausted, "INVOCATION_ACTIVE"), connect.CodeResourceExhausted, "INVOCATION_ACTIVE"},
		"stale":          {refuses(connect.CodeFailedPrecondition, "REGISTRATION_STALE"), connect.CodeFailedPrecondition, "REGISTRATION_STALE"},
		"deadline":       {refuses(connect.CodeDeadlineExceeded, "DEADLINE_EXCEEDED"), connect.CodeDeadlineExceeded, "DEADLINE_EXCEEDED"},
		"output":         {answers(&executorv1.InvokeFunctionResponse{InvocationId: "i", Output: make([]byte, 1<<20+1)}), connect.CodeResourceExhausted, "RESPONSE_TOO_LARGE"},
		"outputs":        {answers(&executorv1.InvokeFunctionResponse{InvocationId: "i", Outputs: many}), connect.CodeResourceExhausted, "OUTPUTS_TOO_LARGE"},
		"outputs' key":   {answers(&executorv1.InvokeFunctionResponse{InvocationId: "i", Outputs: map[string]string{"": "x"}}), connect.CodeInternal, "OUTPUTS_INVALID"},
		"no id":          {answers(&executorv1.InvokeFunctionResponse{}), connect.CodeInternal, "INTERNAL"},
		"long id":        {answers(&executorv1.InvokeFunctionResponse{InvocationId: strings.Repeat("é", 65)}), connect.CodeInternal, "INTERNAL"},
	} {
		t.Run(name, func(t *testing.T) {
			story(t, func(t *testing.T, h *house) {
				h.control.assign("run-1", 1, function(), 0)
				h.hear("run-1#1 ready")
				h.runtime.set(func(f *runtimeFake) { f.invoke = tc.answer })
				_, err := h.call(t.Context(), "run-1", h.fence(1), "")
				meta := edge.Info(err).GetMetadata()
				if connect.CodeOf(err) != tc.code || edge.Reason(err) != tc.reason || meta["run_uid"] != "run-1" || meta["invocation_id"] != "inv" {
					t.Errorf("%v, reason %q, %v", err, edge.Reason(err), meta)
				}
				if tc.reason == "HANDLER_ERROR" && meta["type"] != "ValueError" {
					t.Errorf("the details did not pass: %v", meta)
				}
				h.runtime.set(func(f *runtimeFake) { f.invoke = nil })
				if _, err := h.call(t.Context(), "run-1", h.fence(1), ""); err != nil {
					t.Errorf("the next call: %v", err)
				}
				h.close()
			})
		})
	}
}

// What the caller may ask for on this hop.
func TestRequests(t *testing.T) {
	h := open(t)
	h.start()
	defer h.close()
	h.control.assign("run-1", 1, function(), 0)
	h.hear("run-1#1 ready")
	ask := func(change func(*executorv1.InvokeFunctionRequest), headers ...string) error {
		ctx, info := connect.NewClientContext(t.Context())
		for i := 0; i < len(headers); i += 2 {
			info.RequestHeader().Set(headers[i], headers[i+1])
		}
		req := &executorv1.InvokeFunctionRequest{Registration: &executorv1.FunctionRegistration{RunUid: "run-1"}}
		change(req)
		_, err := h.gateway.InvokeFunction(ctx, req)
		return err
	}
	same := func(*executorv1.InvokeFunctionRequest) {}
	for name, err := range map[string]error{
		"registration id": ask(func(r *executorv1.InvokeFunctionRequest) { r.Registration.RegistrationId = "reg_1" }),
		"input":           ask(func(r *executorv1.InvokeFunctionRequest) { r.Input = make([]byte, 1<<20+1) }),
		"invocation id":   ask(func(r *executorv1.InvokeFunctionRequest) { r.InvocationId = strings.Repeat("x", 129) }),
		"timeout":         ask(func(r *executorv1.InvokeFunctionRequest) { r.TimeoutMillis = -1 }),
		"long timeout":    ask(func(r *executorv1.InvokeFunctionRequest) { r.TimeoutMillis = 900_001 }),
		"attempt":         ask(same, hop.Attempt, "zero"),
		"no run":          ask(func(r *executorv1.InvokeFunctionRequest) { r.Registration = nil }),
	} {
		if connect.CodeOf(err) != connect.CodeInvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := ask(func(r *executorv1.InvokeFunctionRequest) { r.Input = make([]byte, 1<<20) }); err != nil {
		t.Errorf("1 MiB: %v", err)
	}
	_, register := h.gateway.RegisterFunction(t.Context(), &executorv1.RegisterFunctionRequest{
		RunUid: "x", RegistrationAttempt: 1, WorkingDir: "/", Handler: "a.b", RegistrationDigest: "sha256:" + strings.Repeat("0", 64)})
	ref := &executorv1.FunctionRegistration{RunUid: "run-1", RegistrationId: "reg_1"}
	_, status := h.gateway.FunctionStatus(t.Context(), &executorv1.FunctionStatusRequest{Registration: ref})
	_, unregister := h.gateway.UnregisterFunction(t.Context(), &executorv1.UnregisterFunctionRequest{Registration: ref})
	for _, err := range []error{register, status, unregister} {
		if connect.CodeOf(err) != connect.CodePermissionDenied || edge.Reason(err) != "METHOD_NOT_FOR_GATEWAYS" {
			t.Errorf("%v", err)
		}
	}
}

// The timeout that reaches the Runtime Server is the least of all bounds.
func TestTimeouts(t *testing.T) {
	story(t, func(t *testing.T, h *house) {
		h.control.assign("run-1", 1, function(), time.Hour)
		h.hear("run-1#1 ready")
		sent := func(ctx context.Context, millis int64) string {
			res, err := h.gateway.InvokeFunction(ctx, &executorv1.InvokeFunctionRequest{
				Registration: &executorv1.FunctionRegistration{RunUid: "run-1"}, TimeoutMillis: millis})
			if err != nil {
				t.Fatal(err)
			}
			return res.GetOutputs()["timeout"]
		}
		short, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		for _, got := range []struct{ sent, want string }{
			{sent(t.Context(), 0), "30000"}, {sent(t.Context(), 1), "1"}, {sent(t.Context(), 900_000), "900000"}, {sent(short, 0), "2000"},
		} {
			if got.sent != got.want {
				t.Errorf("sent %s ms, want %s", got.sent, got.want)
			}
		}
		time.Sleep(time.Hour - 10*time.Second)
		if got, err := strconv.Atoi(sent(t.Context(), 0)); err != nil || got > 10_000 || got < 5_000 {
			t.Errorf("sent %d ms with less than 10 s of the Run's lifetime left: %v", got, err)
		}
		h.close()
	})
}

// A call that runs when its Run is taken away: cut off, or left to end.
func TestTakenAway(t *testing.T) {
	for name, tc := range map[string]struct {
		away   func(h *house)
		reason string
	}{
		"cancelled": {func(h *house) { h.control.release("run-1", hearthv1.RunReason_RUN_REASON_CANCELLED) }, "INVOCATION_LOST"},
		"drained":   {func(h *house) { h.control.release("run-1", hearthv1.RunReason_RUN_REASON_NODE_DRAINED) }, ""},
		"fenced":    {func(h *house) { h.control.edit(func() { h.control.forgotten = true; clear(h.control.runs) }) }, "INVOCATION_LOST"},
	} {
		t.Run(name, func(t *testing.T) {
			story(t, func(t *testing.T, h *house) {
				h.control.assign("run-1", 1, function(), 0)
				h.hear("run-1#1 ready")
				entered := make(chan struct{})
				h.runtime.set(func(f *runtimeFake) {
					f.invoke = func(ctx context.Context, req *executorv1.InvokeFunctionRequest) (*executorv1.InvokeFunctionResponse, error) {
						close(entered)
						select {
						case <-ctx.Done():
							return nil, ctx.Err()
						case <-time.After(10 * time.Second):
							return &executorv1.InvokeFunctionResponse{InvocationId: "i"}, nil
						}
					}
				})
				answered := make(chan error, 1)
				fence := h.fence(1)
				go func() {
					_, err := h.call(context.Background(), "run-1", fence, "")
					answered <- err
				}()
				<-entered
				tc.away(h)
				if err := <-answered; edge.Reason(err) != tc.reason {
					t.Errorf("ended with %v", err)
				}
				synctest.Wait()
				h.close()
			})
		})
	}
}

// A caller that goes away is told nothing, and the call is not repeated.
func TestCallerGone(t *testing.T) {
	story(t, func(t *testing.T, h *house) {
		h.control.assign("run-1", 1, function(), 0)
		h.hear("run-1#1 ready")
		h.runtime.set(func(f *runtimeFake) {
			f.invoke = func(ctx context.Context, _ *executorv1.InvokeFunctionRequest) (*executorv1.InvokeFunctionResponse, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}
		})
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errors.New("gone"))
		defer cancel()
		if _, err := h.call(ctx, "run-1", h.fence(1), ""); connect.CodeOf(err) != connect.CodeDeadlineExceeded {
			t.Errorf("%v", err)
		}
		h.close()
	})
}
