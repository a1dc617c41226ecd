package controlplane_test

import (
	"fmt"
	"strings"
	"testing"

	"connectrpc.com/connect/v2"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
)

func named(name string) func(*hearthv1.RegisterNodeRequest) {
	return func(r *hearthv1.RegisterNodeRequest) { r.Node.Name = name }
}

func after(uid string) func(*hearthv1.RegisterNodeRequest) {
	return func(r *hearthv1.RegisterNodeRequest) { r.PredecessorUid = uid }
}

func roomFor(n int32) func(*hearthv1.RegisterNodeRequest) {
	return func(r *hearthv1.RegisterNodeRequest) { r.Node.Capacity = n }
}

// A report must name the present triple.
func TestReportFences(t *testing.T) {
	twice(t, func(t *testing.T, h *house) {
		n := h.node("n1")
		defer n.end()
		other := h.node("n2", named("two"), func(r *hearthv1.RegisterNodeRequest) { r.Node.Runtime = "bash" })
		defer other.end()
		h.create("f", function())
		a := n.serve()
		for what, change := range map[string]func(*hearthv1.ReportAssignmentRequest){
			"another attempt":  func(r *hearthv1.ReportAssignmentRequest) { r.Attempt = 2 },
			"another node":     func(r *hearthv1.ReportAssignmentRequest) { r.NodeUid = "n2" },
			"nobody's node":    func(r *hearthv1.ReportAssignmentRequest) { r.NodeUid = "n3" },
			"a late ready, by": func(r *hearthv1.ReportAssignmentRequest) { r.NodeUid = "n1x" },
		} {
			req := ready(a)
			change(req)
			_, err := h.nodes.ReportAssignment(h.ctx, req)
			refused(t, what, err, connect.CodeFailedPrecondition, "NODE_FENCED")
		}
		req := ready(a)
		req.RunUid = "none"
		_, err := h.nodes.ReportAssignment(h.ctx, req)
		refused(t, "no such Run", err, connect.CodeNotFound, "RUN_NOT_FOUND")
		finished := report(a)
		finished.Report = &hearthv1.ReportAssignmentRequest_Finished{Finished: &hearthv1.TaskFinished{}}
		_, err = h.nodes.ReportAssignment(h.ctx, finished)
		refused(t, "a function finished", err, connect.CodeInvalidArgument, "REPORT_INVALID")
		_, err = h.nodes.ReportAssignment(h.ctx, failed(a, hearthv1.RunReason_RUN_REASON_READY))
		refused(t, "no cause", err, connect.CodeInvalidArgument, "INVALID_ARGUMENT")

		h.report(failed(a, hearthv1.RunReason_RUN_REASON_HANDLER_INVALID))
		h.report(failed(a, hearthv1.RunReason_RUN_REASON_HANDLER_INVALID))
		r := h.phase("f", failing, hearthv1.RunReason_RUN_REASON_HANDLER_INVALID)
		if r.GetStatus().GetMessage() != "told by the node" {
			t.Errorf("message %q", r.GetStatus().GetMessage())
		}
		_, err = h.nodes.ReportAssignment(h.ctx, ready(a))
		refused(t, "ready after the end", err, connect.CodeFailedPrecondition, "NODE_FENCED")
	})
}

// The next process of a node goes on where the one before was, at once.
func TestPredecessor(t *testing.T) {
	twice(t, func(t *testing.T, h *house) {
		n := h.node("n1")
		defer n.end()
		h.create("f", function())
		h.create("g", function())
		a, b := n.serve(), n.serve()
		h.report(ready(a))
		h.report(ready(b))
		// A smaller node takes what it has room for; the other waits for room.
		next := h.node("n2", after("n1"), roomFor(1))
		defer next.end()
		c := next.serve()
		if c.GetAttempt() != 1 || c.GetNodeUid() != "n2" {
			t.Errorf("handed on as %v", c)
		}
		_, err := n.watch.Receive()
		refused(t, "the old watch", err, connect.CodeFailedPrecondition, "NODE_FENCED")
		_, err = h.nodes.ReportAssignment(h.ctx, ready(a))
		refused(t, "the old process", err, connect.CodeFailedPrecondition, "NODE_FENCED")
		_, err = h.nodes.RenewLease(h.ctx, &hearthv1.RenewLeaseRequest{NodeUid: "n1"})
		refused(t, "the old lease", err, connect.CodeFailedPrecondition, "NODE_FENCED")
		h.report(ready(c))
		r := h.phase(c.GetName(), serving, hearthv1.RunReason_RUN_REASON_READY)
		if r.GetStatus().GetEndpoint() != "http://n2" {
			t.Errorf("status %v", r.GetStatus())
		}
		left := map[string]string{"f": "g", "g": "f"}[c.GetName()]
		h.phase(left, pending, hearthv1.RunReason_RUN_REASON_NO_CAPACITY)
		third := h.node("n3", named("two"))
		defer third.end()
		if d := third.serve(); d.GetName() != left || d.GetAttempt() != 2 {
			t.Errorf("placed again as %v", d)
		}
	})
}

