package hotset

import (
	"fmt"
	"math"
	"time"
)

// Phase is where a set stands.
type Phase string

// The phases.
const (
	// Known: it was called, and nothing of it runs.
	Known Phase = "Known"
	// Growing: its imports are being done.
	Growing Phase = "Growing"
	// Live: containers can be forked from it.
	Live Phase = "Live"
	// Closing: its process is being ended.
	Closing Phase = "Closing"
	// Resting: it has died or could not be grown, and is tried again later.
	Resting Phase = "Resting"
	// Unfit: its imports cannot be forked safely; it is not tried again.
	Unfit Phase = "Unfit"
)

// Kind is what happened to a set.
type Kind string

// The events of one set.
const (
	Wanted  Kind = "wanted"  // it is worth a zygote
	Grown   Kind = "grown"   // its process stands; Event.Facts
	Refused Kind = "unfit"   // its imports are unsafe; Event.Why, Event.Module
	Failed  Kind = "failed"  // it could not be grown this time; Event.Why
	Died    Kind = "died"    // its process ended by itself; Event.Why
	Evicted Kind = "evicted" // others need its memory, or nobody wants it
	Closed  Kind = "closed"  // its process is gone
	Rested  Kind = "rested"  // it may be tried again
	Warmed  Kind = "warmed"  // somebody wants it whatever happened before
)

type rule struct {
	from Phase
	on   Kind
	to   Phase
}

// table lists every transition.
var table = []rule{
	{Known, Wanted, Growing},
	{Known, Warmed, Known},
	{Known, Refused, Unfit}, // a module of it was found unfit in another set
	{Growing, Grown, Live},
	{Growing, Refused, Unfit},
	{Growing, Failed, Resting},
	{Growing, Warmed, Growing},
	{Live, Died, Resting},
	{Live, Evicted, Closing},
	{Live, Warmed, Live},
	{Closing, Closed, Known},
	{Closing, Died, Closing}, // it is on its way
	{Closing, Warmed, Closing},
	{Resting, Rested, Known},
	{Resting, Warmed, Known},
	{Unfit, Warmed, Known},
}

// RefusedError says that an event has no place in a set's phase.
type RefusedError struct {
	Set   string
	Phase Phase
	Kind  Kind
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("set %s is %s: %s refused: no such transition", e.Set, e.Phase, e.Kind)
}

func step(p Phase, k Kind) (Phase, bool) {
	for _, r := range table {
		if r.from == p && r.on == k {
			return r.to, true
		}
	}
	return p, false
}

// Facts are what was measured when a set was grown.
type Facts struct {
	// Import is what its own imports took, beyond its parent's.
	Import time.Duration
	// Bytes is the memory that it added to its parent's.
	Bytes int64
	// Loaded are the top-level modules that it has; read of the root only.
	Loaded []string
}

// Set is one set of imports as the machine knows it. Read it, change nothing.
type Set struct {
	ID      string
	Modules []string // sorted; none: the root
	Phase   Phase
	// Pinned sets are kept whatever calls them.
	Pinned bool
	// Parent is what it was grown from, "" for the root.
	Parent string
	// Why it rests or is unfit.
	Why string
	// Import is the time of all its imports, its parents' included; Bytes is its own.
	Import time.Duration
	Bytes  int64
	// Pooled containers stand ready, Target are wanted, PoolBytes is the memory of one.
	Pooled, Target int
	PoolBytes      int64

	own      time.Duration // part of Import beyond the parent's
	measured bool
	warmed   bool // grow it once, whatever it is worth
	filling  int
	spare    int // how many more than Target may stay
	count    tally
	rate     tally
	pause    time.Duration
	until    time.Time // rests until
	grown    time.Time
	seq      int // of its growth
}

// Rate is how many calls a second took it, of late.
func (s *Set) Rate(now time.Time) float64 { return s.rate.at(now) / rateSpan.Seconds() }

// Count is the decayed number of its calls.
func (s *Set) Count(now time.Time) float64 { return s.count.at(now) }

func (s *Set) root() bool { return len(s.Modules) == 0 }

// tally is a number that decays by the exponential of time over span.
type tally struct {
	span  time.Duration
	value float64
	when  time.Time
}

func (t *tally) at(now time.Time) float64 {
	if t.value == 0 || !now.After(t.when) {
		return t.value
	}
	return t.value * math.Exp(-float64(now.Sub(t.when))/float64(t.span))
}

func (t *tally) add(now time.Time) {
	t.value = t.at(now) + 1
	t.when = now
}
