package controlplane_test

import (
	"context"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/gen/hearth/v1/hearthv1connect"
)

// node is a node that a test plays.
type node struct {
	*house
	uid   string
	watch hearthv1connect.NodeServiceWatchAssignmentsClientStream
	held  []*hearthv1.Assignment // received, not yet taken
	stop  context.CancelFunc
}

func (h *house) node(uid string, change ...func(*hearthv1.RegisterNodeRequest)) *node {
	h.t.Helper()
	req := &hearthv1.RegisterNodeRequest{Node: &hearthv1.Node{
		Uid: uid, Name: "one", Runtime: "python", Address: "http://" + uid, Capacity: 10, SupportsFunctions: true, SupportsTasks: true,
	}}
	for _, f := range change {
		f(req)
	}
	if _, err := h.nodes.RegisterNode(h.ctx, req); err != nil {
		h.t.Fatalf("register %s: %v", uid, err)
	}
	return h.watchNode(uid)
}

func (h *house) watchNode(uid string) *node {
	h.t.Helper()
	ctx, stop := context.WithCancel(h.ctx)
	watch, err := h.nodes.WatchAssignments(ctx, &hearthv1.WatchAssignmentsRequest{NodeUid: uid})
	if err != nil {
		h.t.Fatal(err)
	}
	n := &node{house: h, uid: uid, watch: watch, stop: stop}
	first, err := watch.Receive()
	if err != nil || !first.GetSnapshot() {
		h.t.Fatalf("the watch began with %v, %v", first, err)
	}
	n.held = first.GetAssignments()
	return n
}

func (n *node) end() {
	n.stop()
	n.watch.Close()
}

// next returns the next assignment that the node hears of.
func (n *node) next() *hearthv1.Assignment {
	n.t.Helper()
	for len(n.held) == 0 {
		e, err := n.watch.Receive()
		if err != nil {
			n.t.Fatalf("node %s: %v", n.uid, err)
		}
		n.held = e.GetAssignments()
	}
	a := n.held[0]
	n.held = n.held[1:]
	return a
}

func (n *node) serve() *hearthv1.Assignment {
	n.t.Helper()
	a := n.next()
	if a.GetAction() != hearthv1.AssignmentAction_ASSIGNMENT_ACTION_SERVE {
		n.t.Fatalf("node %s was told %v", n.uid, a)
	}
	return a
}

func (n *node) release() *hearthv1.Assignment {
	n.t.Helper()
	a := n.next()
	if a.GetAction() != hearthv1.AssignmentAction_ASSIGNMENT_ACTION_RELEASE {
		n.t.Fatalf("node %s was told %v", n.uid, a)
	}
	return a
}

func report(a *hearthv1.Assignment) *hearthv1.ReportAssignmentRequest {
	return &hearthv1.ReportAssignmentRequest{RunUid: a.GetRunUid(), Attempt: a.GetAttempt(), NodeUid: a.GetNodeUid()}
}

func started(a *hearthv1.Assignment) *hearthv1.ReportAssignmentRequest {
	r := report(a)
	r.Report = &hearthv1.ReportAssignmentRequest_Started{Started: &hearthv1.AssignmentStarted{}}
	return r
}

func ready(a *hearthv1.Assignment) *hearthv1.ReportAssignmentRequest {
	r := report(a)
	r.Report = &hearthv1.ReportAssignmentRequest_Ready{Ready: &hearthv1.AssignmentReady{SourceIdentity: "id"}}
	return r
}

func failed(a *hearthv1.Assignment, reason hearthv1.RunReason) *hearthv1.ReportAssignmentRequest {
	r := report(a)
	r.Report = &hearthv1.ReportAssignmentRequest_Failed{Failed: &hearthv1.AssignmentFailed{Reason: reason, Message: "told by the node"}}
	return r
}

func released(a *hearthv1.Assignment) *hearthv1.ReportAssignmentRequest {
	r := report(a)
	r.Report = &hearthv1.ReportAssignmentRequest_Released{Released: &hearthv1.AssignmentReleased{}}
	return r
}

func (h *house) report(req *hearthv1.ReportAssignmentRequest) {
	h.t.Helper()
	if _, err := h.nodes.ReportAssignment(h.ctx, req); err != nil {
		h.t.Fatalf("report %v: %v", req, err)
	}
}
