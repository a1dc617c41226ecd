package lifecycle

import (
	"fmt"
	"time"
)

// fail judges an attempt that its node reports as failed, with nothing left there.
func fail(t *step) {
	t.close(t.e.Node)
	t.judge(t.e.Reason, t.e.Message)
}

// judge ends the Run or has it tried again, by what the reason means.
func (t *step) judge(r Reason, text string) {
	switch meanings[r].class {
	case timeout:
		t.end(TimedOut, r, text)
	case disruption:
		t.disrupt(r, text)
	case failure:
		t.s.Failures++
		if t.s.Failures >= max(t.p.MaxAttempts, 1) || !t.p.retryable(r) {
			t.end(Failed, r, text)
			return
		}
		t.backoff(t.s.Failures, r, text)
	default:
		t.end(Failed, r, text)
	}
}

// disrupt has the Run placed again without counting a failure: at once the first
// time, later with backoff.
func (t *step) disrupt(r Reason, text string) {
	if !t.p.retryable(r) {
		t.end(Failed, r, text)
		return
	}
	t.s.Disruptions++
	if t.s.Disruptions > 1 {
		t.backoff(t.s.Disruptions-1, r, text)
		return
	}
	t.s.Stage = Waiting
	t.say(r, text)
}

// backoff waits before attempt n+1 of its kind: the initial wait doubled n-1 times,
// at most the longest, less up to a quarter by the event's jitter.
func (t *step) backoff(n int, r Reason, text string) {
	t.s.Stage = Backoff
	t.s.RetryAt = t.now.Add(t.p.wait(n, t.e.Jitter))
	if text == "" {
		text = r.Sentence()
	}
	t.say(BackoffWait, fmt.Sprintf("waiting for the next attempt; the one before ended with %s: %s", r, text))
}

func (p Policy) wait(n int, jitter float64) time.Duration {
	wait, longest := p.InitialBackoff, p.MaxBackoff
	if wait <= 0 {
		wait = time.Second
	}
	if longest <= 0 {
		longest = time.Minute
	}
	for ; n > 1 && wait < longest; n-- {
		wait *= 2
	}
	wait = min(wait, longest)
	return wait - time.Duration(float64(wait)/4*jitter)
}

// finish judges a task that has ended.
func finish(t *step) {
	t.close(t.e.Node)
	t.result()
	switch {
	case t.e.Message != "":
		t.judge(ExitNonzero, t.e.Message)
	case t.e.ExitCode != 0:
		t.judge(ExitNonzero, fmt.Sprintf("the task ended with exit code %d", t.e.ExitCode))
	default:
		t.end(Succeeded, Completed, "")
	}
}

// finishReleasing lets a success that came before the release stand.
func finishReleasing(t *step) {
	if t.e.ExitCode == 0 && t.e.Message == "" {
		finish(t)
		return
	}
	t.result()
	settle(t)
}

func (t *step) result() {
	code := t.e.ExitCode
	t.s.ExitCode, t.s.Identity = &code, t.e.Identity
}

// handBack is a release that nobody asked for: the node gives the Run back.
func handBack(t *step) {
	t.close(t.e.Node)
	t.disrupt(NodeDrained, "")
}

// settle follows a release by the node's own word.
func settle(t *step) {
	t.close(t.e.Node)
	t.follow()
}

// forsake follows a release whose node is provably gone.
func forsake(t *step) {
	t.close("")
	t.follow()
}

func (t *step) follow() {
	next, reason, text := t.s.Next, t.s.NextReason, t.s.NextMessage
	t.s.Next, t.s.NextReason, t.s.NextMessage = 0, 0, ""
	if next == 0 {
		t.disrupt(reason, text)
		return
	}
	t.end(next, reason, text)
}

func lose(t *step) {
	t.close("")
	t.disrupt(NodeLost, "")
}

func drain(t *step)  { t.release(0, NodeDrained) }
func cancel(t *step) { t.s.CancelRequested = true; t.release(Cancelled, WasCancelled) }
func expire(t *step) { t.release(TimedOut, LifetimeExceeded) }

func remove(t *step) {
	t.mark()
	cancel(t)
}

// release asks the node for the Run back. What is decided first stays, but for a
// new placement, which a final phase overrules.
func (t *step) release(next Phase, r Reason) {
	if t.s.Stage == Releasing && t.s.Next != 0 {
		return
	}
	t.s.Stage = Releasing
	t.s.Next, t.s.NextReason = next, r
	t.say(r, "being released: "+r.Sentence())
}

func cancelled(t *step) {
	t.s.CancelRequested = true
	t.end(Cancelled, WasCancelled, "")
}

func expired(t *step) { t.end(TimedOut, LifetimeExceeded, "") }

func deleted(t *step) {
	t.mark()
	if t.s.Stage != Ended {
		cancelled(t)
		return
	}
	gone(t)
}

func (t *step) mark() {
	t.s.Deleting = true
	if t.s.DeletedAt.IsZero() {
		t.s.DeletedAt = t.now
	}
}

// close ends the attempt's hold on its node. by is the node whose report closed
// it, or empty.
func (t *step) close(by string) {
	t.s.Avoid, t.s.Settled = t.s.Node, by
	t.s.Node, t.s.Endpoint = "", ""
	t.s.ReadyAt = time.Time{}
}

// end is final. A Run whose deletion was asked for is removed in the same step.
func (t *step) end(outcome Phase, r Reason, text string) {
	t.s.Stage, t.s.Outcome, t.s.FinishedAt, t.s.RetryAt = Ended, outcome, t.now, time.Time{}
	t.say(r, text)
	if t.s.Deleting {
		t.s.Stage = Removed
	}
}