// Without word that the old process is dead, it is renewed no more, and its Runs stay.
func TestSuperseded(t *testing.T) {
	twice(t, func(t *testing.T, h *house) {
		n := h.node("n1")
		defer n.end()
		h.create("f", function())
		a := n.serve()
		h.report(ready(a))
		next := h.node("n2")
		defer next.end()
		_, err := h.nodes.ReportAssignment(h.ctx, released(a))
		refused(t, "the old process", err, connect.CodeFailedPrecondition, "NODE_FENCED")
		_, err = h.nodes.RenewLease(h.ctx, &hearthv1.RenewLeaseRequest{NodeUid: "n1"})
		refused(t, "the old lease", err, connect.CodeFailedPrecondition, "NODE_FENCED")
		if got := h.get("f").GetStatus(); got.GetNodeUid() != "n1" {
			t.Errorf("moved too early: %v", got)
		}
	})
}

func TestDrain(t *testing.T) {
	twice(t, func(t *testing.T, h *house) {
		n := h.node("n1")
		defer n.end()
		h.create("f", function())
		a := n.serve()
		h.report(ready(a))
		for range 2 {
			res, err := h.nodes.DrainNode(h.ctx, &hearthv1.DrainNodeRequest{NodeUid: "n1"})
			if err != nil || res.GetRemaining() != 1 {
				t.Fatalf("drain: %v %v", res, err)
			}
		}
		if r := n.release(); r.GetReason() != hearthv1.RunReason_RUN_REASON_NODE_DRAINED {
			t.Errorf("release %v", r)
		}
		h.report(released(a))
		h.phase("f", pending, hearthv1.RunReason_RUN_REASON_NO_NODE)
		res, err := h.nodes.DrainNode(h.ctx, &hearthv1.DrainNodeRequest{NodeUid: "n1"})
		if err != nil || res.GetRemaining() != 0 {
			t.Fatalf("drain: %v %v", res, err)
		}
		if _, err := h.nodes.RenewLease(h.ctx, &hearthv1.RenewLeaseRequest{NodeUid: "n1"}); err != nil {
			t.Errorf("a draining node must renew: %v", err)
		}
		other := h.node("n2", named("two"))
		defer other.end()
		if b := other.serve(); b.GetAttempt() != 2 {
			t.Errorf("assignment %v", b)
		}
	})
}

// Placement: first come, first served, by load, mode and capacity; capacity comes back.
func TestPlacement(t *testing.T) {
	twice(t, func(t *testing.T, h *house) {
		deaf := h.node("deaf", named("deaf"), func(r *hearthv1.RegisterNodeRequest) { r.Node.SupportsFunctions = false })
		defer deaf.end()
		h.create("f0", function())
		h.phase("f0", pending, hearthv1.RunReason_RUN_REASON_MODE_UNSUPPORTED)
		n := h.node("n1", roomFor(2))
		defer n.end()
		first := n.serve()
		for i := 1; i < 4; i++ {
			h.create(fmt.Sprintf("f%d", i), function())
		}
		if a := n.serve(); a.GetName() != "f1" {
			t.Errorf("placed %v", a)
		}
		h.phase("f2", pending, hearthv1.RunReason_RUN_REASON_NO_CAPACITY)
		h.phase("f3", pending, hearthv1.RunReason_RUN_REASON_NO_CAPACITY)
		h.report(failed(first, hearthv1.RunReason_RUN_REASON_IDLE_TIMEOUT))
		if a := n.serve(); a.GetName() != "f2" {
			t.Errorf("placed %v", a)
		}
		list, err := h.nodes.ListNodes(h.ctx, &hearthv1.ListNodesRequest{})
		if err != nil || len(list.GetNodes()) != 2 {
			t.Fatal(list, err)
		}
		if got := list.GetNodes()[1]; got.GetReserved() != 2 || got.GetState() != hearthv1.NodeState_NODE_STATE_READY || got.GetLeaseExpireTime() == nil {
			t.Errorf("node %v", got)
		}
		// A node that learns functions is given one.
		if _, err := h.nodes.RenewLease(h.ctx, &hearthv1.RenewLeaseRequest{NodeUid: "deaf", SupportsFunctions: true}); err != nil {
			t.Fatal(err)
		}
		if a := deaf.serve(); a.GetName() != "f3" {
			t.Errorf("placed %v", a)
		}
	})
}

