package container

import (
	"fmt"
	"slices"
)

// Phase is where a container stands.
type Phase string

// The phases; Removed is the end.
const (
	Starting Phase = "Starting"
	Busy     Phase = "Busy"
	Idle     Phase = "Idle"
	Removed  Phase = "Removed"
)

// Kind is what happened.
type Kind string

// The events.
const (
	// Started: the executor answers.
	Started Kind = "started"
	// StartFailed: the sandbox or the executor did not come up.
	StartFailed Kind = "start-failed"
	// Acquired: a further call of the container's session.
	Acquired Kind = "acquired"
	// Finished: the call has ended; Event.Success says how.
	Finished Kind = "finished"
	// IdleExpired: nobody called for the idle time.
	IdleExpired Kind = "idle-expired"
	// Died: the container's process ended by itself.
	Died Kind = "died"
	// Stopped: the worker stops or somebody asked for the end.
	Stopped Kind = "stopped"
	// DestroyFailed: something of the container could not be removed.
	DestroyFailed Kind = "destroy-failed"
)

// Event is one happening.
type Event struct {
	Kind Kind
	// Session is the caller's, for Acquired.
	Session string
	// Success is the call's, for Finished.
	Success bool
}

// Effect is what has to be done after a transition, in this order.
type Effect string

// The effects.
const (
	ReportBusy    Effect = "report-busy"
	ReportReady   Effect = "report-ready"
	ReportRemoved Effect = "report-removed"
	ReportError   Effect = "report-error"
	ArmIdle       Effect = "arm-idle"
	DisarmIdle    Effect = "disarm-idle"
	Destroy       Effect = "destroy"
)

// State is a container's whole state.
type State struct {
	Phase Phase
	// Session is the one session that it serves; empty: one call.
	Session string
}

// New is a container that was just decided on.
func New(session string) State { return State{Phase: Starting, Session: session} }

// RefusedError says that an event has no place in a state.
type RefusedError struct {
	State State
	Event Event
	// Why is set where the event has a place but its content has not.
	Why string
}

func (e *RefusedError) Error() string {
	why := e.Why
	if why == "" {
		why = "no such transition"
	}
	return fmt.Sprintf("container is %s: %s refused: %s", e.State.Phase, e.Event.Kind, why)
}

type rule struct {
	from    Phase
	on      Kind
	when    func(State, Event) bool
	to      Phase
	effects []Effect
}

func always(State, Event) bool { return true }

func keeps(s State, e Event) bool { return e.Success && s.Session != "" }

func own(s State, e Event) bool { return s.Session != "" && s.Session == e.Session }

// table lists every transition; the first that fits counts.
var table = []rule{
	{Starting, Started, always, Busy, []Effect{ReportBusy}},
	{Starting, StartFailed, always, Removed, []Effect{ReportError, Destroy, ReportRemoved}},
	{Starting, Died, always, Removed, []Effect{ReportError, Destroy, ReportRemoved}},
	{Starting, Stopped, always, Removed, []Effect{Destroy, ReportRemoved}},

	{Busy, Finished, keeps, Idle, []Effect{ReportReady, ArmIdle}},
	{Busy, Finished, always, Removed, []Effect{Destroy, ReportRemoved}},
	{Busy, Died, always, Removed, []Effect{Destroy, ReportRemoved}},
	{Busy, Stopped, always, Removed, []Effect{Destroy, ReportRemoved}},

	{Idle, Acquired, own, Busy, []Effect{DisarmIdle, ReportBusy}},
	{Idle, IdleExpired, always, Removed, []Effect{Destroy, ReportRemoved}},
	{Idle, Died, always, Removed, []Effect{DisarmIdle, Destroy, ReportRemoved}},
	{Idle, Stopped, always, Removed, []Effect{DisarmIdle, Destroy, ReportRemoved}},

	// The end may be told of more than once: a process dies because it is
	// destroyed, a timer fires while a call comes in.
	{Removed, Died, always, Removed, nil},
	{Removed, Stopped, always, Removed, nil},
	{Removed, IdleExpired, always, Removed, nil},
	{Removed, Finished, always, Removed, nil},
	{Removed, DestroyFailed, always, Removed, []Effect{ReportError}},
	// A timer that fired as the call came in.
	{Busy, IdleExpired, always, Busy, nil},
}

// Step returns the state after an event and what has to be done, or a
// *RefusedError and the state as it was.
func Step(s State, e Event) (State, []Effect, error) {
	placed := false
	for _, r := range table {
		if r.from != s.Phase || r.on != e.Kind {
			continue
		}
		placed = true
		if r.when(s, e) {
			s.Phase = r.to
			return s, slices.Clone(r.effects), nil
		}
	}
	refused := &RefusedError{State: s, Event: e}
	if placed {
		refused.Why = fmt.Sprintf("it serves session %q, not %q", s.Session, e.Session)
	}
	return s, nil, refused
}
