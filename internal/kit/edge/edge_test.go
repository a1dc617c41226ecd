package edge_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"connectrpc.com/connect/v2"

	"github.com/hearth-run/hearth/internal/kit/edge"
)

var (
	errStale = errors.New("registration is stale")
	table    = edge.Table{
		{Err: errStale, Code: connect.CodeFailedPrecondition, Reason: "REGISTRATION_STALE", Text: "this registration was replaced"},
	}
)

func TestTable(t *testing.T) {
	authored := connect.NewError(connect.CodeAborted, "mine")
	remote := connect.NewError(connect.CodeNotFound, "theirs").WithRemote()
	for _, tc := range []struct {
		name   string
		err    error
		code   connect.Code
		reason string
		text   string
	}{
		{"row", fmt.Errorf("invoke: %w", errStale), connect.CodeFailedPrecondition, "REGISTRATION_STALE", "this registration was replaced"},
		{"public text", edge.Publicf(errStale, "%q is old", "reg_1"), connect.CodeFailedPrecondition, "REGISTRATION_STALE", `"reg_1" is old`},
		{"canceled", context.Canceled, connect.CodeCanceled, "CANCELED", "the caller went away"},
		{"deadline", context.DeadlineExceeded, connect.CodeDeadlineExceeded, "DEADLINE_EXCEEDED", "the deadline passed"},
		{"authored", authored, connect.CodeAborted, "ABORTED", "mine"},
		{"a peer's verdict is not ours", remote, connect.CodeInternal, "INTERNAL", "internal error"},
		{"secret", errors.New("password is x"), connect.CodeInternal, "INTERNAL", "internal error"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got *connect.Error
			if !errors.As(table.Error(tc.err, map[string]string{edge.RunUID: "r1", "empty": ""}), &got) {
				t.Fatal("no connect error")
			}
			if got.Code() != tc.code || edge.Reason(got) != tc.reason || got.Message() != tc.text {
				t.Errorf("got %v %s %q, want %v %s %q", got.Code(), edge.Reason(got), got.Message(), tc.code, tc.reason, tc.text)
			}
			if got.IsRemote() {
				t.Error("the error is marked remote and would lose its code")
			}
			if _, there := edge.Info(got).GetMetadata()["empty"]; there {
				t.Error("empty metadata was kept")
			}
		})
	}
	if table.Error(nil, nil) != nil {
		t.Error("nil became an error")
	}
}

func TestRestateKeepsTheVerdict(t *testing.T) {
	peer := edge.New(connect.CodeResourceExhausted, "INVOCATION_ACTIVE", "busy", map[string]string{edge.RunUID: "r1"})
	var remote *connect.Error
	if !errors.As(peer, &remote) {
		t.Fatal("not a connect error")
	}
	got := edge.Restate(remote.WithRemote(), map[string]string{edge.InvocationID: "i1"})
	var local *connect.Error
	if !errors.As(got, &local) || local.IsRemote() || local.Code() != connect.CodeResourceExhausted || local.Message() != "busy" {
		t.Fatalf("restated as %v", got)
	}
	info := edge.Info(got)
	if info.GetReason() != "INVOCATION_ACTIVE" || info.GetMetadata()[edge.RunUID] != "r1" || info.GetMetadata()[edge.InvocationID] != "i1" {
		t.Errorf("info %v", info)
	}
}

type traced struct{ error }

func (traced) Debug() string               { return "line 3" }
func (traced) Metadata() map[string]string { return map[string]string{"type": "ValueError"} }

func TestDetails(t *testing.T) {
	got := table.Error(traced{errStale}, nil)
	if edge.Reason(got) != "INTERNAL" {
		t.Errorf("an embedded error is not a wrapped one, yet the row matched: %v", got)
	}
	if edge.DebugText(got) != "line 3" || edge.Info(got).GetMetadata()["type"] != "ValueError" {
		t.Errorf("details are missing: %v %v", edge.DebugText(got), edge.Info(got))
	}
}
