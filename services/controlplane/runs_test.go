package controlplane_test

import (
	"fmt"
	"testing"

	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/proto"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
)

const (
	pending   = hearthv1.RunPhase_RUN_PHASE_PENDING
	scheduled = hearthv1.RunPhase_RUN_PHASE_SCHEDULED
	running   = hearthv1.RunPhase_RUN_PHASE_RUNNING
	serving   = hearthv1.RunPhase_RUN_PHASE_READY
	succeeded = hearthv1.RunPhase_RUN_PHASE_SUCCEEDED
	failing   = hearthv1.RunPhase_RUN_PHASE_FAILED
	cancelled = hearthv1.RunPhase_RUN_PHASE_CANCELLED
)

// A function from its creation to its removal, as its user and its node see it.
func TestFunction(t *testing.T) {
	twice(t, func(t *testing.T, h *house) {
		h.create("f", function())
		h.phase("f", pending, hearthv1.RunReason_RUN_REASON_NO_NODE)
		n := h.node("n1")
		defer n.end()
		a := n.serve()
		if a.GetAttempt() != 1 || a.GetNodeUid() != "n1" || !proto.Equal(a.GetSpec(), function()) {
			t.Errorf("assignment %v", a)
		}
		h.report(started(a))
		h.phase("f", running, hearthv1.RunReason_RUN_REASON_PREPARING)
		h.report(ready(a))
		h.report(ready(a))
		r := h.phase("f", serving, hearthv1.RunReason_RUN_REASON_READY)
		if s := r.GetStatus(); s.GetEndpoint() != "http://n1" || s.GetSourceIdentity() != "id" || s.GetReadyTime() == nil ||
			!s.GetConditions()[0].GetStatus() || !s.GetConditions()[1].GetStatus() {
			t.Errorf("status %v", s)
		}
		if got := h.get("f"); !proto.Equal(got.GetSpec(), function()) {
			t.Errorf("the spec came back as %v", got.GetSpec())
		}
		for range 2 {
			res, err := h.runs.CancelRun(h.ctx, &hearthv1.CancelRunRequest{Name: "f"})
			if err != nil || !res.GetRun().GetSpec().GetCancelRequested() || res.GetRun().GetStatus().GetPhase() != running {
				t.Fatalf("cancel: %v %v", res, err)
			}
		}
		if a := n.release(); a.GetReason() != hearthv1.RunReason_RUN_REASON_CANCELLED || a.GetSpec() != nil {
			t.Errorf("release %v", a)
		}
		h.report(released(a))
		h.report(released(a))
		h.phase("f", cancelled, hearthv1.RunReason_RUN_REASON_CANCELLED)
		if _, err := h.runs.DeleteRun(h.ctx, &hearthv1.DeleteRunRequest{Name: "f", Uid: a.GetRunUid()}); err != nil {
			t.Error(err)
		}
		_, err := h.runs.GetRun(h.ctx, &hearthv1.GetRunRequest{Name: "f"})
		refused(t, "get", err, connect.CodeNotFound, "RUN_NOT_FOUND")
	})
}

func TestDeleteWhileServed(t *testing.T) {
	twice(t, func(t *testing.T, h *house) {
		n := h.node("n1")
		defer n.end()
		h.create("f", function())
		a := n.serve()
		h.report(ready(a))
		for range 2 {
			res, err := h.runs.DeleteRun(h.ctx, &hearthv1.DeleteRunRequest{Name: "f"})
			if err != nil || res.GetRun().GetDeleteTime() == nil {
				t.Fatalf("delete: %v %v", res, err)
			}
		}
		n.release()
		if got := h.get("f"); got.GetStatus().GetPhase() != running {
			t.Errorf("before the release: %v", got.GetStatus())
		}
		h.report(released(a))
		_, err := h.runs.DeleteRun(h.ctx, &hearthv1.DeleteRunRequest{Name: "f"})
		refused(t, "delete", err, connect.CodeNotFound, "RUN_NOT_FOUND")
		_, err = h.nodes.ReportAssignment(h.ctx, released(a))
		refused(t, "report", err, connect.CodeNotFound, "RUN_NOT_FOUND")
		if again := h.create("f", function()); again.GetUid() == a.GetRunUid() {
			t.Error("the uid was used again")
		}
	})
}

func TestTask(t *testing.T) {
	twice(t, func(t *testing.T, h *house) {
		n := h.node("n1")
		defer n.end()
		h.create("t", task())
		a := n.serve()
		finished := report(a)
		finished.Report = &hearthv1.ReportAssignmentRequest_Finished{Finished: &hearthv1.TaskFinished{
			Stdout: "1\n", Stderr: "e", Outputs: map[string]string{"k": "v"},
		}}
		h.report(started(a))
		h.report(finished)
		h.report(finished)
		r := h.phase("t", succeeded, hearthv1.RunReason_RUN_REASON_COMPLETED)
		if r.GetStatus().GetStdout() != "" {
			t.Error("a watch carries stdout")
		}
		s := h.get("t").GetStatus()
		if s.GetStdout() != "1\n" || s.GetStderr() != "e" || s.GetOutputs()["k"] != "v" || s.ExitCode == nil || s.GetExitCode() != 0 {
			t.Errorf("status %v", s)
		}
	})
}

