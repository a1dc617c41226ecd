package ledger

import (
	"fmt"
	"time"

	"github.com/hearth-run/hearth/services/controlplane/internal/lifecycle"
	"github.com/hearth-run/hearth/services/controlplane/internal/nodes"
	"github.com/hearth-run/hearth/services/controlplane/internal/placement"
	"github.com/hearth-run/hearth/services/controlplane/internal/record"
)

// Bounds of one turn.
const (
	turnCommands  = 256
	turnBytes     = 32 << 20
	turnDecisions = 256
	storePause    = time.Second
)

// turn applies commands first: a renewal that was received in time counts, even if
// the lease's end is noticed in the same turn.
func (l *Ledger) turn(batch []*command, now time.Time) {
	t := l.begin(now)
	for _, c := range batch {
		c.err = c.do(t)
	}
	var decided []placement.Decision
	if !now.Before(l.paused) {
		l.tick(t)
		decided = l.decide(t)
	}
	if err := l.commit(t); err != nil {
		l.log.Error("commit failed", "err", err, "commands", len(batch))
		l.paused = now.Add(storePause)
		l.wake(decided)
		for _, c := range batch {
			if c.err == nil {
				c.err = fmt.Errorf("%w: %w", ErrStoreFailed, err)
			}
		}
	}
	for _, c := range batch {
		close(c.done)
	}
}

// tick applies what time has brought.
func (l *Ledger) tick(t *tx) {
	for _, key := range l.timers.due(t.now, turnDecisions) {
		if n := t.node(key); n != nil {
			if _, err := t.stepNode(n, nodes.Tick, t.now, nil); err != nil {
				l.log.Error("tick refused", "node_uid", key, "err", err)
			}
			continue
		}
		r := t.run(key)
		if r == nil {
			continue
		}
		kind, at, ok := lifecycle.Due(r.Policy, r.State)
		if !ok || at.After(t.now) {
			continue
		}
		if err := t.stepRun(r, lifecycle.Event{Kind: kind}); err != nil {
			l.log.Error("tick refused", "run_uid", key, "err", err)
		}
	}
}

// decide makes a pass over the queue and applies its decisions; one that the
// overlay refuses is taken up again in the next pass.
func (l *Ledger) decide(t *tx) []placement.Decision {
	decided, done := l.queue.Decide(t.snapshot, turnDecisions)
	l.passing = !done
	for _, d := range decided {
		if err := t.settle(d); err != nil {
			l.wake([]placement.Decision{d})
		}
	}
	return decided
}

func (l *Ledger) wake(decided []placement.Decision) {
	for _, d := range decided {
		if r := l.view.runs[d.UID]; r != nil {
			l.queue.Wake(r.Spec.GetRuntime())
			l.passing = true
		}
	}
}

// orphans places Runs again whose node the store no longer has: no crash leaves
// such, but what a damaged or restored store holds must not be stuck for ever.
func orphans(t *tx) error {
	for uid := range t.l.view.held {
		if n := t.node(uid); n == nil || n.State.Phase == nodes.Lost {
			t.l.log.Warn("runs without a node", "node_uid", uid, "runs", len(t.l.view.held[uid]))
			t.each(uid, func(r *record.Run) error { return t.handOn(r, nil) })
		}
	}
	return nil
}
