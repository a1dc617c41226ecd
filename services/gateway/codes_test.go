package gateway_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connectproto"
	"google.golang.org/genproto/googleapis/rpc/errdetails"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/gen/hearth/v1/hearthv1connect"
	"github.com/hearth-run/hearth/internal/kit/edge"
	"github.com/hearth-run/hearth/services/gateway"
)

// Every row of the table of codes, as a node says it and as an HTTP caller and a
// Connect caller see it.
func TestCodes(t *testing.T) {
	h := open(t, nil)
	h.tell(snapshot(ready("hello", "uid-1")))
	h.control.say(ready("hello", "uid-1"))
	rpc := h.rpc(t)
	for _, row := range []struct {
		code   connect.Code
		reason string
		status int
		// code and reason that the caller sees, where they differ
		asCode   connect.Code
		asReason string
	}{
		{code: connect.CodeInvalidArgument, reason: "INVALID_ARGUMENT", status: 400},
		{code: connect.CodeInvalidArgument, reason: "HANDLER_INVALID", status: 400},
		{code: connect.CodeNotFound, reason: "RUN_NOT_FOUND", status: 503, asCode: connect.CodeFailedPrecondition, asReason: "RUN_NOT_READY"},
		{code: connect.CodeAlreadyExists, reason: "REGISTRATION_DIGEST_MISMATCH", status: 500},
		{code: connect.CodeFailedPrecondition, reason: "REGISTRATION_STALE", status: 503},
		{code: connect.CodeFailedPrecondition, reason: "REGISTRATION_DRAINING", status: 503},
		{code: connect.CodeFailedPrecondition, reason: "REGISTRATION_FAILED", status: 503},
		{code: connect.CodeFailedPrecondition, reason: "REGISTRATION_NOT_READY", status: 503},
		{code: connect.CodeFailedPrecondition, reason: "REGISTRATION_ATTEMPT_STALE", status: 503},
		{code: connect.CodeFailedPrecondition, reason: "NODE_FENCED", status: 503},
		{code: connect.CodeResourceExhausted, reason: "INVOCATION_ACTIVE", status: 429},
		{code: connect.CodeDeadlineExceeded, reason: "DEADLINE_EXCEEDED", status: 504},
		{code: connect.CodeUnavailable, reason: "RUNTIME_UNAVAILABLE", status: 503},
		{code: connect.CodeUnimplemented, reason: "RUNTIME_UNSUPPORTED", status: 501},
		{code: connect.CodeCanceled, reason: "CANCELED", status: 499},
		{code: connect.CodeUnauthenticated, reason: "UNAUTHENTICATED", status: 401},
		{code: connect.CodePermissionDenied, reason: "PERMISSION_DENIED", status: 403},
		{code: connect.CodeInternal, reason: "HANDLER_ERROR", status: 502},
		{code: connect.CodeResourceExhausted, reason: "RESPONSE_TOO_LARGE", status: 502},
		{code: connect.CodeResourceExhausted, reason: "OUTPUTS_TOO_LARGE", status: 502},
		{code: connect.CodeInternal, reason: "OUTPUTS_INVALID", status: 502},
		{code: connect.CodeInternal, reason: "INTERNAL", status: 500},
		{code: connect.CodeUnknown, reason: "UNKNOWN", status: 500},
		{code: connect.CodeAborted, reason: "ABORTED", status: 500},
		{code: connect.CodeOutOfRange, reason: "OUT_OF_RANGE", status: 500},
		{code: connect.CodeDataLoss, reason: "DATA_LOSS", status: 500},
	} {
		t.Run(fmt.Sprintf("%s %s", row.code, row.reason), func(t *testing.T) {
			h.node.fails(edge.New(row.code, row.reason, "said by node-a", map[string]string{"exit_code": "3"}))
			wantCode, wantReason := row.code, row.reason
			if row.asReason != "" {
				wantCode, wantReason = row.asCode, row.asReason
			}
			got := h.post(t, helloPath, "{}", "Hearth-Invocation-Id", "inv-1")
			if got.status != row.status {
				t.Errorf("status %d, want %d: %s", got.status, row.status, got.body)
			}
			wantRetry := map[int]string{429: "1", 503: "1"}[row.status]
			if retry := got.header.Get("Retry-After"); retry != wantRetry {
				t.Errorf("Retry-After %q, want %q", retry, wantRetry)
			}
			fault := parse(t, got)
			if fault.Code != wantCode.String() || fault.reason() != wantReason {
				t.Errorf("body says %s %s, want %s %s", fault.Code, fault.reason(), wantCode, wantReason)
			}
			if meta := fault.Details[0].Debug.Metadata; meta["run_uid"] != "uid-1" || meta["invocation_id"] != "inv-1" {
				t.Errorf("metadata %v", meta)
			}
			if calls, _, _, _ := h.node.seen(); calls != 1 {
				t.Errorf("dispatched %d times", calls)
			}
			_, err := rpc.Invoke(t.Context(), &hearthv1.InvokeRequest{Name: "hello", Input: []byte("{}")})
			if connect.CodeOf(err) != wantCode || edge.Reason(err) != wantReason {
				t.Errorf("InvokeService says %v %s, want %v %s", connect.CodeOf(err), edge.Reason(err), wantCode, wantReason)
			}
		})
	}
}

