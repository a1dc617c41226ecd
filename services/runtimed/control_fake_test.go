package runtimed_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/gen/hearth/v1/hearthv1connect"
	"github.com/hearth-run/hearth/internal/kit/edge"
)

// controlFake is a control plane with one node name: it grants leases, hands out
// assignments and notes reports. It judges the triple as the real one does.
type controlFake struct {
	hearthv1connect.UnimplementedNodeServiceHandler
	lease time.Duration

	mu sync.Mutex
	// node is the present uid, drained the ones that asked for it.
	node    *hearthv1.Node
	drained bool
	// granted is when the latest lease of a uid was granted, by clock.
	granted map[string]time.Duration
	clock   func() time.Duration
	// renewed is when the latest renewal came in; answers take slow longer.
	renewed time.Time
	slow    time.Duration
	// down refuses every call; forgotten refuses the present uid.
	down, forgotten bool
	runs            map[string]*hearthv1.Assignment
	archives        map[string][]byte
	cut             bool
	reports         []string
	predecessors    []string
	// changed is closed and made anew with every change.
	changed chan struct{}
	version int
}

func newControlFake() *controlFake {
	return &controlFake{lease: 9 * time.Second, runs: map[string]*hearthv1.Assignment{}, granted: map[string]time.Duration{}, changed: make(chan struct{})}
}

func (f *controlFake) edit(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
	f.version++
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *controlFake) check(uid string) error {
	switch {
	case f.down:
		return edge.New(connect.CodeUnavailable, "UNAVAILABLE", "down", nil)
	case f.node == nil || f.node.GetUid() != uid:
		return edge.New(connect.CodeNotFound, "NODE_UNKNOWN", "unknown node", nil)
	case f.forgotten:
		return edge.New(connect.CodeFailedPrecondition, "NODE_FENCED", "fenced", nil)
	}
	return nil
}

func (f *controlFake) RegisterNode(_ context.Context, req *hearthv1.RegisterNodeRequest) (*hearthv1.RegisterNodeResponse, error) {
	var err error
	f.edit(func() {
		if f.down {
			err = edge.New(connect.CodeUnavailable, "UNAVAILABLE", "down", nil)
			return
		}
		f.node, f.forgotten, f.drained = proto.CloneOf(req.GetNode()), false, false
		f.grant(req.GetNode().GetUid())
		f.predecessors = append(f.predecessors, req.GetPredecessorUid())
		for _, a := range f.runs {
			a.NodeUid = req.GetNode().GetUid()
		}
	})
	if err != nil {
		return nil, err
	}
	return &hearthv1.RegisterNodeResponse{LeaseDuration: durationpb.New(f.lease)}, nil
}

func (f *controlFake) RenewLease(_ context.Context, req *hearthv1.RenewLeaseRequest) (*hearthv1.RenewLeaseResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.check(req.GetNodeUid()); err != nil {
		return nil, err
	}
	f.renewed = time.Now()
	f.grant(req.GetNodeUid())
	if f.slow > 0 {
		f.mu.Unlock()
		time.Sleep(f.slow)
		f.mu.Lock()
	}
	f.node.SupportsFunctions, f.node.SupportsTasks = req.GetSupportsFunctions(), req.GetSupportsTasks()
	return &hearthv1.RenewLeaseResponse{LeaseDuration: durationpb.New(f.lease)}, nil
}

