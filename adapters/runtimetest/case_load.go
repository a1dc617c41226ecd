package runtimetest

import (
	"context"
	"strconv"
	"time"
	"unicode/utf8"

	"connectrpc.com/connect/v2"
)

func loadCases() []Case {
	return []Case{
		must("FR-LOD-01", notesOpen, "A load goes on when its caller's deadline has passed, and the repeat joins it.", loadOutlivesCaller, "load_slow"),
		must("FR-LOD-02", notesOpen, "A caller whose deadline passes during a load gets DeadlineExceeded.", loadDeadline, "load_slow"),
		must("FR-LOD-03", semantics, "While a load runs the Run has a registration: another ID is FailedPrecondition, not NotFound.", loadIsThere, "load_slow"),
		must("FR-LOD-04", semantics, "Code that raises while it loads makes the registration FAILED, with the reason in fatal_error.", loadFails("load_raise"), "load_raise"),
		must("FR-LOD-05", semantics, "Code that ends its process while it loads makes the registration FAILED, with the reason in fatal_error.", loadFails("load_exit"), "load_exit"),
		must("FR-LOD-06", notesOpen, "A load that hangs becomes FAILED after the load limit.", loadTimesOut, "load_hang", needLoadTime),
		must("FR-LOD-07", notesOpen, "A load that hangs gives way to a higher attempt.", loadHangSuperseded, "load_hang", "echo"),
		must("FR-LOD-08", notesOpen, "A load that prints a megabyte becomes READY, and nothing of it reaches an answer.", loadLoud, "load_loud"),
		must("FR-LOD-09", notesOpen, "A load that starts a daemon is answered at once and works.", loadDaemon, "load_daemon"),
		must("FR-LOD-10", semantics, "Repeating a failed attempt answers FAILED with the same ID and loads nothing again.", loadFailedRepeat, "load_raise"),
		must("FR-LOD-11", identity, "A higher attempt after a failed one starts anew.", loadFailedThenHigher, "load_raise", "echo"),
		must("FR-LOD-12", notesLimits, "fatal_error is at most 4 KiB of whole characters.", loadFatalBound, "load_raise"),
	}
}

// slow begins a registration whose load waits for the file load-release.
func (t *T) slow() (*function, *pending[*registered]) {
	f := t.function("load_slow")
	p := f.beginRegister()
	t.eventually("the load to start", func() bool { return f.there("load-started") })
	return f, p
}

func loadOutlivesCaller(t *T) {
	f, p := t.slow()
	p.cancel()
	_, _ = p.wait(t)
	t.pause(250 * time.Millisecond) // the server hears of it after its caller
	repeat := f.beginRegister()
	f.touch("load-release")
	res, err := repeat.wait(t)
	t.ok(err, "the repeat")
	f.ref = res.GetRegistration()
	t.check(res.GetState() == stateReady, "the repeat to answer READY", "%v", res.GetState())
	t.check(f.lines("loads") == 1, "one load", "%d loads", f.lines("loads"))
	f.answers(1, "1")
}

func loadDeadline(t *T) {
	f := t.function("load_slow")
	p := begin(t, func(ctx context.Context) (*registered, error) {
		ctx, cancel := context.WithTimeout(ctx, t.soon/10)
		defer cancel()
		return t.functions.RegisterFunction(ctx, f.req)
	})
	_, err := p.wait(t)
	t.check(err != nil && connect.CodeOf(err) == connect.CodeDeadlineExceeded, "DeadlineExceeded", "%s", verdict(err))
	f.touch("load-release")
	f.becomeReady()
}

func loadIsThere(t *T) {
	f, p := t.slow()
	_, err := t.status(f.stranger())
	t.refused(err, "FunctionStatus with an unknown ID during the load", connect.CodeFailedPrecondition)
	stranger := *f
	stranger.ref = f.stranger()
	_, err = stranger.invoke(1)
	t.refused(err, "an invocation with an unknown ID during the load", connect.CodeFailedPrecondition)
	f.touch("load-release")
	res, err := p.wait(t)
	t.ok(err, "RegisterFunction")
	f.ref = res.GetRegistration()
}

func loadFails(behaviour string) func(*T) {
	return func(t *T) {
		f := t.function(behaviour)
		f.becomes(stateFailed)
		s := f.status()
		t.check(s.GetState() == stateFailed, "FunctionStatus to say FAILED", "%v", s.GetState())
		t.check(s.GetFatalError() != "", "fatal_error to say why", "nothing in it")
	}
}

func loadTimesOut(t *T) {
	f := t.function("load_hang")
	f.req.Env = map[string]string{"TOKEN": strconv.FormatInt(token(), 10)}
	res, err := f.beginRegister().waitFor(t, t.target.Times.Load+t.soon)
	t.ok(err, "RegisterFunction")
	f.ref = res.GetRegistration()
	t.check(res.GetState() == stateFailed, "FAILED", "%v", res.GetState())
	t.check(f.status().GetFatalError() != "", "fatal_error to say why", "nothing in it")
}

func (t *T) hang() (*function, int64) {
	f, tok := t.function("load_hang"), token()
	f.req.Env = map[string]string{"TOKEN": strconv.FormatInt(tok, 10)}
	f.beginRegister()
	t.eventually("the load to start", func() bool { return f.there("load-started") })
	return f, tok
}

func loadHangSuperseded(t *T) {
	f, _ := t.hang()
	next := f.attempt(2, "echo")
	next.becomeReady()
	next.answers(1, "1")
}

func loadLoud(t *T) {
	f := t.ready("load_loud")
	for i := range 3 {
		f.answers(i, strconv.Itoa(i))
	}
}

func loadDaemon(t *T) {
	f := t.function("load_daemon")
	f.req.Env = map[string]string{"TOKEN": strconv.FormatInt(token(), 10)}
	f.becomeReady()
	f.answers(1, "1")
}

func loadFailedRepeat(t *T) {
	f := t.function("load_raise")
	f.becomes(stateFailed)
	first := f.ref.GetRegistrationId()
	f.becomes(stateFailed)
	t.check(f.ref.GetRegistrationId() == first, "the same ID", "another")
	t.check(f.lines("loads") == 1, "one load", "%d loads", f.lines("loads"))
}

func loadFailedThenHigher(t *T) {
	f := t.function("load_raise")
	f.becomes(stateFailed)
	next := f.attempt(2, "echo")
	next.becomeReady()
	t.check(next.ref.GetRegistrationId() != f.ref.GetRegistrationId(), "a new ID", "the old one")
	t.check(next.status().GetFatalError() == "", "no fatal_error", "%q", next.status().GetFatalError())
	next.answers(1, "1")
}

func loadFatalBound(t *T) {
	f := t.function("load_raise")
	f.becomes(stateFailed)
	text := f.status().GetFatalError()
	t.check(len(text) > 0 && len(text) <= 4096, "1 to 4096 bytes of fatal_error", "%d bytes", len(text))
	t.check(utf8.ValidString(text), "whole characters", "half a character")
}

// pause is for what must not happen: the time in which it would.
func (t *T) pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.ctx.Done():
	}
}
