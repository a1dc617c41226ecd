package node

import (
	"time"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/services/runtimed/internal/assignment"
)

// take follows one event of the watch.
func (s *session) take(ev *hearthv1.WatchAssignmentsResponse) {
	for _, a := range ev.GetAssignments() {
		if a.GetNodeUid() != s.uid {
			s.log.Warn("assignment for another node", "run_uid", a.GetRunUid(), "to", a.GetNodeUid())
			continue
		}
		if ev.GetSnapshot() {
			s.listed[a.GetRunUid()] = true
		}
		s.assign(a)
	}
	if ev.GetSnapshot() && !ev.GetMore() {
		s.reconcile()
	}
}

// reconcile lets go of what a snapshot, now whole, did not name.
func (s *session) reconcile() {
	for uid, slot := range s.slots {
		if !s.listed[uid] {
			slot.next = nil
			slot.owner.send(assignment.Event{Kind: assignment.Refused})
		}
	}
	clear(s.listed)
	s.synced = true
	s.sweep()
}

// assign gives one assignment to the owner that it is for, or lets it wait until
// the owner of an earlier attempt is gone.
func (s *session) assign(a *hearthv1.Assignment) {
	held := s.slots[a.GetRunUid()]
	if held == nil {
		if !s.closing {
			s.start(newOwner(s, a))
		}
		return
	}
	release := a.GetAction() == hearthv1.AssignmentAction_ASSIGNMENT_ACTION_RELEASE
	switch attempt := held.owner.a.GetAttempt(); {
	case a.GetAttempt() < attempt:
	case a.GetAttempt() > attempt:
		held.next = a
		held.owner.send(assignment.Event{Kind: assignment.Refused})
	case release:
		// If the owner goes without having said so, it is said by its successor.
		held.next = a
		reason := reasonName(a.GetReason())
		held.owner.send(assignment.Event{Kind: assignment.Release, Reason: reason, Drain: reason == reasonDrained})
	case held.owner.sweeping:
		held.next = a
	}
}

func (s *session) start(o *owner) {
	s.slots[o.a.GetRunUid()] = &slot{owner: o}
	s.holding.Add(1)
	s.owners.Go(func() {
		o.run()
		s.exits <- o
	})
}

// exited frees the slot of an owner that is gone, and starts what waited for it.
func (s *session) exited(o *owner) {
	s.holding.Add(-1)
	uid := o.a.GetRunUid()
	next := s.slots[uid].next
	delete(s.slots, uid)
	if o.leftover {
		s.sweeper.Reset(5 * time.Second)
	}
	if next == nil {
		return
	}
	said := o.state.Outcome != assignment.Abandoned
	if next.GetAttempt() == o.a.GetAttempt() && next.GetAction() == hearthv1.AssignmentAction_ASSIGNMENT_ACTION_RELEASE && said {
		return
	}
	s.assign(next)
}

// sweep cleans what the ledger knows and nobody owns: traces of a process that
// died, or of a release that the Runtime Server did not hear.
func (s *session) sweep() {
	if !s.synced || s.closing {
		return
	}
	for _, uid := range s.ledger.Runs() {
		if s.slots[uid] == nil {
			s.start(newSweeper(s, uid))
		}
	}
}

// reasonName is the name of a reason without its prefix; "" for none.
func reasonName(r hearthv1.RunReason) string {
	if r == hearthv1.RunReason_RUN_REASON_UNSPECIFIED {
		return ""
	}
	return r.String()[len("RUN_REASON_"):]
}

// reasonValue is its inverse.
func reasonValue(name string) hearthv1.RunReason {
	return hearthv1.RunReason(hearthv1.RunReason_value["RUN_REASON_"+name])
}
