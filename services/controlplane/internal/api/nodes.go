package api

import (
	"context"
	"errors"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/gen/hearth/v1/hearthv1connect"
	"github.com/hearth-run/hearth/services/controlplane/internal/ledger"
	"github.com/hearth-run/hearth/services/controlplane/internal/nodes"
	"github.com/hearth-run/hearth/services/controlplane/internal/record"
)

// Terms are the durations that nodes are told.
type Terms struct {
	// Lease is what each renewal grants.
	Lease time.Duration
}

var errStarting = errors.New("the control plane is starting")

// assignmentBytes bounds one message of a node's watch, the last assignment in it
// not counted; clients read at most 16 MiB.
const assignmentBytes = 8 << 20

// nodeService is NodeService.
type nodeService struct{ *Server }

var _ hearthv1connect.NodeServiceHandler = (*nodeService)(nil)

// RegisterNode grants the first lease.
func (s *nodeService) RegisterNode(ctx context.Context, req *hearthv1.RegisterNodeRequest) (*hearthv1.RegisterNodeResponse, error) {
	received := time.Now()
	book, err := s.book(ctx)
	if err == nil {
		err = book.Register(ctx, record.NodeOf(req.GetNode(), received), req.GetPredecessorUid(), received)
	}
	return answer(&hearthv1.RegisterNodeResponse{LeaseDuration: durationpb.New(s.terms.Lease)}, err, "")
}

// RenewLease grants another one.
func (s *nodeService) RenewLease(ctx context.Context, req *hearthv1.RenewLeaseRequest) (*hearthv1.RenewLeaseResponse, error) {
	received := time.Now()
	book, err := s.book(ctx)
	if err == nil {
		err = book.Renew(ctx, req.GetNodeUid(), req.GetSupportsFunctions(), req.GetSupportsTasks(), received)
	}
	return answer(&hearthv1.RenewLeaseResponse{LeaseDuration: durationpb.New(s.terms.Lease)}, err, "")
}

// DrainNode has a node's Runs moved.
func (s *nodeService) DrainNode(ctx context.Context, req *hearthv1.DrainNodeRequest) (*hearthv1.DrainNodeResponse, error) {
	book, err := s.book(ctx)
	if err != nil {
		return answer[hearthv1.DrainNodeResponse](nil, err, "")
	}
	remaining, err := book.Drain(ctx, req.GetNodeUid())
	return answer(&hearthv1.DrainNodeResponse{Remaining: int32(remaining)}, err, "")
}

// ListNodes lists them by name.
func (s *nodeService) ListNodes(ctx context.Context, _ *hearthv1.ListNodesRequest) (*hearthv1.ListNodesResponse, error) {
	book, err := s.book(ctx)
	if err != nil {
		return answer[hearthv1.ListNodesResponse](nil, err, "")
	}
	return &hearthv1.ListNodesResponse{Nodes: book.Nodes()}, nil
}

// WatchAssignments tells a node what it must hold, each change as it stands when
// the node gets to it.
func (s *nodeService) WatchAssignments(ctx context.Context, req *hearthv1.WatchAssignmentsRequest, stream hearthv1connect.NodeServiceWatchAssignmentsServerStream) error {
	book, err := s.book(ctx)
	if err != nil {
		return table.Error(err, nil)
	}
	w := &assignmentWatch{book: book, node: req.GetNodeUid(), send: stream.Send}
	return table.Error(w.run(ctx), nil)
}

type assignmentWatch struct {
	book *ledger.Ledger
	node string
	send func(*hearthv1.WatchAssignmentsResponse) error
}

func (w *assignmentWatch) run(ctx context.Context) error {
	news := w.book.Subscribe(w.node)
	defer news.Close()
	if err := w.may(); err != nil {
		return err
	}
	if err := w.tell(w.book.Held(w.node, nil), true); err != nil {
		return err
	}
	for {
		select {
		case <-news.News():
		case <-w.book.Stopped():
			return ledger.ErrStopped
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := w.may(); err != nil {
			return err
		}
		if held := w.book.Held(w.node, news.Take()); len(held) > 0 {
			if err := w.tell(held, false); err != nil {
				return err
			}
		}
	}
}

// may says whether the node may still hold anything.
func (w *assignmentWatch) may() error {
	n, err := w.book.Node(w.node)
	if err == nil && !n.State.May() {
		err = nodes.ErrFenced
	}
	return err
}

// tell sends assignments, in several messages where they are large.
func (w *assignmentWatch) tell(held []*record.Run, snapshot bool) error {
	msg, size := &hearthv1.WatchAssignmentsResponse{Snapshot: snapshot}, 0
	for _, r := range held {
		a := r.Assignment(time.Now())
		switch err := fill(w.book, r, a.GetSpec()); {
		case errors.Is(err, ledger.ErrRunNotFound):
			continue
		case err != nil:
			return err
		}
		if size > assignmentBytes {
			msg.More = snapshot
			if err := w.send(msg); err != nil {
				return err
			}
			msg, size = &hearthv1.WatchAssignmentsResponse{Snapshot: snapshot}, 0
		}
		msg.Assignments = append(msg.Assignments, a)
		size += proto.Size(a)
	}
	if len(msg.GetAssignments()) == 0 && !snapshot {
		return nil
	}
	return w.send(msg)
}
