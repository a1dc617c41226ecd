package assignment

import "fmt"

// Mode is what kind of Run it is.
type Mode string

// The modes of a Run.
const (
	Function Mode = "function"
	Task     Mode = "task"
)

// Phase is where the attempt stands.
type Phase string

// The phases of an attempt.
const (
	New         Phase = "new"
	Preparing   Phase = "preparing"
	Registering Phase = "registering"
	Ready       Phase = "ready"
	Executing   Phase = "executing"
	Releasing   Phase = "releasing"
	Reporting   Phase = "reporting"
	Forgetting  Phase = "forgetting"
	Gone        Phase = "gone"
)

// Outcome is how the attempt ended on this node.
type Outcome string

// The outcomes of an attempt; empty while it goes on.
const (
	Failed    Outcome = "failed"
	Released  Outcome = "released"
	Finished  Outcome = "finished"
	Abandoned Outcome = "abandoned"
)

// Kind is what happened.
type Kind string

// What can happen to an attempt.
const (
	Start      Kind = "start"
	Prepared   Kind = "prepared"
	Registered Kind = "registered"
	// Ended: the task has ended and its result is known.
	Ended Kind = "ended"
	// Fail carries a reason of the closed list and a message.
	Fail Kind = "fail"
	// Release: the control plane wants it back.
	Release Kind = "release"
	// Refused: the control plane does not know this triple.
	Refused Kind = "refused"
	// Fence: the lease was lost.
	Fence    Kind = "fence"
	Cleaned  Kind = "cleaned"
	Reported Kind = "reported"
)

// Event is one thing that happened.
type Event struct {
	Kind Kind
	// Reason and Message belong to Fail, Reason to Release.
	Reason, Message string
	// Drain lets the call that runs end by itself; otherwise it is cut off.
	Drain bool
}

// Effect is what the driver does next, in order.
type Effect string

// What an attempt asks of its driver.
const (
	ReportStarted  Effect = "report-started"
	ReportReady    Effect = "report-ready"
	ReportFailed   Effect = "report-failed"
	ReportReleased Effect = "report-released"
	ReportFinished Effect = "report-finished"
	Prepare        Effect = "prepare"
	Register       Effect = "register"
	Execute        Effect = "execute"
	// Publish takes calls from now on and watches the registration.
	Publish Effect = "publish"
	// Withdraw takes no more calls.
	Withdraw Effect = "withdraw"
	// Clean ends what runs, unregisters or forgets it, and removes the folder.
	Clean Effect = "clean"
)

// State is one attempt.
type State struct {
	Mode    Mode
	Phase   Phase
	Outcome Outcome
	// Reason and Message say why it ended.
	Reason, Message string
	// Drain: see Event.
	Drain bool
}

// Begin returns an attempt at its start.
func Begin(mode Mode) State { return State{Mode: mode, Phase: New} }

// Leftover returns what an attempt is of which only its traces are left: it is to
// be cleaned, and then reported as released, or not at all.
func Leftover(mode Mode, outcome Outcome, reason string) (State, []Effect) {
	return State{Mode: mode, Phase: Releasing, Outcome: outcome, Reason: reason}, clean
}

// Apply returns the state after an event and what to do. An event that is not
// in the table is refused.
func (s State) Apply(e Event) (State, []Effect, error) {
	for _, r := range table {
		if r.matches(s, e.Kind) {
			return r.step(s, e), r.effects, nil
		}
	}
	return s, nil, fmt.Errorf("assignment is %s: %s has no place there", s.Phase, e.Kind)
}

// row is one transition. Empty mode and outcome match any.
type row struct {
	from    Phase
	on      Kind
	mode    Mode
	outcome Outcome
	to      Phase
	effects []Effect
	// keeps: the outcome stays what it was.
	keeps bool
}

func (r row) matches(s State, on Kind) bool {
	return r.from == s.Phase && r.on == on &&
		(r.mode == "" || r.mode == s.Mode) && (r.outcome == "" || r.outcome == s.Outcome)
}

func (r row) step(s State, e Event) State {
	if outcome := outcomes[e.Kind]; outcome != "" && !r.keeps && s.yields(outcome) {
		s.Outcome, s.Reason, s.Message = outcome, e.Reason, e.Message
		s.Drain = e.Drain
	}
	s.Phase = r.to
	return s
}

var outcomes = map[Kind]Outcome{
	Fail: Failed, Release: Released, Refused: Abandoned, Fence: Abandoned, Ended: Finished,
}

// rank orders outcomes: a higher one takes the place of a lower one. A task's
// result is never replaced.
var rank = map[Outcome]int{"": 0, Failed: 1, Released: 2, Abandoned: 3, Finished: 4}

func (s State) yields(to Outcome) bool { return rank[to] > rank[s.Outcome] }