func TestNames(t *testing.T) {
	twice(t, func(t *testing.T, h *house) {
		first := h.create("f", function())
		_, err := h.runs.CreateRun(h.ctx, &hearthv1.CreateRunRequest{Namespace: "default", Name: "f", Spec: function()})
		refused(t, "taken", err, connect.CodeAlreadyExists, "RUN_EXISTS")
		if _, err := h.runs.CreateRun(h.ctx, &hearthv1.CreateRunRequest{Namespace: "other", Name: "f", Spec: function()}); err != nil {
			t.Error(err)
		}
		_, err = h.runs.GetRun(h.ctx, &hearthv1.GetRunRequest{Name: "f", Uid: "another"})
		refused(t, "fence", err, connect.CodeNotFound, "RUN_NOT_FOUND")
		_, err = h.runs.CancelRun(h.ctx, &hearthv1.CancelRunRequest{Name: "f", Uid: "another"})
		refused(t, "fence", err, connect.CodeNotFound, "RUN_NOT_FOUND")
		_, err = h.runs.DeleteRun(h.ctx, &hearthv1.DeleteRunRequest{Name: "f", Uid: "another"})
		refused(t, "fence", err, connect.CodeNotFound, "RUN_NOT_FOUND")
		if got := h.get("f"); got.GetUid() != first.GetUid() {
			t.Error("another Run")
		}
		for _, name := range []string{"", "F", "a_b", "-a", "a-", "ä"} {
			_, err := h.runs.CreateRun(h.ctx, &hearthv1.CreateRunRequest{Name: name, Spec: function()})
			refused(t, name, err, connect.CodeInvalidArgument, "INVALID_ARGUMENT")
		}
	})
}

func TestListPages(t *testing.T) {
	twice(t, func(t *testing.T, h *house) {
		for i := range 7 {
			spec := function()
			if i%2 == 1 {
				spec.Runtime = "bash"
			}
			h.create(fmt.Sprintf("f%d", i), spec)
		}
		list := func(size int32, token string, f *hearthv1.RunFilter) (names string, next string) {
			t.Helper()
			res, err := h.runs.ListRuns(h.ctx, &hearthv1.ListRunsRequest{PageSize: size, PageToken: token, Filter: f})
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range res.GetRuns() {
				names += r.GetName() + " "
				if r.GetSpec().GetSource().GetInline().GetFiles()[0].GetText() != "" {
					t.Error("a list carries contents")
				}
			}
			return names, res.GetNextPageToken()
		}
		names, next := list(3, "", nil)
		if names != "f0 f1 f2 " || next == "" {
			t.Errorf("%q %q", names, next)
		}
		// What goes and comes before the cursor, and the cursor's own Run, move nothing.
		for _, name := range []string{"f0", "f2"} {
			if _, err := h.runs.DeleteRun(h.ctx, &hearthv1.DeleteRunRequest{Name: name}); err != nil {
				t.Fatal(err)
			}
		}
		h.create("a", function())
		h.create("f3a", function())
		if names, next = list(3, next, nil); names != "f3 f3a f4 " || next == "" {
			t.Errorf("%q %q", names, next)
		}
		if names, next = list(3, next, nil); names != "f5 f6 " || next != "" {
			t.Errorf("%q %q", names, next)
		}
		bash := &hearthv1.RunFilter{Runtime: "bash"}
		if names, next = list(2, "", bash); names != "f1 f3 " || next == "" {
			t.Errorf("%q %q", names, next)
		}
		for _, token := range []string{next[1:], next + "!", "x"} {
			_, err := h.runs.ListRuns(h.ctx, &hearthv1.ListRunsRequest{PageToken: token, Filter: bash})
			refused(t, "token "+token, err, connect.CodeInvalidArgument, "PAGE_TOKEN_INVALID")
		}
		_, err := h.runs.ListRuns(h.ctx, &hearthv1.ListRunsRequest{PageToken: next})
		refused(t, "another filter", err, connect.CodeInvalidArgument, "PAGE_TOKEN_INVALID")
		if names, next = list(2, next, bash); names != "f5 " || next != "" {
			t.Errorf("%q %q", names, next)
		}
	})
}

func TestListFilters(t *testing.T) {
	twice(t, func(t *testing.T, h *house) {
		n := h.node("n1", func(r *hearthv1.RegisterNodeRequest) { r.Node.Runtime = "bash" })
		defer n.end()
		spec := function()
		spec.Runtime = "bash"
		if _, err := h.runs.CreateRun(h.ctx, &hearthv1.CreateRunRequest{Namespace: "x", Name: "b", Labels: map[string]string{"a": "1", "b": ""}, Spec: spec}); err != nil {
			t.Fatal(err)
		}
		h.report(ready(n.serve()))
		h.create("p", function())
		for _, tc := range []struct {
			f    *hearthv1.RunFilter
			want int
		}{
			{nil, 2},
			{&hearthv1.RunFilter{Namespace: "x"}, 1},
			{&hearthv1.RunFilter{Namespace: "y"}, 0},
			{&hearthv1.RunFilter{Labels: map[string]string{"a": "1"}}, 1},
			{&hearthv1.RunFilter{Labels: map[string]string{"b": ""}}, 1},
			{&hearthv1.RunFilter{Labels: map[string]string{"c": ""}}, 0},
			{&hearthv1.RunFilter{Phases: []hearthv1.RunPhase{serving, failing}}, 1},
			{&hearthv1.RunFilter{NodeUid: "n1", Phases: []hearthv1.RunPhase{pending}}, 0},
			{&hearthv1.RunFilter{NodeUid: "n1"}, 1},
		} {
			res, err := h.runs.ListRuns(h.ctx, &hearthv1.ListRunsRequest{Filter: tc.f})
			if err != nil || len(res.GetRuns()) != tc.want {
				t.Errorf("%v: %d, %v", tc.f, len(res.GetRuns()), err)
			}
		}
	})
}