// What a gateway says without a node, from its table alone.
func TestCodesOfTheTable(t *testing.T) {
	h := open(t, nil)
	task := ready("task", "uid-task")
	task.Function = false
	h.tell(snapshot(
		in(ready("pending", "u1"), hearthv1.RunPhase_RUN_PHASE_PENDING, hearthv1.RunReason_RUN_REASON_NO_NODE),
		in(ready("running", "u2"), hearthv1.RunPhase_RUN_PHASE_RUNNING, hearthv1.RunReason_RUN_REASON_PREPARING),
		in(ready("cancelled", "u3"), hearthv1.RunPhase_RUN_PHASE_CANCELLED, hearthv1.RunReason_RUN_REASON_CANCELLED),
		in(ready("idle", "u4"), hearthv1.RunPhase_RUN_PHASE_TIMEOUT, hearthv1.RunReason_RUN_REASON_IDLE_TIMEOUT),
		in(ready("failed", "u5"), hearthv1.RunPhase_RUN_PHASE_FAILED, hearthv1.RunReason_RUN_REASON_HANDLER_INVALID),
		task, ready("hello", "uid-1"),
	))
	for _, row := range []struct {
		path   string
		status int
		reason string
		says   string
	}{
		{"nobody:invoke", 404, "RUN_NOT_FOUND", "has no Run nobody that can be invoked"},
		{"hello/uid-0:invoke", 404, "RUN_NOT_FOUND", "another UID"},
		{"pending:invoke", 503, "RUN_NOT_READY", "PENDING, NO_NODE"},
		{"running:invoke", 503, "RUN_NOT_READY", "RUNNING, PREPARING"},
		{"cancelled:invoke", 404, "RUN_ENDED", "CANCELLED, CANCELLED"},
		{"idle:invoke", 404, "RUN_ENDED", "TIMEOUT, IDLE_TIMEOUT"},
		{"failed/u5:invoke", 404, "RUN_ENDED", "FAILED, HANDLER_INVALID"},
		{"task:invoke", 400, "RUN_NOT_FUNCTION", "cannot be invoked"},
		{"Hello:invoke", 400, "INVALID_ARGUMENT", "DNS-1123"},
		{"hello", 404, "NOT_FOUND", ":invoke"},
		{"hello/uid-1:fetch", 404, "NOT_FOUND", ":invoke"},
		{"hello:invoke", 200, "", ""},
		{"hello/uid-1:invoke", 200, "", ""},
	} {
		got := h.post(t, "/v1/namespaces/default/runs/"+row.path, "{}")
		if got.status != row.status {
			t.Errorf("%s: status %d, want %d: %s", row.path, got.status, row.status, got.body)
		}
		if row.reason == "" {
			continue
		}
		if fault := parse(t, got); fault.reason() != row.reason || !strings.Contains(fault.Message, row.says) {
			t.Errorf("%s: %s %q, want %s and %q", row.path, fault.reason(), fault.Message, row.reason, row.says)
		}
		if (got.header.Get("Retry-After") != "") != (row.status == 503) {
			t.Errorf("%s: Retry-After %q", row.path, got.header.Get("Retry-After"))
		}
	}
	if got := h.do(t, http.MethodGet, helloPath, nil); got.status != 405 || got.header.Get("Allow") == "" {
		t.Errorf("GET: %d %v", got.status, got.header)
	}
	if n := h.control.looked(); n != 0 {
		t.Errorf("the control plane was read %d times", n)
	}
}

