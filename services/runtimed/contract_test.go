package runtimed_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect/v2"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/internal/kit/edge"
	"github.com/hearth-run/hearth/internal/kit/hop"
)

// The main story, over every kind of hop.
func TestServe(t *testing.T) {
	for _, way := range []string{"inprocess", "127.0.0.1:0", "unix:" + t.TempDir()} {
		t.Run(strings.SplitN(way, ":", 2)[0], func(t *testing.T) {
			h := open(t)
			if way != "inprocess" {
				h.overWire(way)
			}
			h.start()
			h.control.assign("run-1", 1, function(), 0)
			h.hear("run-1#1 ready")
			if !exists(filepath.Join(h.cfg.Workspace, "run-1", "app.py")) {
				t.Error("the source is not where it belongs")
			}
			res, err := h.call(t.Context(), "run-1", h.fence(1), "ping")
			if err != nil || string(res.GetOutput()) != "ping" || res.GetInvocationId() != "inv" {
				t.Fatalf("%v %v", res, err)
			}
			if reg := res.GetRegistration(); reg.GetRunUid() != "run-1" || reg.GetRegistrationId() != "" {
				t.Errorf("the registration's id left the node: %v", reg)
			}
			h.control.release("run-1", hearthv1.RunReason_RUN_REASON_CANCELLED)
			h.hear("run-1#1 released")
			if _, err := h.call(t.Context(), "run-1", h.fence(1), ""); edge.Reason(err) != "RUN_ENDED" && edge.Reason(err) != "REGISTRATION_DRAINING" {
				t.Errorf("after the release: %v", err)
			}
			want := []string{"register run-1#1", "invoke run-1 inv", "unregister run-1 cancel=true"}
			if got := h.runtime.asked(); !slices.Equal(got, want) {
				t.Errorf("asked %q, want %q", got, want)
			}
			h.close()
		})
	}
}

// Each fence and each refusal, by code and reason.
func TestRefusals(t *testing.T) {
	h := open(t)
	h.start()
	defer h.close()
	h.control.assign("run-1", 2, function(), 0)
	h.hear("run-1#2 ready")
	for name, tc := range map[string]struct {
		run    string
		fence  hop.Fence
		code   connect.Code
		reason string
	}{
		"another attempt":   {"run-1", hop.Fence{Attempt: 1}, connect.CodeFailedPrecondition, "NODE_FENCED"},
		"a later attempt":   {"run-1", hop.Fence{Attempt: 3}, connect.CodeFailedPrecondition, "NODE_FENCED"},
		"another node":      {"run-1", hop.Fence{NodeUID: "other"}, connect.CodeFailedPrecondition, "NODE_FENCED"},
		"unknown run":       {"run-2", h.fence(1), connect.CodeNotFound, "RUN_NOT_FOUND"},
		"unknown elsewhere": {"run-2", hop.Fence{NodeUID: "other"}, connect.CodeFailedPrecondition, "NODE_FENCED"},
	} {
		_, err := h.call(t.Context(), tc.run, tc.fence, "")
		if connect.CodeOf(err) != tc.code || edge.Reason(err) != tc.reason || edge.Info(err).GetMetadata()["run_uid"] != tc.run {
			t.Errorf("%s: %v, reason %q, %v", name, err, edge.Reason(err), edge.Info(err))
		}
	}
	for name, fence := range map[string]hop.Fence{"no fence": {}, "the right one": h.fence(2)} {
		if _, err := h.call(t.Context(), "run-1", fence, ""); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