func (f *controlFake) WatchAssignments(ctx context.Context, req *hearthv1.WatchAssignmentsRequest, stream hearthv1connect.NodeServiceWatchAssignmentsServerStream) error {
	seen := -1
	for {
		f.mu.Lock()
		err, changed, version := f.check(req.GetNodeUid()), f.changed, f.version
		var all []*hearthv1.Assignment
		for _, a := range f.runs {
			if version != seen {
				all = append(all, proto.CloneOf(a))
			}
		}
		f.mu.Unlock()
		if err != nil {
			return err
		}
		if version != seen {
			if err := f.send(stream, all); err != nil {
				return err
			}
			seen = version
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// send says everything each time, one assignment a message.
func (f *controlFake) send(stream hearthv1connect.NodeServiceWatchAssignmentsServerStream, all []*hearthv1.Assignment) error {
	slices.SortFunc(all, func(a, b *hearthv1.Assignment) int { return cmp.Compare(a.GetRunUid(), b.GetRunUid()) })
	for _, a := range all {
		if err := stream.Send(&hearthv1.WatchAssignmentsResponse{Snapshot: true, More: true, Assignments: []*hearthv1.Assignment{a}}); err != nil {
			return err
		}
	}
	return stream.Send(&hearthv1.WatchAssignmentsResponse{Snapshot: true})
}

func (f *controlFake) ReportAssignment(_ context.Context, req *hearthv1.ReportAssignmentRequest) (*hearthv1.ReportAssignmentResponse, error) {
	f.mu.Lock()
	err := f.check(req.GetNodeUid())
	if a := f.runs[req.GetRunUid()]; err == nil && (a == nil || a.GetAttempt() != req.GetAttempt()) {
		err = edge.New(connect.CodeFailedPrecondition, "NODE_FENCED", "another triple", nil)
	}
	f.mu.Unlock()
	if err != nil {
		return nil, err
	}
	f.edit(func() {
		text := fmt.Sprintf("%s#%d ", req.GetRunUid(), req.GetAttempt())
		switch r := req.GetReport().(type) {
		case *hearthv1.ReportAssignmentRequest_Started:
			text += "started"
			f.version--
		case *hearthv1.ReportAssignmentRequest_Ready:
			text += "ready"
			f.version--
		case *hearthv1.ReportAssignmentRequest_Failed:
			text += "failed " + r.Failed.GetReason().String()[len("RUN_REASON_"):]
			delete(f.runs, req.GetRunUid())
		case *hearthv1.ReportAssignmentRequest_Released:
			text += "released"
			delete(f.runs, req.GetRunUid())
		case *hearthv1.ReportAssignmentRequest_Finished:
			text += fmt.Sprintf("finished %d %q %v %s", r.Finished.GetExitCode(), r.Finished.GetStdout(), r.Finished.GetOutputs(), r.Finished.GetErrorMessage())
			delete(f.runs, req.GetRunUid())
		}
		f.reports = append(f.reports, text)
	})
	return &hearthv1.ReportAssignmentResponse{}, nil
}

func (f *controlFake) DrainNode(_ context.Context, req *hearthv1.DrainNodeRequest) (*hearthv1.DrainNodeResponse, error) {
	f.mu.Lock()
	err := f.check(req.GetNodeUid())
	f.mu.Unlock()
	if err != nil {
		return nil, err
	}
	f.edit(func() {
		f.drained = true
		for _, a := range f.runs {
			a.Action, a.Reason = hearthv1.AssignmentAction_ASSIGNMENT_ACTION_RELEASE, hearthv1.RunReason_RUN_REASON_NODE_DRAINED
		}
	})
	return &hearthv1.DrainNodeResponse{}, nil
}

func (f *controlFake) grant(uid string) {
	if f.clock != nil {
		f.granted[uid] = f.clock()
	}
}

// assign gives the node an attempt.
func (f *controlFake) assign(uid string, attempt int32, spec *hearthv1.RunSpec, lifetime time.Duration) {
	f.edit(func() {
		a := &hearthv1.Assignment{
			RunUid: uid, Attempt: attempt, NodeUid: f.node.GetUid(), Namespace: "default", Name: uid,
			Action: hearthv1.AssignmentAction_ASSIGNMENT_ACTION_SERVE, Spec: spec,
		}
		if lifetime > 0 {
			a.LifetimeLeft = durationpb.New(lifetime)
		}
		f.runs[uid] = a
	})
}

func (f *controlFake) release(uid string, reason hearthv1.RunReason) {
	f.edit(func() {
		a := f.runs[uid]
		a.Action, a.Reason = hearthv1.AssignmentAction_ASSIGNMENT_ACTION_RELEASE, reason
	})
}

// await waits until cond holds of the fake.
func (f *controlFake) await(ctx context.Context, what string, cond func() bool) error {
	for {
		f.mu.Lock()
		ok, changed, reports := cond(), f.changed, slices.Clone(f.reports)
		f.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w; reports: %q", what, ctx.Err(), reports)
		}
	}
}