// A Run that gets ready while its first caller is at the door is called, whatever
// its node has said of it before.
func TestSettle(t *testing.T) {
	for _, phase := range []hearthv1.RunPhase{hearthv1.RunPhase_RUN_PHASE_SCHEDULED, hearthv1.RunPhase_RUN_PHASE_RUNNING} {
		t.Run(phase.String(), func(t *testing.T) {
			h := open(t, func(c *gateway.Config) { c.Settle = time.Minute })
			h.tell(snapshot(in(ready("hello", "uid-1"), phase, hearthv1.RunReason_RUN_REASON_PREPARING)))
			first := make(chan answer)
			go func() { first <- h.post(t, helloPath, "{}") }()
			h.tell(&hearthv1.WatchRoutesResponse{Routes: []*hearthv1.Route{in(ready("other", "uid-2"), hearthv1.RunPhase_RUN_PHASE_PENDING, 0)}})
			h.tell(&hearthv1.WatchRoutesResponse{Routes: []*hearthv1.Route{ready("hello", "uid-1")}})
			if got := <-first; got.status != 200 {
				t.Errorf("%d %s", got.status, got.body)
			}
		})
	}
}

// A node that does not have the Run makes the gateway look once more.
func TestSecondLook(t *testing.T) {
	h := open(t, nil)
	h.tell(snapshot(ready("hello", "uid-1")))
	moved := ready("hello", "uid-1")
	moved.NodeUid = "node-b"
	for name, row := range map[string]struct {
		path   string
		now    *hearthv1.Route
		status int
		reason string
	}{
		"gone":            {helloPath, nil, 404, "RUN_NOT_FOUND"},
		"moved":           {helloPath, moved, 503, "RUN_NOT_READY"},
		"placed anew":     {helloPath, in(ready("hello", "uid-1"), hearthv1.RunPhase_RUN_PHASE_SCHEDULED, 0), 503, "RUN_NOT_READY"},
		"ended":           {helloPath, in(ready("hello", "uid-1"), hearthv1.RunPhase_RUN_PHASE_CANCELLED, 0), 404, "RUN_ENDED"},
		"successor":       {helloPath, ready("hello", "uid-2"), 503, "RUN_NOT_READY"},
		"fence and other": {strings.Replace(helloPath, ":", "/uid-1:", 1), ready("hello", "uid-2"), 404, "RUN_NOT_FOUND"},
	} {
		h.node.fails(edge.New(connect.CodeNotFound, "RUN_NOT_FOUND", "not here", nil))
		h.control.say(row.now)
		got := h.post(t, row.path, "{}")
		if fault := parse(t, got); got.status != row.status || fault.reason() != row.reason {
			t.Errorf("%s: %d %s, want %d %s", name, got.status, fault.reason(), row.status, row.reason)
		}
		if calls, _, _, _ := h.node.seen(); calls != 1 || h.control.looked() != 1 {
			t.Errorf("%s: dispatched %d times, looked %d times", name, calls, h.control.looked())
		}
	}
}

