package registration

import "time"

// Identity is what tells one registration of a Run from another.
type Identity struct {
	Attempt int32
	Digest  string
}

// Verdict is the fence's answer to a register call.
type Verdict string

// The verdicts.
const (
	Accept     Verdict = "accept"      // there is none: make one
	Join       Verdict = "join"        // the same one: answer with it
	Replace    Verdict = "supersede"   // a higher attempt: the old one ends
	Mismatch   Verdict = "mismatch"    // the same attempt with another digest
	Stale      Verdict = "stale"       // a lower attempt
	BeingEnded Verdict = "being-ended" // the same one, which is being unregistered
)

// Judge compares a register call with the registration that the Run has and with
// the highest attempt it ever had; zero values where there is none.
func Judge(wanted Identity, current Identity, phase Phase, highest int32) Verdict {
	switch {
	case wanted.Attempt < highest || wanted.Attempt < current.Attempt:
		return Stale
	case current.Attempt == 0:
		return Accept
	case wanted.Attempt > current.Attempt:
		return Replace
	case wanted.Digest != current.Digest:
		return Mismatch
	case phase == Draining || phase == Closing:
		return BeingEnded
	default:
		return Join
	}
}

// Attempts remembers the highest attempt of Runs without a registration, for a
// while and up to a bound; beyond it the oldest is forgotten. Not safe for
// concurrent use.
type Attempts struct {
	keep  time.Duration
	bound int
	byRun map[string]*remembered
	order []*remembered // by time; a note that a newer one replaced stands here on
}

type remembered struct {
	run     string
	attempt int32
	at      time.Time
}

// NewAttempts returns an empty memory.
func NewAttempts(keep time.Duration, bound int) *Attempts {
	return &Attempts{keep: keep, bound: bound, byRun: map[string]*remembered{}}
}

// Note remembers an attempt, unless a higher one is known.
func (a *Attempts) Note(run string, attempt int32, now time.Time) {
	if a.Highest(run, now) > attempt {
		return
	}
	r := &remembered{run, attempt, now}
	a.byRun[run] = r
	a.order = append(a.order, r)
	a.trim(now)
}

// Highest returns the highest attempt that is remembered, 0 for none.
func (a *Attempts) Highest(run string, now time.Time) int32 {
	r := a.byRun[run]
	if r == nil || now.Sub(r.at) >= a.keep {
		return 0
	}
	return r.attempt
}

// Len returns how many Runs are remembered.
func (a *Attempts) Len() int { return len(a.byRun) }

// trim forgets from the old end what is replaced, over time or over the bound.
func (a *Attempts) trim(now time.Time) {
	for len(a.order) > 0 {
		oldest := a.order[0]
		current := a.byRun[oldest.run] == oldest
		if current && now.Sub(oldest.at) < a.keep && len(a.byRun) <= a.bound {
			return
		}
		if current {
			delete(a.byRun, oldest.run)
		}
		a.order[0] = nil
		a.order = a.order[1:]
	}
}
