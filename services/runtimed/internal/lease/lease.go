package lease

import (
	"fmt"
	"time"
)

// Phase is where the lease stands.
type Phase string

// The phases of a lease.
const (
	Vacant Phase = "vacant"
	Held   Phase = "held"
	Lost   Phase = "lost"
)

// Kind is what happened.
type Kind string

// What can happen to a lease.
const (
	// Grant is the control plane's answer to a request sent at Event.Sent.
	Grant Kind = "grant"
	// Tick is nothing but time.
	Tick Kind = "tick"
	// Refuse is the control plane saying that the lease is not ours.
	Refuse Kind = "refuse"
)

// Effect is what the driver does next.
type Effect string

// What a lease asks of its driver.
const (
	// Serve: calls may be taken until Lease.Deadline.
	Serve Effect = "serve"
	// Renew: ask for a renewal now.
	Renew Effect = "renew"
	// Stop: take no call, release everything, begin again under a new uid.
	Stop Effect = "stop"
)

// Lease is the state. The zero value is not used: see New.
type Lease struct {
	Phase Phase
	// Deadline is when serving ends; RenewAt when to ask for more.
	Deadline, RenewAt time.Duration
}

// Event is one thing that happened, at Now.
type Event struct {
	Kind Kind
	Now  time.Duration
	// Sent and Length belong to Grant.
	Sent, Length time.Duration
}

// New returns a lease that was not granted yet.
func New() Lease { return Lease{Phase: Vacant} }

// Serving says whether a call may be taken at now.
func (l Lease) Serving(now time.Duration) bool { return l.Phase == Held && now < l.Deadline }

// Apply returns the state after an event and what to do. An event that has no
// place in the state is refused.
func (l Lease) Apply(e Event) (Lease, []Effect, error) {
	next, ok := table[l.Phase][e.Kind]
	if !ok {
		return l, nil, fmt.Errorf("lease is %s: %s has no place there", l.Phase, e.Kind)
	}
	l, effects := next(l, e)
	return l, effects, nil
}

type step func(Lease, Event) (Lease, []Effect)

var table = map[Phase]map[Kind]step{
	Vacant: {Grant: granted, Refuse: lost},
	Held:   {Grant: regranted, Tick: ticked, Refuse: lost},
	Lost:   {Grant: same, Tick: same, Refuse: same},
}

func granted(_ Lease, e Event) (Lease, []Effect) {
	l := Lease{Phase: Held, Deadline: e.Sent + e.Length, RenewAt: e.Sent + e.Length/3}
	if e.Now >= l.Deadline {
		return lost(l, e)
	}
	return l, []Effect{Serve}
}

func regranted(l Lease, e Event) (Lease, []Effect) {
	if e.Now >= l.Deadline {
		return lost(l, e)
	}
	return granted(l, e)
}

// ticked asks for a renewal; until one is granted it asks again each tenth of
// what is left.
func ticked(l Lease, e Event) (Lease, []Effect) {
	switch {
	case e.Now >= l.Deadline:
		return lost(l, e)
	case e.Now < l.RenewAt:
		return l, nil
	}
	l.RenewAt = e.Now + max((l.Deadline-e.Now)/10, time.Millisecond)
	return l, []Effect{Renew}
}

func lost(Lease, Event) (Lease, []Effect) { return Lease{Phase: Lost}, []Effect{Stop} }

func same(l Lease, _ Event) (Lease, []Effect) { return l, nil }
