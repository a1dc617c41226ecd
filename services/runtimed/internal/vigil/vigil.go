// Package vigil owns what the answers of FunctionStatus mean for a Run: idle,
// lost, failed, or well. It is pure.
//
//hearth:machine
package vigil

import (
	"fmt"
	"time"
)

// Answer is one answer, or the lack of one.
type Answer struct {
	// Kind says what came.
	Kind Kind
	// LastActivity is a moment of the Runtime Server's clock. It is compared with
	// other such moments only, never with a clock of ours.
	LastActivity int64
	InFlight     int32
	// Text is the fatal error, or why there was no answer.
	Text string
}

// Kind is what came.
type Kind string

// What FunctionStatus can come to.
const (
	Well        Kind = "well"
	Broken      Kind = "broken"
	Unknown     Kind = "unknown"
	Unsupported Kind = "unsupported"
	Silent      Kind = "silent"
)

// The reasons for which a registration ends, names of the closed list.
const (
	IdleTimeout     = "IDLE_TIMEOUT"
	InitFailed      = "INITIALIZATION_FAILED"
	Lost            = "REGISTRATION_LOST"
	Unavailable     = "RUNTIME_UNAVAILABLE"
	RuntimeUnfitted = "RUNTIME_UNSUPPORTED"
)

// Verdict is why the registration ends; the zero value: it does not.
type Verdict struct{ Reason, Message string }

// Vigil watches one registration.
type Vigil struct {
	// Idle is the idle timeout, 0 for none. Patience is how long the Runtime
	// Server may stay silent.
	Idle, Patience time.Duration

	activity int64
	// active is when we first saw activity, by our clock; silent since when there
	// was no answer, -1 while there is one.
	active, silent time.Duration
}

// New begins a watch at now, by a monotonic clock of ours.
func New(now, idle, patience time.Duration) *Vigil {
	return &Vigil{Idle: idle, Patience: patience, active: now, silent: -1}
}

// Observe takes one answer. How long a registration was idle is measured by our
// clock from when we first saw its latest activity: that is never too early, and
// late by one round of polling at most.
func (v *Vigil) Observe(now time.Duration, a Answer) Verdict {
	if a.Kind != Silent {
		v.silent = -1
	}
	switch a.Kind {
	case Broken:
		return Verdict{InitFailed, "the function can no longer run: " + a.Text}
	case Unknown:
		return Verdict{Lost, "the Runtime Server no longer knows the registration: " + a.Text}
	case Unsupported:
		return Verdict{RuntimeUnfitted, "the Runtime Server no longer supports functions"}
	case Silent:
		return v.wait(now, a.Text)
	}
	if a.InFlight > 0 || a.LastActivity != v.activity {
		v.activity, v.active = a.LastActivity, now
	}
	if v.Idle > 0 && now-v.active >= v.Idle {
		return Verdict{IdleTimeout, fmt.Sprintf("no invocation for %v", v.Idle)}
	}
	return Verdict{}
}

func (v *Vigil) wait(now time.Duration, text string) Verdict {
	if v.silent < 0 {
		v.silent = now
	}
	if now-v.silent >= v.Patience {
		return Verdict{Unavailable, fmt.Sprintf("the Runtime Server has not answered for %v: %s", v.Patience, text)}
	}
	return Verdict{}
}

// Next is how long to wait for the next poll: the cadence, or less where the idle
// timeout comes first.
func (v *Vigil) Next(now, cadence time.Duration) time.Duration {
	if v.Idle == 0 {
		return cadence
	}
	left := v.active + v.Idle - now
	return min(cadence, max(left, cadence/10))
}

// PollsPerSecond bounds what all Runs of a node together ask of its Runtime
// Server. A poll costs both ends about a millisecond of CPU together; a call that
// goes wrong is followed by one at once, however long the interval.
const PollsPerSecond = 25

// Cadence stretches the interval of one Run so that many Runs stay within
// PollsPerSecond.
func Cadence(interval time.Duration, runs int) time.Duration {
	return max(interval, time.Duration(runs)*time.Second/PollsPerSecond)
}
