package lifecycle

import "slices"

// Reason says why a Run is where it is; the numbers are those of
// hearth.v1.RunReason.
type Reason int32

// The reasons of hearth.v1.RunReason.
const (
	Unspecified          Reason = 0
	NoCapacity           Reason = 1
	NoNode               Reason = 2
	ModeUnsupported      Reason = 3
	BackoffWait          Reason = 4
	Assigned             Reason = 5
	Preparing            Reason = 6
	IsReady              Reason = 7
	Completed            Reason = 8
	HandlerInvalid       Reason = 9
	SourceInvalid        Reason = 10
	RuntimeUnsupported   Reason = 11
	IdleTimeout          Reason = 12
	LifetimeExceeded     Reason = 13
	WasCancelled         Reason = 14
	InitializationFailed Reason = 15
	RuntimeUnavailable   Reason = 16
	RegistrationLost     Reason = 17
	NodeLost             Reason = 18
	NodeDrained          Reason = 19
	SourceUnavailable    Reason = 20
	ExitNonzero          Reason = 21
	ExecutionLost        Reason = 22
)

// class says what a reason means for an attempt that it ends.
type class int

const (
	// progress does not end an attempt: no report may name it as its failure.
	progress class = iota
	// permanent ends the Run, whatever the policy says.
	permanent
	// timeout ends the Run as TIMEOUT.
	timeout
	// failure counts against the policy.
	failure
	// disruption is nobody's fault in the Run and does not count.
	disruption
)

type meaning struct {
	name  string
	class class
	text  string
}

// meanings is read only: what each reason is called, means and says.
var meanings = map[Reason]meaning{
	Unspecified:          {"-", progress, "waiting to be placed"},
	NoCapacity:           {"NO_CAPACITY", progress, "waiting: every node of this runtime is full; it is placed as soon as one has room"},
	NoNode:               {"NO_NODE", progress, "waiting: no live node has this runtime; start a runtimed for it"},
	ModeUnsupported:      {"MODE_UNSUPPORTED", progress, "waiting: no live node of this runtime supports this mode"},
	BackoffWait:          {"BACKOFF", progress, "waiting for the next attempt"},
	Assigned:             {"ASSIGNED", progress, "assigned to a node"},
	Preparing:            {"PREPARING", progress, "the node prepares the source and starts the code"},
	IsReady:              {"READY", progress, "the function answers invocations"},
	Completed:            {"COMPLETED", progress, "the task ended with exit code 0"},
	HandlerInvalid:       {"HANDLER_INVALID", permanent, "the handler cannot be one"},
	SourceInvalid:        {"SOURCE_INVALID", permanent, "the source cannot be used"},
	RuntimeUnsupported:   {"RUNTIME_UNSUPPORTED", permanent, "the Runtime Server does not support this mode"},
	IdleTimeout:          {"IDLE_TIMEOUT", timeout, "no invocation came within idle_timeout"},
	LifetimeExceeded:     {"LIFETIME_EXCEEDED", timeout, "the lifetime set by timeout is over"},
	WasCancelled:         {"CANCELLED", progress, "cancelled on request"},
	InitializationFailed: {"INITIALIZATION_FAILED", failure, "the function could not be initialized"},
	RuntimeUnavailable:   {"RUNTIME_UNAVAILABLE", disruption, "the Runtime Server could not be reached"},
	RegistrationLost:     {"REGISTRATION_LOST", disruption, "the Runtime Server no longer knows the function"},
	NodeLost:             {"NODE_LOST", disruption, "the node was lost"},
	NodeDrained:          {"NODE_DRAINED", disruption, "the node was drained"},
	SourceUnavailable:    {"SOURCE_UNAVAILABLE", failure, "the source could not be fetched"},
	ExitNonzero:          {"EXIT_NONZERO", failure, "the task ended with an exit code other than 0"},
	ExecutionLost:        {"EXECUTION_LOST", disruption, "the Runtime Server no longer knows the execution"},
}

// String is the name on the wire, without its RUN_REASON_ prefix.
func (r Reason) String() string { return meanings[r].name }

// Sentence is the fixed text of the reason.
func (r Reason) Sentence() string { return meanings[r].text }

// EndsAttempt says whether a node may report the reason as that of a failed attempt.
func (r Reason) EndsAttempt() bool { return meanings[r].class != progress }

// retryable says whether the policy lets the reason be tried again.
func (p Policy) retryable(r Reason) bool {
	switch meanings[r].class {
	case disruption:
		// A function is a standing service and always moves. A task may have had
		// its effects already: who wants none of that leaves the reason out.
		return !p.Task || p.lists(r)
	case failure:
		return p.lists(r)
	}
	return false
}

func (p Policy) lists(r Reason) bool {
	return len(p.Retryable) == 0 || slices.Contains(p.Retryable, r)
}
