package lifecycle

import (
	"fmt"
	"time"
)

// step is one transition under way.
type step struct {
	p   Policy
	s   State
	e   Event
	now time.Time
}

type transition func(*step)

// table is the machine: what is not in it is refused.
var table = map[Kind]map[Stage]transition{
	Place:        {Waiting: place},
	Unplaceable:  {Waiting: wait},
	Start:        {Placed: start, Starting: keep, Ready: keep, Releasing: keep},
	Report:       {Placed: ready, Starting: ready, Ready: keep, Releasing: keep},
	Fail:         {Placed: fail, Starting: fail, Ready: fail, Releasing: settle, Waiting: keep, Backoff: keep, Ended: keep},
	Finish:       {Placed: finish, Starting: finish, Releasing: finishReleasing, Waiting: keep, Backoff: keep, Ended: keep},
	Released:     {Placed: handBack, Starting: handBack, Ready: handBack, Releasing: settle, Waiting: keep, Backoff: keep, Ended: keep},
	Lose:         {Placed: lose, Starting: lose, Ready: lose, Releasing: forsake},
	Adopt:        {Placed: adopt, Starting: adopt, Ready: adopt, Releasing: forsake},
	Drain:        {Placed: drain, Starting: drain, Ready: drain, Releasing: keep},
	Cancel:       {Waiting: cancelled, Backoff: cancelled, Placed: cancel, Starting: cancel, Ready: cancel, Releasing: cancel, Ended: keep},
	Delete:       {Waiting: deleted, Backoff: deleted, Placed: remove, Starting: remove, Ready: remove, Releasing: remove, Ended: deleted},
	LifetimeOver: {Waiting: expired, Backoff: expired, Placed: expire, Starting: expire, Ready: expire, Releasing: expire},
	BackoffOver:  {Backoff: queue},
	TTLOver:      {Ended: gone},
}

// Apply returns the state that e leads to at now, or why it was refused: ErrFenced
// or ErrRefused. The state that went in stays as it is.
func Apply(p Policy, s State, e Event, now time.Time) (State, error) {
	act, ok := table[e.Kind][s.Stage]
	if e.Kind.fenced() && !s.matches(e) {
		return s, fmt.Errorf("%w: %s of attempt %d on %q in %s, attempt %d on %q", ErrFenced, e.Kind, e.Attempt, e.Node, s.Stage, s.Attempt, s.Node)
	}
	if !ok {
		return s, refusal(s, e)
	}
	if p.Task && e.Kind == Report || !p.Task && e.Kind == Finish {
		return s, refusal(s, e)
	}
	st := step{p: p, s: s, e: e, now: now}
	act(&st)
	st.conditions()
	return st.s, nil
}

func keep(*step) {}

func place(t *step) {
	t.s.Stage = Placed
	t.s.Attempt++
	t.s.Node, t.s.Endpoint, t.s.Settled = t.e.Node, t.e.Endpoint, ""
	t.s.LogEndpoint = t.e.Endpoint
	t.s.ExitCode = nil
	t.s.PlacedAt, t.s.StartedAt, t.s.ReadyAt, t.s.RetryAt = t.now, time.Time{}, time.Time{}, time.Time{}
	if t.s.FirstPlaced.IsZero() {
		t.s.FirstPlaced = t.now
	}
	t.say(Assigned, "")
}

func wait(t *step) { t.say(t.e.Reason, t.e.Message) }

func start(t *step) {
	t.s.Stage, t.s.StartedAt = Starting, t.now
	t.say(Preparing, "")
}

func ready(t *step) {
	if t.s.StartedAt.IsZero() {
		t.s.StartedAt = t.now
	}
	t.s.Stage, t.s.ReadyAt, t.s.Disruptions = Ready, t.now, 0
	t.s.Identity = t.e.Identity
	t.say(IsReady, "")
}

// adopt goes on with the same attempt on the node's next process, which finds what
// its Runtime Server still holds by registering the same attempt again. The node's
// uid is new, so the triple is.
func adopt(t *step) {
	t.s.Stage = Placed
	t.s.Node, t.s.Endpoint, t.s.LogEndpoint = t.e.Node, t.e.Endpoint, t.e.Endpoint
	t.s.PlacedAt, t.s.StartedAt, t.s.ReadyAt = t.now, time.Time{}, time.Time{}
	t.say(Assigned, "assigned to the next process of its node")
}

func queue(t *step) {
	t.s.Stage, t.s.RetryAt = Waiting, time.Time{}
	t.say(Unspecified, "")
}

func gone(t *step) { t.s.Stage = Removed }

// say sets why the Run is where it is; an empty text is the reason's own.
func (t *step) say(r Reason, text string) {
	if text == "" {
		text = r.Sentence()
	}
	t.s.Reason, t.s.Message = r, text
}

// conditions derives both conditions; their time moves only with their status.
func (t *step) conditions() {
	set := func(c *Condition, status bool) {
		if c.Status != status {
			c.At = t.now
		}
		c.Status, c.Reason, c.Message = status, t.s.Reason, t.s.Message
	}
	set(&t.s.ScheduledCondition, t.s.Holds())
	set(&t.s.ReadyCondition, t.s.Stage == Ready)
}
