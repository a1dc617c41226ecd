package runtimed_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/internal/kit/edge"
)

// The control plane is gone for longer than the lease: the node stops by its own
// clock, undoes everything, and comes back as another node.
func TestLeaseRunsOut(t *testing.T) {
	story(t, func(t *testing.T, h *house) {
		h.control.assign("run-1", 1, function(), 0)
		h.hear("run-1#1 ready")
		before := h.fence(1)
		h.control.edit(func() { h.control.down = true })
		time.Sleep(h.control.lease / 2)
		if _, err := h.call(t.Context(), "run-1", before, ""); err != nil {
			t.Errorf("within the lease: %v", err)
		}
		time.Sleep(h.control.lease)
		if _, err := h.call(t.Context(), "run-1", before, ""); edge.Reason(err) != "NODE_FENCED" {
			t.Errorf("after the lease: %v", err)
		}
		synctest.Wait()
		if left := h.folders(); len(left) > 0 {
			t.Errorf("after the lease the workspace has %v", left)
		}
		h.control.edit(func() { h.control.down, h.control.reports = false, nil })
		h.hear("run-1#1 ready")
		after := h.fence(1)
		if after == before || !slices.Equal(h.control.predecessors, []string{"", before.NodeUID}) {
			t.Errorf("came back as %v with the predecessors %q", after, h.control.predecessors)
		}
		if _, err := h.call(t.Context(), "run-1", before, ""); edge.Reason(err) != "NODE_FENCED" {
			t.Errorf("under the old uid: %v", err)
		}
		if _, err := h.call(t.Context(), "run-1", after, ""); err != nil {
			t.Errorf("under the new uid: %v", err)
		}
		h.close()
	})
}

// A lease counts from when its request was sent, however long the answer took.
func TestSlowAnswers(t *testing.T) {
	story(t, func(t *testing.T, h *house) {
		h.control.edit(func() { h.control.slow = 2 * time.Second })
		h.control.assign("run-1", 1, function(), 0)
		h.hear("run-1#1 ready")
		time.Sleep(h.control.lease)
		h.control.edit(func() { h.control.down = true })
		// The answer that is under way, if there is one, still counts.
		time.Sleep(h.control.slow)
		end := h.control.renewed.Add(h.control.lease)
		fence := h.fence(1)
		for _, tc := range []struct {
			at     time.Time
			reason string
		}{{end.Add(-time.Millisecond), ""}, {end, "NODE_FENCED"}} {
			time.Sleep(time.Until(tc.at))
			if _, err := h.call(t.Context(), "run-1", fence, ""); edge.Reason(err) != tc.reason {
				t.Errorf("%v before the end of the lease: %v", time.Until(end), err)
			}
		}
		h.close()
	})
}

// The process was stopped for longer than its lease. The first call that it sees
// afterwards is refused, before anything of the node has run.
func TestStoppedProcess(t *testing.T) {
	story(t, func(t *testing.T, h *house) {
		h.control.assign("run-1", 1, function(), 0)
		h.hear("run-1#1 ready")
		fence := h.fence(1)
		synctest.Wait()
		h.runtime.asked()
		h.paused.Store(int64(30 * time.Second))
		if _, err := h.call(t.Context(), "run-1", fence, ""); edge.Reason(err) != "NODE_FENCED" {
			t.Errorf("the first call after the stop: %v", err)
		}
		if calls := h.runtime.asked(); len(calls) > 0 {
			t.Errorf("the Runtime Server was asked %q", calls)
		}
		h.await("another uid", func() bool { return h.control.node.GetUid() != fence.NodeUID })
		h.close()
	})
}

// The control plane has given the node up: what was served under the old uid is
// undone and never reported.
func TestFencedByControlPlane(t *testing.T) {
	story(t, func(t *testing.T, h *house) {
		h.control.assign("run-1", 1, function(), 0)
		h.hear("run-1#1 ready")
		old := h.fence(1)
		h.control.edit(func() { h.control.forgotten, h.control.runs = true, map[string]*hearthv1.Assignment{} })
		h.await("another uid", func() bool { return h.control.node.GetUid() != old.NodeUID })
		if got := h.control.reports; slices.Contains(got, "run-1#1 released") {
			t.Errorf("a fenced node reported %q", got)
		}
		h.close()
	})
}
