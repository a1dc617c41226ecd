package runtimetest

import (
	"context"
	"time"

	"connectrpc.com/connect/v2"
)

func timeoutCases() []Case {
	return []Case{
		must("FR-TIM-01", invocation, "An invocation whose timeout passes is DeadlineExceeded.", timeoutPasses, "hold"),
		must("FR-TIM-02", invocation, "A timeout is this invocation's affair: the registration stays READY and the next call runs.", timeoutIsLocal, "hold"),
		must("FR-TIM-03", invocation, "A timeout of 1 ms is DeadlineExceeded.", timeoutShort, "hold"),
		must("FR-TIM-04", notesOpen, "A negative timeout is InvalidArgument.", timeoutNegative, "echo"),
		should("FR-TIM-05", notesOpen, "A timeout beyond 15 minutes is InvalidArgument.", timeoutLong, "echo"),
		must("FR-TIM-06", notesOpen, "A timeout of 15 minutes is taken.", timeoutLongest, "echo"),
		must("FR-TIM-07", invocation, "A timeout of 0 is the default, not none: the call runs.", timeoutZero, "hold"),
		must("FR-TIM-08", invocation, "A timeout of 0 ends the call after the default.", timeoutDefault, "hold", needCallTime),
		must("FR-TIM-09", notesOpen, "The deadline of the RPC cuts the timeout: the invocation ends with it.", timeoutRPC, "hold"),
		must("FR-TIM-10", builtin, "A caller that goes away cancels its invocation; the registration stays READY and the next call runs.", timeoutCancel, "hold"),
		must("FR-TIM-11", notesOpen, "A handler that was cancelled does not go on: it never gets to its end.", timeoutStops, "hold"),
		must("FR-TIM-12", notesOpen, "A handler that ignores TERM is ended by its timeout all the same.", timeoutStubborn, "stubborn"),
	}
}

// expire runs a holding fixture into a timeout.
func (f *function) expire(tag string, timeout time.Duration) error {
	req := f.request(tag)
	req.TimeoutMillis = timeout.Milliseconds()
	_, err := f.t.beginInvoke(req).wait(f.t)
	return err
}

// runs says that the next call works.
func (f *function) runs(tag string) {
	f.touch("release-" + tag)
	f.answers(tag, `"`+tag+`"`)
}

func timeoutPasses(t *T) {
	t.refused(t.ready("hold").expire("a", 100*time.Millisecond), "the invocation", connect.CodeDeadlineExceeded)
}

func timeoutIsLocal(t *T) {
	f := t.ready("hold")
	for _, tag := range []string{"a", "b"} {
		_ = f.expire(tag, 100*time.Millisecond)
		s := f.status()
		t.check(s.GetState() == stateReady, "the registration to stay READY", "%v", s.GetState())
		f.runs("next-" + tag)
	}
}

func timeoutShort(t *T) {
	f := t.ready("hold")
	t.refused(f.expire("a", time.Millisecond), "the invocation", connect.CodeDeadlineExceeded)
	f.runs("b")
}

func (f *function) timeout(millis int64) error {
	req := f.request(1)
	req.TimeoutMillis = millis
	_, err := f.t.beginInvoke(req).wait(f.t)
	return err
}

func timeoutNegative(t *T) {
	t.refused(t.ready("echo").timeout(-1), "timeout_millis -1", connect.CodeInvalidArgument)
}

func timeoutLong(t *T) {
	t.refused(t.ready("echo").timeout(15*60_000+1), "timeout_millis 900001", connect.CodeInvalidArgument)
}

func timeoutLongest(t *T) {
	t.ok(t.ready("echo").timeout(15*60_000), "timeout_millis 900000")
}

func timeoutZero(t *T) {
	f := t.ready("hold")
	running := f.hold("a")
	f.touch("release-a")
	res, err := running.wait(t)
	t.ok(err, "the invocation")
	t.answered(res, `"a"`)
}

func timeoutDefault(t *T) {
	f := t.ready("hold")
	_, err := f.hold("a").waitFor(t, t.target.Times.Invoke+t.soon)
	t.refused(err, "the invocation", connect.CodeDeadlineExceeded)
}

func timeoutRPC(t *T) {
	f := t.ready("hold")
	p := begin(t, func(ctx context.Context) (*invoked, error) {
		ctx, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
		defer cancel()
		return t.functions.InvokeFunction(ctx, f.request("a"))
	})
	_, err := p.wait(t)
	t.check(err != nil && connect.CodeOf(err) == connect.CodeDeadlineExceeded, "DeadlineExceeded", "%s", verdict(err))
	f.idle()
	f.runs("b")
}

func timeoutCancel(t *T) {
	f := t.ready("hold")
	f.hold("a").cancel()
	f.idle()
	t.check(f.status().GetState() == stateReady, "the registration to stay READY", "%v", f.status().GetState())
	f.runs("b")
}

func timeoutStops(t *T) {
	f := t.ready("hold")
	f.hold("a").cancel()
	f.idle()
	f.touch("release-a")
	f.runs("b")
	t.pause(100 * time.Millisecond)
	t.check(!f.there("ended-a"), "the cancelled handler never to end", "it ended as if nothing had happened")
}

func timeoutStubborn(t *T) {
	f := t.ready("stubborn")
	t.refused(f.expire("a", 300*time.Millisecond), "the invocation", connect.CodeDeadlineExceeded)
	f.idle()
	f.runs("b")
}
