package controlplane_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/types/known/durationpb"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
)

// bubble runs a test on a clock that only waiting moves.
func bubble(t *testing.T, test func(t *testing.T, h *house)) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, settings(t), "inprocess")
		defer h.close()
		test(t, h)
	})
}

func (h *house) renew(uid string) error {
	_, err := h.nodes.RenewLease(h.ctx, &hearthv1.RenewLeaseRequest{NodeUid: uid, SupportsFunctions: true, SupportsTasks: true})
	return err
}

// A lease ends for the control plane a margin later than for the node: 10 s and 2 s.
func TestLease(t *testing.T) {
	bubble(t, func(t *testing.T, h *house) {
		n := h.node("n1")
		defer n.end()
		h.create("f", function())
		a := n.serve()
		h.report(ready(a))
		time.Sleep(9 * time.Second)
		if err := h.renew("n1"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(12*time.Second - time.Millisecond)
		synctest.Wait()
		if s := h.get("f").GetStatus(); s.GetNodeUid() != "n1" || s.GetPhase() != serving {
			t.Errorf("moved before lease and margin were over: %v", s)
		}
		other := h.node("n2", named("two"))
		defer other.end()
		time.Sleep(time.Millisecond)
		b := other.serve()
		if b.GetAttempt() != 2 {
			t.Errorf("assignment %v", b)
		}
		_, err := h.nodes.ReportAssignment(h.ctx, ready(a))
		refused(t, "a late report", err, connect.CodeFailedPrecondition, "NODE_FENCED")
		refused(t, "a late renewal", h.renew("n1"), connect.CodeFailedPrecondition, "NODE_FENCED")
		_, err = n.watch.Receive()
		refused(t, "its watch", err, connect.CodeFailedPrecondition, "NODE_FENCED")
		// A lost node is listed for an hour.
		time.Sleep(time.Hour - time.Millisecond)
		synctest.Wait()
		for _, want := range []int{2, 1} {
			list, err := h.nodes.ListNodes(h.ctx, &hearthv1.ListNodesRequest{})
			if err != nil || len(list.GetNodes()) != want {
				t.Errorf("%d nodes, want %d: %v", len(list.GetNodes()), want, err)
			}
			time.Sleep(time.Millisecond + time.Second)
			synctest.Wait()
		}
	})
}

// After a start nobody knows when leases were renewed: they are counted anew, and
// the node that goes on renewing keeps its Runs.
func TestLeaseAfterRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := settings(t)
		h := open(t, cfg, "inprocess")
		kept, lost := h.node("kept"), h.node("lost", named("two"))
		for _, name := range []string{"f", "g"} {
			h.create(name, function())
		}
		h.report(ready(kept.serve()))
		h.report(ready(lost.serve()))
		kept.end()
		lost.end()
		h.close()
		time.Sleep(time.Hour)
		h = open(t, cfg, "inprocess")
		defer h.close()
		if err := h.renew("kept"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(11 * time.Second)
		synctest.Wait()
		list, err := h.runs.ListRuns(h.ctx, &hearthv1.ListRunsRequest{Filter: &hearthv1.RunFilter{Phases: []hearthv1.RunPhase{serving}}})
		if err != nil || len(list.GetRuns()) != 2 {
			t.Fatalf("ready after 11 s: %d %v", len(list.GetRuns()), err)
		}
		if err := h.renew("kept"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		n := h.watchNode("kept")
		defer n.end()
		for a := n.serve(); a.GetAttempt() != 2; a = n.serve() {
		}
		if err := h.renew("lost"); connect.CodeOf(err) != connect.CodeFailedPrecondition {
			t.Errorf("the lost node: %v", err)
		}
	})
}

// Failures wait longer and longer, and end at the budget.
func TestBackoff(t *testing.T) {
	bubble(t, func(t *testing.T, h *house) {
		n := h.node("n1")
		defer n.end()
		spec := function()
		spec.RetryPolicy = &hearthv1.RetryPolicy{MaxAttempts: 3}
		h.create("f", spec)
		for attempt, longest := range []time.Duration{0, time.Second, 2 * time.Second} {
			start := time.Now()
			keep, stop := context.WithCancel(h.ctx)
			go func() { // the node renews while it waits
				for keep.Err() == nil {
					_ = h.renew("n1")
					select {
					case <-time.After(3 * time.Second):
					case <-keep.Done():
					}
				}
			}()
			a := n.serve()
			stop()
			if waited := time.Since(start); waited > longest || waited < longest*3/4 || int(a.GetAttempt()) != attempt+1 {
				t.Errorf("attempt %d came after %v, at most %v", a.GetAttempt(), waited, longest)
			}
			h.report(failed(a, hearthv1.RunReason_RUN_REASON_INITIALIZATION_FAILED))
		}
		h.phase("f", failing, hearthv1.RunReason_RUN_REASON_INITIALIZATION_FAILED)
		if s := h.get("f").GetStatus(); s.GetAttempt() != 3 || s.GetFinishTime() == nil {
			t.Errorf("status %v", s)
		}
	})
}

// The lifetime counts from the placement; the Run ends once it is released.
func TestLifetime(t *testing.T) {
	bubble(t, func(t *testing.T, h *house) {
		spec := function()
		spec.Timeout = durationpb.New(5 * time.Second)
		h.create("f", spec)
		time.Sleep(time.Minute)
		n := h.node("n1")
		defer n.end()
		a := n.serve()
		if a.GetLifetimeLeft().AsDuration() != 5*time.Second {
			t.Errorf("assignment %v", a)
		}
		h.report(ready(a))
		start := time.Now()
		if r := n.release(); r.GetReason() != hearthv1.RunReason_RUN_REASON_LIFETIME_EXCEEDED || time.Since(start) != 5*time.Second {
			t.Errorf("%v after %v", r, time.Since(start))
		}
		h.report(released(a))
		h.phase("f", hearthv1.RunPhase_RUN_PHASE_TIMEOUT, hearthv1.RunReason_RUN_REASON_LIFETIME_EXCEEDED)
	})
}

// A cancelled Run of a node that is gone ends when the lease does, and goes when
// its time is over.
func TestCancelOfTheLost(t *testing.T) {
	bubble(t, func(t *testing.T, h *house) {
		n := h.node("n1")
		defer n.end()
		spec := function()
		spec.TtlAfterFinish = durationpb.New(time.Minute)
		h.create("f", spec)
		h.report(ready(n.serve()))
		if _, err := h.runs.CancelRun(h.ctx, &hearthv1.CancelRunRequest{Name: "f"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(12*time.Second - time.Millisecond)
		synctest.Wait()
		if s := h.get("f").GetStatus(); s.GetPhase() != running {
			t.Errorf("ended while the lease ran: %v", s)
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if s := h.get("f").GetStatus(); s.GetPhase() != cancelled {
			t.Errorf("not ended with the lease: %v", s)
		}
		time.Sleep(time.Minute - time.Millisecond)
		synctest.Wait()
		h.get("f")
		time.Sleep(time.Millisecond)
		synctest.Wait()
		_, err := h.runs.GetRun(h.ctx, &hearthv1.GetRunRequest{Name: "f"})
		refused(t, "after its time", err, connect.CodeNotFound, "RUN_NOT_FOUND")
	})
}