// A node that comes back to its watch finds all that it holds, in as many messages
// as its sources need.
func TestSnapshot(t *testing.T) {
	twice(t, func(t *testing.T, h *house) {
		n := h.node("n1", roomFor(20))
		n.end()
		for i := range 10 {
			spec := function()
			spec.Source = inline("handler.py", strings.Repeat("#", 1<<20))
			h.create(fmt.Sprintf("f%d", i), spec)
		}
		h.phase("f9", scheduled, hearthv1.RunReason_RUN_REASON_ASSIGNED)
		watch, err := h.nodes.WatchAssignments(h.ctx, &hearthv1.WatchAssignmentsRequest{NodeUid: "n1"})
		if err != nil {
			t.Fatal(err)
		}
		defer watch.Close()
		held, messages := 0, 0
		for more := true; more; messages++ {
			e, err := watch.Receive()
			if err != nil || !e.GetSnapshot() {
				t.Fatalf("%v %v", e.GetSnapshot(), err)
			}
			for _, a := range e.GetAssignments() {
				if len(a.GetSpec().GetSource().GetInline().GetFiles()[0].GetText()) != 1<<20 {
					t.Error("contents are missing")
				}
				held++
			}
			more = e.GetMore()
		}
		if held != 10 || messages != 2 {
			t.Errorf("%d assignments in %d messages", held, messages)
		}
	})
}

func TestNodeErrors(t *testing.T) {
	twice(t, func(t *testing.T, h *house) {
		n := h.node("n1")
		defer n.end()
		if _, err := h.nodes.RegisterNode(h.ctx, &hearthv1.RegisterNodeRequest{Node: &hearthv1.Node{Uid: "n1", Name: "one", Runtime: "python", Address: "x", Capacity: 1}}); err != nil {
			t.Errorf("the same again: %v", err)
		}
		register := func(uid, name, predecessor string) error {
			_, err := h.nodes.RegisterNode(h.ctx, &hearthv1.RegisterNodeRequest{PredecessorUid: predecessor,
				Node: &hearthv1.Node{Uid: uid, Name: name, Runtime: "python", Address: "x", Capacity: 1}})
			return err
		}
		refused(t, "uid of another", register("n1", "two", ""), connect.CodeAlreadyExists, "NODE_EXISTS")
		refused(t, "predecessor of another", register("n2", "two", "n1"), connect.CodeInvalidArgument, "NODE_INVALID")
		if err := register("n3", "three", "never-seen"); err != nil {
			t.Errorf("a predecessor that nobody knows: %v", err)
		}
		_, err := h.nodes.RenewLease(h.ctx, &hearthv1.RenewLeaseRequest{NodeUid: "none"})
		refused(t, "renew", err, connect.CodeNotFound, "NODE_UNKNOWN")
		_, err = h.nodes.DrainNode(h.ctx, &hearthv1.DrainNodeRequest{NodeUid: "none"})
		refused(t, "drain", err, connect.CodeNotFound, "NODE_UNKNOWN")
		watch, err := h.nodes.WatchAssignments(h.ctx, &hearthv1.WatchAssignmentsRequest{NodeUid: "none"})
		if err == nil {
			_, err = watch.Receive()
			watch.Close()
		}
		refused(t, "watch", err, connect.CodeNotFound, "NODE_UNKNOWN")
	})
}
