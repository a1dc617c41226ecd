package registration

import (
	"fmt"
	"time"
)

// Phase is where a registration is in its life.
type Phase string

// The phases; doc.go draws them.
const (
	Registering Phase = "registering"
	Ready       Phase = "ready"
	Busy        Phase = "busy"
	Draining    Phase = "draining"
	Failed      Phase = "failed"
	Closing     Phase = "closing"
	Gone        Phase = "gone"
)

// Kind names an event.
type Kind string

// The events: what the world reports and what callers ask for.
const (
	Loaded        Kind = "loaded"         // the handler can be called
	LoadFailed    Kind = "load-failed"    // the code raised, exited or took too long
	LoadInvalid   Kind = "load-invalid"   // the name is no function
	Invoke        Kind = "invoke"         // somebody calls the function
	Ended         Kind = "ended"          // the invocation is over, whatever its result
	Lost          Kind = "lost"           // it is over and no successor could be loaded
	Unregister    Kind = "unregister"     // drain, then release
	UnregisterNow Kind = "unregister-now" // cancel, then release
	DrainDeadline Kind = "drain-deadline" // the drain has lasted long enough
	Supersede     Kind = "supersede"      // a higher attempt took the Run
	Stop          Kind = "stop"           // the server is stopping
	Closed        Kind = "closed"         // no process is left
)

// Event is one input of the machine.
type Event struct {
	Kind Kind
	// Text is the fatal error of LoadFailed and Lost.
	Text string
	// Drain is how long Unregister waits for the invocation.
	Drain time.Duration
}

// Effect is something for the driver to do, in the order given.
type Effect string

// The effects.
const (
	StartLoad        Effect = "start-load"
	CancelLoad       Effect = "cancel-load"
	AnswerRegister   Effect = "answer-register" // the load is over: tell who waits
	StartInvocation  Effect = "start-invocation"
	CancelInvocation Effect = "cancel-invocation"
	StartDrain       Effect = "start-drain" // set the timer to State.DrainUntil
	StopDrain        Effect = "stop-drain"
	Close            Effect = "close"   // end every process, then report Closed
	Release          Effect = "release" // drop the registration, tell who waits for it
)

// State is everything the machine knows.
type State struct {
	Phase Phase
	// InFlight says that an invocation runs; in Closing it is being cancelled.
	InFlight bool
	// LastActivity is when the registration became Ready or an invocation began or
	// ended; zero before.
	LastActivity time.Time
	// Fatal is why the registration is Failed.
	Fatal string
	// DrainUntil is when a drain gives up; set while Draining.
	DrainUntil time.Time
	// Cause is the event that ended the registration's service.
	Cause Kind
}

// Refusal says that an event has no place in a phase. The driver turns those of
// callers into errors of the contract; any other is a mistake of the driver.
type Refusal struct {
	Phase Phase
	Kind  Kind
}

func (r *Refusal) Error() string {
	return fmt.Sprintf("registration in phase %s refuses %s", r.Phase, r.Kind)
}

// Start returns the first state and what to do in it.
func Start() (State, []Effect) {
	return State{Phase: Registering}, []Effect{StartLoad}
}

// Step takes one event. A refusal leaves the state as it was.
func Step(s State, e Event, now time.Time) (State, []Effect, error) {
	row, ok := table[s.Phase][e.Kind]
	if !ok {
		return s, nil, &Refusal{s.Phase, e.Kind}
	}
	next := s
	next.Phase = row.to
	next.note(s.Phase, e, now)
	return next, row.effects, nil
}

// note keeps the facts that go with a step.
func (s *State) note(from Phase, e Event, now time.Time) {
	switch e.Kind {
	case Loaded:
		if s.Phase == Ready {
			s.LastActivity = now
		}
	case Invoke:
		s.InFlight, s.LastActivity = true, now
	case Ended, Lost:
		s.InFlight, s.LastActivity = false, now
	}
	if s.Phase == Failed && from != Failed {
		s.Fatal = e.Text
	}
	if s.Phase == Draining && from != Draining {
		s.DrainUntil = now.Add(e.Drain)
	}
	if s.Phase != Draining {
		s.DrainUntil = time.Time{}
	}
	leaves := s.Phase == Draining || s.Phase == Closing
	if leaves && s.Cause == "" {
		s.Cause = e.Kind
	}
}
