package lifecycle

import "time"

// Op is something that the driver does because a Run's state changed.
type Op string

// What Effects may ask for.
const (
	Enqueue Op = "enqueue" // the Run waits for a node
	Dequeue Op = "dequeue" // it no longer does
	Reserve Op = "reserve" // it takes a place on Node
	Free    Op = "free"    // it gives the place on Node back
	Tell    Op = "tell"    // what Node must know of it has changed
	Drop    Op = "drop"    // the Run is to be removed
)

// Effect is one Op, with the node it concerns.
type Effect struct {
	Op   Op
	Node string
}

// Effects says what follows from a change of state. From the zero State they are
// what a driver does that has just read the Run from its store. The sum of Reserve
// and Free over any history is one place a Run that holds one, whatever the path.
func Effects(before, after State) []Effect {
	var out []Effect
	add := func(op Op, node string) { out = append(out, Effect{op, node}) }
	if was, is := before.Stage == Waiting, after.Stage == Waiting; was != is {
		add(map[bool]Op{true: Enqueue, false: Dequeue}[is], "")
	}
	held, holds := before.Holds(), after.Holds()
	if held && (!holds || before.Node != after.Node) {
		add(Free, before.Node)
	}
	if holds && (!held || before.Node != after.Node) {
		add(Reserve, after.Node)
	}
	if holds && (before.Node != after.Node || before.Attempt != after.Attempt || (before.Stage == Releasing) != (after.Stage == Releasing)) {
		add(Tell, after.Node)
	}
	if after.Stage == Removed {
		add(Drop, "")
	}
	return out
}

// Due returns the next event that time alone brings, and when.
func Due(p Policy, s State) (Kind, time.Time, bool) {
	life := s.LifetimeEnd(p)
	switch s.Stage {
	case Ended:
		if p.TTL == nil {
			return "", time.Time{}, false
		}
		return TTLOver, s.FinishedAt.Add(*p.TTL), true
	case Backoff:
		if life.IsZero() || s.RetryAt.Before(life) {
			return BackoffOver, s.RetryAt, true
		}
	case Removed:
		return "", time.Time{}, false
	case Releasing:
		if s.Next != 0 {
			return "", time.Time{}, false
		}
	}
	return LifetimeOver, life, !life.IsZero()
}
