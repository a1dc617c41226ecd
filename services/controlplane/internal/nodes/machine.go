package nodes

import (
	"errors"
	"fmt"
	"time"
)

// Phase is where a node stands.
type Phase string

// The phases; doc.go draws them. The empty phase is that of a node nobody knows.
const (
	Unknown  Phase = ""
	Live     Phase = "Live"
	Draining Phase = "Draining"
	Fenced   Phase = "Fenced"
	Lost     Phase = "Lost"
	Gone     Phase = "Gone"
)

// Kind names what happened to a node.
type Kind string

// The events.
const (
	Register  Kind = "Register"  // a process says that it is this node
	Renew     Kind = "Renew"     // it promises to serve for another lease
	Drain     Kind = "Drain"     // it shall have no Runs any more
	Supersede Kind = "Supersede" // another process took its name
	Bury      Kind = "Bury"      // its process is known to be dead
	Recover   Kind = "Recover"   // the control plane has restarted
	Tick      Kind = "Tick"      // time has passed
)

// Effect is what the driver must do.
type Effect string

// The effects.
const (
	Vacate Effect = "vacate" // release the Runs that it has, to place them elsewhere
	HandOn Effect = "handon" // its Runs are free: it serves none
	Forget Effect = "forget" // remove it
)

// Terms are the durations of the promise.
type Terms struct {
	// Lease is what a renewal grants to the node.
	Lease time.Duration
	// Margin is how much longer this side waits.
	Margin time.Duration
	// Keep is how long a lost node is still listed.
	Keep time.Duration
}

// State is a node's.
type State struct {
	Phase Phase
	// Until is when, for this side, the lease has ended. Not stored: see Recover.
	Until time.Time `json:"-"`
	// LostAt is when it was found lost.
	LostAt time.Time `json:",omitzero"`
}

// Placeable says whether the node may be given Runs.
func (s State) Placeable() bool { return s.Phase == Live }

// May says whether the node may still speak for its Runs.
func (s State) May() bool { return s.Phase == Live || s.Phase == Draining }

// Why an event was refused.
var (
	// ErrFenced: the node's promise is over; it registers again under a new uid.
	ErrFenced = errors.New("nodes: fenced")
	// ErrRefused: the phase knows no such event.
	ErrRefused = errors.New("nodes: refused")
)

type step struct {
	terms Terms
	s     State
	now   time.Time
	out   []Effect
}

type transition func(*step) error

// table is the machine: what is not in it is refused.
var table = map[Phase]map[Kind]transition{
	Unknown:  {Register: register},
	Live:     {Register: grant, Renew: grant, Drain: drain, Supersede: fence, Bury: lose, Recover: grant, Tick: expire},
	Draining: {Register: grant, Renew: grant, Drain: keep, Supersede: fence, Bury: lose, Recover: grant, Tick: expire},
	Fenced:   {Register: refuse, Renew: refuse, Drain: keep, Supersede: keep, Bury: lose, Recover: grant, Tick: expire},
	Lost:     {Register: refuse, Renew: refuse, Drain: keep, Supersede: keep, Bury: keep, Recover: keep, Tick: forget},
}

// Apply returns the state that e leads to and what follows, or why it was refused.
// For Register and Renew, now is when the request was received.
func Apply(terms Terms, s State, e Kind, now time.Time) (State, []Effect, error) {
	act, ok := table[s.Phase][e]
	if !ok {
		return s, nil, fmt.Errorf("%w: %s in %s", ErrRefused, e, s.Phase)
	}
	st := step{terms: terms, s: s, now: now}
	if err := act(&st); err != nil {
		return s, nil, fmt.Errorf("%w: %s in %s", err, e, s.Phase)
	}
	return st.s, st.out, nil
}

// Due is when the next Tick is wanted.
func Due(terms Terms, s State) (time.Time, bool) {
	switch s.Phase {
	case Live, Draining, Fenced:
		return s.Until, true
	case Lost:
		return s.LostAt.Add(terms.Keep), true
	}
	return time.Time{}, false
}

func keep(*step) error   { return nil }
func refuse(*step) error { return ErrFenced }

func register(t *step) error {
	t.s.Phase = Live
	return grant(t)
}

// grant never shortens a lease: requests may be seen in another order than they
// were received.
func grant(t *step) error {
	if until := t.now.Add(t.terms.Lease + t.terms.Margin); until.After(t.s.Until) {
		t.s.Until = until
	}
	return nil
}

func drain(t *step) error {
	t.s.Phase, t.out = Draining, []Effect{Vacate}
	return nil
}

func fence(t *step) error {
	t.s.Phase = Fenced
	return nil
}

func expire(t *step) error {
	if t.now.Before(t.s.Until) {
		return nil
	}
	return lose(t)
}

func lose(t *step) error {
	t.s.Phase, t.s.LostAt, t.out = Lost, t.now, []Effect{HandOn}
	return nil
}

func forget(t *step) error {
	if !t.now.Before(t.s.LostAt.Add(t.terms.Keep)) {
		t.s.Phase, t.out = Gone, []Effect{Forget}
	}
	return nil
}
