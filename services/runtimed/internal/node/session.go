package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"connectrpc.com/connect/v2"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/services/runtimed/internal/assignment"
	"github.com/hearth-run/hearth/services/runtimed/internal/desk"
	"github.com/hearth-run/hearth/services/runtimed/internal/lease"
	"github.com/hearth-run/hearth/services/runtimed/internal/upstream"
)

// session is one node uid. Its fields belong to its own goroutine but for those
// that say otherwise.
type session struct {
	*Node
	uid, predecessor string
	registered       bool
	log              *slog.Logger
	// gate is closed to calls when the lease ends; safe for all.
	gate *desk.Gate
	// lease belongs to register, then to keep.
	lease lease.Lease

	// lost is closed by keep or watch through lose.
	lost     chan struct{}
	loseOnce sync.Once
	// events come from watch, exits from owners.
	events chan *hearthv1.WatchAssignmentsResponse
	exits  chan *owner
	slots  map[string]*slot
	// listed are the Runs of the snapshot that is coming in.
	listed map[string]bool
	// hard ends every call that the session's owners have under way.
	hard    context.Context
	cutOff  context.CancelCauseFunc
	owners  sync.WaitGroup
	sweeper *time.Timer
	// synced: a snapshot came. closing: nothing new is begun.
	// hurried: the owners were asked to let go at once.
	synced, closing, hurried bool
}

// slot is one Run of the node: who owns it, and what waits for it to be free.
type slot struct {
	owner *owner
	next  *hearthv1.Assignment
}

var (
	errShutdown = errors.New("the node is shutting down")
	errUnwanted = errors.New("the control plane does not know this node any more")
)

func newSession(n *Node, uid, predecessor string) *session {
	s := &session{
		Node: n, uid: uid, predecessor: predecessor, log: n.log.With("node_uid", uid),
		gate: &desk.Gate{UID: uid}, lease: lease.New(), lost: make(chan struct{}),
		events: make(chan *hearthv1.WatchAssignmentsResponse), exits: make(chan *owner),
		slots: map[string]*slot{}, listed: map[string]bool{}, sweeper: time.NewTimer(time.Hour),
	}
	s.hard, s.cutOff = context.WithCancelCause(context.Background())
	return s
}

// run holds the node uid until its lease is lost, or ctx is done and the node is
// drained. Nothing that was served under the uid is left after it.
// Errors: the control plane refused the node for good.
func (s *session) run(ctx context.Context) error {
	defer s.cutOff(errShutdown)
	defer s.sweeper.Stop()
	if err := s.register(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	var children sync.WaitGroup
	children.Go(func() { s.keep(life) })
	children.Go(func() { s.watch(life) })
	s.loop(ctx)
	s.gate.Close()
	stop()
	s.owners.Wait()
	children.Wait()
	return nil
}

// register makes the node known, as often as it takes.
// Errors: a refusal that no repeat mends; ctx's cause.
func (s *session) register(ctx context.Context) error {
	s.awaitHandshake(ctx)
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		granted, err := s.registerOnce(ctx)
		if granted {
			return nil
		}
		if err := refusedForGood(err); err != nil {
			return err
		}
		s.log.Debug("register node", "cause", err)
		if err := upstream.Pause(ctx, wait); err != nil {
			return err
		}
	}
}

// awaitHandshake gives the Runtime Server a moment to be there: a node that
// registers before it knows what it supports is one that supports nothing.
func (s *session) awaitHandshake(ctx context.Context) {
	bounded, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	select {
	case <-s.shaken:
	case <-bounded.Done():
	}
}

func (s *session) registerOnce(ctx context.Context) (granted bool, err error) {
	call, cancel := context.WithTimeout(ctx, s.cfg.Call)
	defer cancel()
	support, sent := s.support.Load(), s.clock()
	res, err := s.control.RegisterNode(call, &hearthv1.RegisterNodeRequest{
		Node: &hearthv1.Node{
			Uid: s.uid, Name: s.cfg.Name, Runtime: s.cfg.Runtime, Address: s.cfg.Address(),
			Capacity: s.cfg.Capacity, Version: s.cfg.Version,
			SupportsFunctions: support.Functions, SupportsTasks: support.Tasks,
		},
		PredecessorUid: s.predecessor,
	})
	if err != nil {
		return false, err
	}
	next, _, _ := s.lease.Apply(lease.Event{Kind: lease.Grant, Now: s.clock(), Sent: sent, Length: res.GetLeaseDuration().AsDuration()})
	if next.Phase != lease.Held {
		return false, errors.New("the lease came too late")
	}
	if err := s.ledger.SetUID(s.uid); err != nil {
		return false, err
	}
	s.lease, s.registered = next, true
	s.told.Store(support)
	s.gate.Open(next.Deadline)
	s.desk.Install(s.gate)
	s.log.Info("node registered", "lease", res.GetLeaseDuration().AsDuration(), "predecessor_uid", s.predecessor)
	return true, nil
}

func refusedForGood(err error) error {
	switch connect.CodeOf(err) {
	case connect.CodeInvalidArgument, connect.CodeAlreadyExists, connect.CodePermissionDenied, connect.CodeUnauthenticated, connect.CodeUnimplemented:
		return fmt.Errorf("register: %w", err)
	}
	return nil
}

// lose ends the lease, whoever noticed.
func (s *session) lose(cause error) {
	s.loseOnce.Do(func() {
		s.gate.Close()
		s.log.Warn("lease lost", "cause", cause)
		close(s.lost)
	})
}

// loop is the session's life: it ends when the lease is lost or ctx is done, and
// no owner is left.
func (s *session) loop(ctx context.Context) {
	lost, done := s.lost, ctx.Done()
	patience := time.NewTimer(time.Hour)
	defer patience.Stop()
	asked := make(chan error, 1)
	for !s.closing || len(s.slots) > 0 {
		select {
		case ev := <-s.events:
			s.take(ev)
		case o := <-s.exits:
			s.exited(o)
		case <-s.back:
			s.sweep()
		case <-s.sweeper.C:
			s.sweep()
		case <-lost:
			lost, s.closing = nil, true
			s.all(assignment.Event{Kind: assignment.Fence})
			patience.Reset(s.cfg.Release + time.Second)
		case <-done:
			done, s.closing = nil, true
			s.owners.Go(func() { asked <- s.drain() })
			patience.Reset(s.cfg.Drain)
		case err := <-asked:
			if err != nil {
				s.log.Info("drain without the control plane", "cause", err)
				s.all(assignment.Event{Kind: assignment.Release, Reason: reasonDrained, Drain: true})
			}
		case <-patience.C:
			s.hurry()
			patience.Reset(time.Second)
		}
	}
}

// hurry ends what does not end by itself: first it asks every owner to let go at
// once, then it ends their calls.
func (s *session) hurry() {
	s.log.Warn("not everything was released in time", "runs", len(s.slots))
	if s.hurried {
		s.cutOff(errShutdown)
	}
	s.hurried = true
	s.all(assignment.Event{Kind: assignment.Release, Reason: reasonDrained})
}

const reasonDrained = "NODE_DRAINED"

// drain asks the control plane to take the Runs back.
func (s *session) drain() error {
	ctx, cancel := context.WithTimeout(s.hard, min(s.cfg.Call, s.cfg.Drain/2))
	defer cancel()
	_, err := s.control.DrainNode(ctx, &hearthv1.DrainNodeRequest{NodeUid: s.uid})
	return err
}

func (s *session) all(ev assignment.Event) {
	for _, slot := range s.slots {
		slot.next = nil
		slot.owner.send(ev)
	}
}
