package lifecycle

import (
	"errors"
	"fmt"
)

// Kind names what happened to a Run.
type Kind string

// The events. Start, Report, Fail, Finish and Released come from the Run's node and
// are fenced; the others are the control plane's own.
const (
	Place        Kind = "Place"        // a node was chosen
	Unplaceable  Kind = "Unplaceable"  // none could be
	Start        Kind = "Start"        // the node has begun
	Report       Kind = "Report"       // the node says that the function answers
	Fail         Kind = "Fail"         // the attempt failed
	Finish       Kind = "Finish"       // the task ended
	Released     Kind = "Released"     // nothing of the attempt is left on the node
	Lose         Kind = "Lose"         // the node's lease has provably ended
	Adopt        Kind = "Adopt"        // the node's next process goes on in its place
	Drain        Kind = "Drain"        // the node is being drained
	Cancel       Kind = "Cancel"       // a user wants the end
	Delete       Kind = "Delete"       // a user wants the end and the removal
	LifetimeOver Kind = "LifetimeOver" // timeout has passed
	BackoffOver  Kind = "BackoffOver"  // the wait has passed
	TTLOver      Kind = "TTLOver"      // ttl_after_finish has passed
)

// Event is what happened. Which fields count depends on the kind.
type Event struct {
	Kind Kind
	// Attempt and Node fence what a node reports; Node is also where Place and
	// Adopt put the Run, Endpoint where that node serves.
	Attempt  int
	Node     string
	Endpoint string
	// Reason and Message say why, for Fail and Unplaceable.
	Reason  Reason
	Message string
	// Identity is what the source was resolved to, for Report and Finish.
	Identity string
	// ExitCode is the task's, for Finish; a Message there says that it could not
	// be run or was stopped.
	ExitCode int
	// Jitter in [0, 1) spreads the backoff that this event may start.
	Jitter float64
}

// Why an event was refused.
var (
	// ErrFenced: the report's attempt or node is not the Run's present one.
	ErrFenced = errors.New("lifecycle: fenced")
	// ErrRefused: the stage knows no such event.
	ErrRefused = errors.New("lifecycle: refused")
)

// fenced says whether the event must match the Run's present attempt.
func (k Kind) fenced() bool {
	switch k {
	case Start, Report, Fail, Finish, Released:
		return true
	}
	return false
}

// matches is the fence: the attempt's number, and the node that holds it or that
// has closed it by a report.
func (s State) matches(e Event) bool {
	holder := s.Node
	if !s.Holds() {
		holder = s.Settled
	}
	return e.Attempt == s.Attempt && e.Node == holder && holder != ""
}

func refusal(s State, e Event) error {
	return fmt.Errorf("%w: %s in %s", ErrRefused, e.Kind, s.Stage)
}
