package lifecycle

import "time"

// Stage is the machine's own state, finer than the phase that users see.
type Stage string

// The stages; doc.go draws them.
const (
	Waiting   Stage = "Waiting"
	Backoff   Stage = "Backoff"
	Placed    Stage = "Placed"
	Starting  Stage = "Starting"
	Ready     Stage = "Ready"
	Releasing Stage = "Releasing"
	Ended     Stage = "Ended"
	Removed   Stage = "Removed"
)

// Phase is what users see; the numbers are those of hearth.v1.RunPhase.
type Phase int32

// The phases of hearth.v1.RunPhase.
const (
	Pending   Phase = 1
	Scheduled Phase = 2
	Running   Phase = 3
	Serving   Phase = 4 // READY
	Succeeded Phase = 5
	Failed    Phase = 6
	TimedOut  Phase = 7
	Cancelled Phase = 8
)

// Policy is what the spec says about the course of a Run; it never changes.
type Policy struct {
	// Task tells a one-shot execution from a function.
	Task bool
	// MaxAttempts is how many failures end the Run; 0 is 1.
	MaxAttempts int
	// InitialBackoff and MaxBackoff bound the wait before a further attempt; 0 is
	// 1 s and 60 s.
	InitialBackoff, MaxBackoff time.Duration
	// Retryable are the reasons that may be tried again; empty: all but the
	// permanent ones.
	Retryable []Reason
	// Timeout is the longest lifetime of the reservation, counted from the first
	// placement; 0: without bound.
	Timeout time.Duration
	// TTL is how long an ended Run is kept; nil: until it is deleted.
	TTL *time.Duration
}

// Condition is one of a Run's two conditions.
type Condition struct {
	Status  bool
	Reason  Reason
	Message string
	// At is when Status last changed.
	At time.Time
}

// State is where a Run stands. It is stored as it is: fields are added, never
// renamed, and Reason and Phase keep their numbers.
type State struct {
	Stage Stage
	// Outcome is the phase of an ended Run.
	Outcome Phase `json:",omitempty"`
	Reason  Reason
	Message string `json:",omitempty"`

	// Attempt numbers the placements of the Run, from 1.
	Attempt int `json:",omitempty"`
	// Failures are the attempts that counted against MaxAttempts.
	Failures int `json:",omitempty"`
	// Disruptions counts the attempts in a row that were disrupted without having
	// been ready.
	Disruptions int `json:",omitempty"`

	// Node and Endpoint are set while a reservation is held.
	Node     string `json:",omitempty"`
	Endpoint string `json:",omitempty"`
	// LogEndpoint is Endpoint, and stays when the reservation ends: the log of a Run
	// outlives it.
	LogEndpoint string `json:",omitempty"`
	// Settled is the node whose report closed the attempt: its repeats are welcome.
	Settled string `json:",omitempty"`
	// Avoid is the node of the attempt before, which the next placement goes round
	// if it can.
	Avoid string `json:",omitempty"`

	// Next says what a release leads to: a final phase, or 0 for a new placement.
	Next        Phase  `json:",omitempty"`
	NextReason  Reason `json:",omitempty"`
	NextMessage string `json:",omitempty"`

	// CancelRequested and Deleting never turn false again.
	CancelRequested bool `json:",omitempty"`
	Deleting        bool `json:",omitempty"`

	// ExitCode is a task's, once it has ended.
	ExitCode *int `json:",omitempty"`
	// Identity is the commit or archive that the source was resolved to.
	Identity string `json:",omitempty"`

	CreatedAt   time.Time
	FirstPlaced time.Time `json:",omitzero"`
	PlacedAt    time.Time `json:",omitzero"`
	StartedAt   time.Time `json:",omitzero"`
	ReadyAt     time.Time `json:",omitzero"`
	FinishedAt  time.Time `json:",omitzero"`
	RetryAt     time.Time `json:",omitzero"`
	DeletedAt   time.Time `json:",omitzero"`

	ScheduledCondition Condition
	ReadyCondition     Condition
}

// New is the state of a Run that was just created.
func New(now time.Time) State {
	s := State{Stage: Waiting, Message: "waiting to be placed", CreatedAt: now}
	s.ScheduledCondition.At, s.ReadyCondition.At = now, now
	s.ScheduledCondition.Message, s.ReadyCondition.Message = s.Message, s.Message
	return s
}

// Holds says whether the Run holds a reservation on its node.
func (s State) Holds() bool {
	switch s.Stage {
	case Placed, Starting, Ready, Releasing:
		return true
	}
	return false
}

// Phase is what users see of the stage.
func (s State) Phase() Phase {
	switch s.Stage {
	case Waiting, Backoff:
		return Pending
	case Placed:
		return Scheduled
	case Starting:
		return Running
	case Ready:
		return Serving
	case Releasing:
		if s.StartedAt.IsZero() {
			return Scheduled
		}
		return Running
	}
	return s.Outcome
}

// LifetimeEnd is when the Run's lifetime is over; zero without a bound or before
// the first placement.
func (s State) LifetimeEnd(p Policy) time.Time {
	if p.Timeout <= 0 || s.FirstPlaced.IsZero() {
		return time.Time{}
	}
	return s.FirstPlaced.Add(p.Timeout)
}
