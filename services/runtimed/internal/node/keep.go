package node

import (
	"context"
	"errors"
	"time"

	"connectrpc.com/connect/v2"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/services/runtimed/internal/lease"
	"github.com/hearth-run/hearth/services/runtimed/internal/upstream"
)

// keep drives the lease until it is lost or ctx is done. The gate needs it only
// to stay open: it closes by itself.
func (s *session) keep(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.changed:
			s.apply(lease.Event{Kind: lease.Tick})
			if s.lease.Phase == lease.Held {
				s.renew(ctx)
			}
		case <-timer.C:
			s.apply(lease.Event{Kind: lease.Tick}, func() { s.renew(ctx) })
		}
		if s.lease.Phase == lease.Lost {
			s.lose(errors.New("it ran out or was refused"))
			return
		}
		timer.Reset(min(s.lease.RenewAt, s.lease.Deadline) - s.clock())
	}
}

// apply takes an event now. renew is called where the machine asks for it.
func (s *session) apply(e lease.Event, renew ...func()) {
	e.Now = s.clock()
	next, effects, err := s.lease.Apply(e)
	if err != nil {
		s.log.Error("lease", "cause", err)
		return
	}
	s.lease = next
	for _, effect := range effects {
		switch effect {
		case lease.Serve:
			s.gate.Open(next.Deadline)
		case lease.Stop:
			s.gate.Close()
		case lease.Renew:
			for _, call := range renew {
				call()
			}
		}
	}
}

// renew asks once, for no longer than the lease lasts.
func (s *session) renew(ctx context.Context) {
	sent := s.clock()
	ctx, cancel := context.WithTimeout(ctx, min(s.cfg.Call, s.lease.Deadline-sent))
	defer cancel()
	support := s.support.Load()
	res, err := s.control.RenewLease(ctx, &hearthv1.RenewLeaseRequest{
		NodeUid: s.uid, SupportsFunctions: support.Functions, SupportsTasks: support.Tasks,
	})
	switch {
	case err == nil:
		s.told.Store(support)
		s.apply(lease.Event{Kind: lease.Grant, Sent: sent, Length: res.GetLeaseDuration().AsDuration()})
	case unwanted(err):
		s.apply(lease.Event{Kind: lease.Refuse})
	default:
		s.log.Debug("renew lease", "cause", err)
	}
}

// unwanted says whether the control plane has given up the node uid.
func unwanted(err error) bool {
	code := connect.CodeOf(err)
	return err != nil && (code == connect.CodeNotFound || code == connect.CodeFailedPrecondition)
}

// watch receives assignments until ctx is done, again after each interruption.
func (s *session) watch(ctx context.Context) {
	for wait := 20 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		heard, err := s.follow(ctx)
		if ctx.Err() != nil {
			return
		}
		if unwanted(err) {
			s.lose(errors.Join(errUnwanted, err))
			return
		}
		if heard {
			wait = 20 * time.Millisecond
		}
		s.log.Debug("watch assignments", "cause", err)
		if upstream.Pause(ctx, wait) != nil {
			return
		}
	}
}

// follow is one stream.
func (s *session) follow(ctx context.Context) (heard bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := s.control.WatchAssignments(ctx, &hearthv1.WatchAssignmentsRequest{NodeUid: s.uid})
	if err != nil {
		return false, err
	}
	defer stream.Close()
	for {
		ev, err := stream.Receive()
		if err != nil {
			return heard, err
		}
		heard = true
		select {
		case s.events <- ev:
		case <-ctx.Done():
			return heard, ctx.Err()
		}
	}
}
