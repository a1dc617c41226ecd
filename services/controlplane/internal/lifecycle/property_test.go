package lifecycle

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// world plays nodes, users and time against the machine and checks what must hold
// on every path.
type world struct {
	p        Policy
	s        State
	now      time.Time
	reserved map[string]int
	queued   int
}

func (w *world) apply(t *rapid.T, e Event) {
	before := w.s
	after, err := Apply(w.p, before, e, w.now)
	if err != nil {
		if after != before || !errors.Is(err, ErrFenced) && !errors.Is(err, ErrRefused) {
			t.Fatalf("%s in %s: a refusal that changes: %v", e.Kind, before.Stage, err)
		}
		return
	}
	for _, effect := range Effects(before, after) {
		switch effect.Op {
		case Reserve:
			w.reserved[effect.Node]++
		case Free:
			w.reserved[effect.Node]--
		case Enqueue:
			w.queued++
		case Dequeue:
			w.queued--
		}
	}
	w.s = after
	w.check(t, before, e)
}

func (w *world) check(t *rapid.T, before State, e Event) {
	fail := func(what string) { t.Fatalf("%s in %s to %s: %s", e.Kind, before.Stage, w.s.Stage, what) }
	for node, n := range w.reserved {
		if want := map[bool]int{true: 1}[w.s.Holds() && w.s.Node == node]; n != want {
			fail(fmt.Sprintf("%d places on %s, want %d", n, node, want))
		}
	}
	if want := map[bool]int{true: 1}[w.s.Stage == Waiting]; w.queued != want {
		fail("not queued as it waits")
	}
	if w.s.Attempt < before.Attempt || w.s.Attempt > before.Attempt+1 || (w.s.Attempt != before.Attempt) != (e.Kind == Place) {
		fail("attempts move at a placement, by one")
	}
	if (w.s.Node != "") != w.s.Holds() {
		fail("a node without a place, or a place without a node")
	}
	if before.Stage == Ended && w.s.Stage != Ended && w.s.Stage != Removed {
		fail("an end is final")
	}
	if before.Stage == Ended && w.s.Outcome != before.Outcome {
		fail("an outcome is final")
	}
	if before.CancelRequested && !w.s.CancelRequested || before.Deleting && !w.s.Deleting {
		fail("a request was forgotten")
	}
	if w.s.CancelRequested && (w.s.Stage == Waiting || w.s.Stage == Backoff || w.s.Stage == Placed && e.Kind == Place) {
		fail("placed in spite of a cancel")
	}
	if w.s.ReadyCondition.Status != (w.s.Phase() == Serving) || w.s.ScheduledCondition.Status != w.s.Holds() {
		fail("conditions lie")
	}
	if w.s.Stage == Ended && (meanings[w.s.Reason].text == "" || w.s.Message == "" || w.s.FinishedAt.IsZero()) {
		fail("an end without a cause")
	}
	if w.s.Failures > max(w.p.MaxAttempts, 1) {
		fail("more failures than the budget")
	}
}

// Whatever nodes say and whenever, every path keeps the invariants, and what time
// brings is never refused.
func TestEveryPath(t *testing.T) {
	kinds := []Kind{Place, Unplaceable, Start, Report, Fail, Finish, Released, Lose, Adopt, Drain, Cancel, Delete}
	rapid.Check(t, func(t *rapid.T) {
		w := &world{now: epoch, s: New(epoch), reserved: map[string]int{}, queued: 1}
		w.p = Policy{Task: rapid.Bool().Draw(t, "task"), MaxAttempts: rapid.IntRange(0, 3).Draw(t, "attempts"),
			Timeout: time.Duration(rapid.IntRange(0, 20).Draw(t, "timeout")) * time.Second}
		if rapid.Bool().Draw(t, "ttl") {
			ttl := time.Duration(rapid.IntRange(0, 5).Draw(t, "ttl")) * time.Second
			w.p.TTL = &ttl
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			w.now = w.now.Add(time.Duration(rapid.IntRange(0, 2).Draw(t, "later")) * time.Second)
			if kind, at, ok := Due(w.p, w.s); ok && !at.After(w.now) {
				before := w.s
				w.apply(t, Event{Kind: kind})
				if w.s == before {
					t.Fatalf("%s was due in %s and did nothing", kind, before.Stage)
				}
				continue
			}
			e := Event{
				Kind: rapid.SampledFrom(kinds).Draw(t, "event"), Attempt: max(0, w.s.Attempt-rapid.IntRange(0, 1).Draw(t, "stale")),
				Node:   rapid.SampledFrom([]string{w.s.Node, "a", "b"}).Draw(t, "node"),
				Reason: Reason(rapid.IntRange(9, 22).Draw(t, "reason")), ExitCode: rapid.IntRange(0, 1).Draw(t, "exit"),
			}
			if e.Node == "" {
				e.Node = "c"
			}
			w.apply(t, e)
		}
	})
}

// A report of another attempt or node changes nothing, whatever it says.
func TestStaleReportsChangeNothing(t *testing.T) {
	for _, stage := range []Stage{Waiting, Backoff, Placed, Starting, Ready, Releasing, Ended} {
		for _, kind := range []Kind{Start, Report, Fail, Finish, Released} {
			for _, task := range []bool{false, true} {
				s := State{Stage: stage, Attempt: 2, Node: "a", Settled: "a"}
				for _, e := range []Event{
					{Kind: kind, Attempt: 1, Node: "a", Reason: InitializationFailed},
					{Kind: kind, Attempt: 3, Node: "a", Reason: InitializationFailed},
					{Kind: kind, Attempt: 2, Node: "b", Reason: InitializationFailed},
					{Kind: kind, Attempt: 2, Reason: InitializationFailed},
				} {
					if got, err := Apply(Policy{Task: task}, s, e, epoch); !errors.Is(err, ErrFenced) || got != s {
						t.Errorf("%v in %s: %v", e, stage, err)
					}
				}
			}
		}
	}
}