// A node that is giving a Run up makes the gateway look once more, too: its words
// stand only while the Run has not ended.
func TestReleased(t *testing.T) {
	h := open(t, nil)
	h.tell(snapshot(ready("hello", "uid-1")))
	for _, reason := range []string{"REGISTRATION_DRAINING", "NODE_FENCED"} {
		for name, row := range map[string]struct {
			now    *hearthv1.Route
			status int
			reason string
		}{
			"gone":        {nil, 404, "RUN_NOT_FOUND"},
			"ended":       {in(ready("hello", "uid-1"), hearthv1.RunPhase_RUN_PHASE_TIMEOUT, hearthv1.RunReason_RUN_REASON_IDLE_TIMEOUT), 404, "RUN_ENDED"},
			"not yet":     {ready("hello", "uid-1"), 503, reason},
			"placed anew": {in(ready("hello", "uid-1"), hearthv1.RunPhase_RUN_PHASE_SCHEDULED, 0), 503, reason},
		} {
			h.node.fails(edge.New(connect.CodeFailedPrecondition, reason, "given up", nil))
			h.control.say(row.now)
			got := h.post(t, helloPath, "{}")
			if fault := parse(t, got); got.status != row.status || fault.reason() != row.reason {
				t.Errorf("%s, %s: %d %s, want %d %s", reason, name, got.status, fault.reason(), row.status, row.reason)
			}
			if calls, _, _, _ := h.node.seen(); calls != 1 || h.control.looked() != 1 {
				t.Errorf("%s, %s: dispatched %d times, looked %d times", reason, name, calls, h.control.looked())
			}
		}
	}
}

// A handler's error reaches a curl user readable.
func TestHandlerError(t *testing.T) {
	h := open(t, nil)
	h.tell(snapshot(ready("hello", "uid-1")))
	trace, err := connectproto.NewErrorDetail(&errdetails.DebugInfo{Detail: "Traceback: line 3"})
	if err != nil {
		t.Fatal(err)
	}
	authored := edge.New(connect.CodeInternal, "HANDLER_ERROR", "ValueError: no", map[string]string{"type": "ValueError"}).(*connect.Error)
	h.node.fails(authored.WithDetail(trace))
	got := h.post(t, helloPath, "{}")
	fault := parse(t, got)
	if got.status != 502 || fault.Details[0].Debug.Metadata["type"] != "ValueError" || fault.Details[1].Debug.Detail != "Traceback: line 3" {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// fault is Connect's error JSON.
type fault struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Details []struct {
		Type  string `json:"type"`
		Debug struct {
			Reason   string            `json:"reason"`
			Domain   string            `json:"domain"`
			Metadata map[string]string `json:"metadata"`
			Detail   string            `json:"detail"`
		} `json:"debug"`
	} `json:"details"`
}

func (f fault) reason() string {
	if len(f.Details) == 0 || f.Details[0].Debug.Domain != edge.Domain {
		return "no ErrorInfo"
	}
	return f.Details[0].Debug.Reason
}

func parse(t *testing.T, got answer) fault {
	t.Helper()
	var f fault
	if err := json.Unmarshal([]byte(got.body), &f); err != nil || got.header.Get("Content-Type") != "application/json" {
		t.Fatalf("no error JSON in %d %s %q: %v", got.status, got.header.Get("Content-Type"), got.body, err)
	}
	if len(f.Details) == 0 {
		t.Fatalf("no details in %s", got.body)
	}
	return f
}

func (h *house) rpc(t *testing.T) hearthv1connect.InvokeServiceClient {
	t.Helper()
	client, err := h.dialer.Client(h.base)
	if err != nil {
		t.Fatal(err)
	}
	return hearthv1connect.NewInvokeServiceClient(client)
}
