package runtimetest

import (
	"time"

	"connectrpc.com/connect/v2"
)

func statusCases() []Case {
	return []Case{
		must("FR-STA-01", semantics, "FunctionStatus of a ready registration answers READY and the registration that it was asked for.", statusReady, "echo"),
		must("FR-STA-02", semantics, "FunctionStatus of a Run with no registration is NotFound.", statusAbsent, "echo"),
		must("FR-STA-03", semantics, "FunctionStatus with a stale ID is FailedPrecondition.", statusStale, "echo"),
		must("FR-STA-04", notesOpen, "FunctionStatus with the current ID answers OK while the registration drains.", statusDraining, "hold"),
		must("FR-STA-05", notesOpen, "FunctionStatus with an empty registration ID is InvalidArgument.", statusEmptyID, "echo"),
		must("FR-STA-06", notesOpen, "FunctionStatus without a registration is InvalidArgument.", statusNothing),
		must("FR-STA-07", semantics, "last_activity_unix_nano is set when the registration becomes ready, in nanoseconds since the epoch.", activityAtReady, "echo"),
		must("FR-STA-08", semantics, "last_activity_unix_nano moves when an invocation starts.", activityAtStart, "hold"),
		must("FR-STA-09", semantics, "last_activity_unix_nano moves when an invocation ends.", activityAtEnd, "hold"),
		must("FR-STA-10", semantics, "FunctionStatus only reads: it moves no last_activity_unix_nano.", activityUnread, "echo"),
		must("FR-STA-11", semantics, "in_flight is 1 while an invocation runs.", inFlightOne, "hold"),
		must("FR-STA-12", semantics, "in_flight is 0 before and after an invocation.", inFlightZero, "echo"),
		must("FR-STA-13", semantics, "fatal_error is empty while the registration is ready, also after a call that failed.", fatalEmpty, "fail"),
		must("FR-STA-14", identity, "A registration ID is bound to its Run: with another Run's UID it is FailedPrecondition.", statusForeign, "echo"),
	}
}

func statusReady(t *T) {
	f := t.ready("echo")
	s := f.status()
	t.check(s.GetState() == stateReady, "READY", "%v", s.GetState())
	t.check(s.GetRegistration().GetRunUid() == f.ref.GetRunUid() && s.GetRegistration().GetRegistrationId() == f.ref.GetRegistrationId(),
		"the registration "+f.ref.String(), "%v", s.GetRegistration())
}

func statusAbsent(t *T) {
	_, err := t.status(t.function("echo").stranger())
	t.refused(err, "FunctionStatus of an unknown Run", connect.CodeNotFound)
}

func statusStale(t *T) {
	f := t.ready("echo")
	f.attempt(2, "echo").becomeReady()
	_, err := t.status(f.ref)
	t.refused(err, "FunctionStatus with a stale ID", connect.CodeFailedPrecondition, "REGISTRATION_STALE")
}

func statusDraining(t *T) {
	f := t.ready("hold")
	running := f.hold("a")
	draining := f.beginDrain(60_000)
	f.reaches(stateDraining)
	f.touch("release-a")
	_, err := running.wait(t)
	t.ok(err, "the invocation")
	_, err = draining.wait(t)
	t.ok(err, "UnregisterFunction")
}

func statusEmptyID(t *T) {
	f := t.ready("echo")
	_, err := t.status(&registration{RunUid: f.req.GetRunUid()})
	t.refused(err, "an empty registration ID", connect.CodeInvalidArgument)
}

func statusNothing(t *T) {
	_, err := t.status(nil)
	t.refused(err, "no registration", connect.CodeInvalidArgument)
}

// activityAtReady allows clocks of different machines to differ by a day: the
// unit is what matters.
func activityAtReady(t *T) {
	f := t.ready("echo")
	at := f.status().GetLastActivityUnixNano()
	t.check(time.Since(time.Unix(0, at)).Abs() < 24*time.Hour, "a time near now in nanoseconds", "%d", at)
}

func activityAtStart(t *T) {
	f := t.ready("hold")
	before := f.status().GetLastActivityUnixNano()
	running := f.hold("a")
	during := f.status().GetLastActivityUnixNano()
	t.check(during > before, "a later time than before the call", "%d after %d", during, before)
	f.touch("release-a")
	_, err := running.wait(t)
	t.ok(err, "the invocation")
}

func activityAtEnd(t *T) {
	f := t.ready("hold")
	running := f.hold("a")
	during := f.status().GetLastActivityUnixNano()
	f.touch("release-a")
	_, err := running.wait(t)
	t.ok(err, "the invocation")
	f.idle()
	after := f.status().GetLastActivityUnixNano()
	t.check(after > during, "a later time than during the call", "%d after %d", after, during)
}

func activityUnread(t *T) {
	f := t.ready("echo")
	first := f.status().GetLastActivityUnixNano()
	for range 5 {
		again := f.status().GetLastActivityUnixNano()
		t.check(again == first, "the same time", "%d after %d", again, first)
	}
}

func inFlightOne(t *T) {
	f := t.ready("hold")
	running := f.hold("a")
	n := f.status().GetInFlight()
	t.check(n == 1, "in_flight 1", "%d", n)
	f.touch("release-a")
	_, err := running.wait(t)
	t.ok(err, "the invocation")
}

func inFlightZero(t *T) {
	f := t.ready("echo")
	t.check(f.status().GetInFlight() == 0, "in_flight 0 before", "%d", f.status().GetInFlight())
	f.answers(1, "1")
	f.idle()
}

func fatalEmpty(t *T) {
	f := t.ready("fail")
	_, _ = f.invoke(1)
	f.idle()
	s := f.status()
	t.check(s.GetState() == stateReady && s.GetFatalError() == "", "READY without fatal_error", "%v %q", s.GetState(), s.GetFatalError())
}

func statusForeign(t *T) {
	a, b := t.ready("echo"), t.ready("echo")
	mixed := &registration{RunUid: a.ref.GetRunUid(), RegistrationId: b.ref.GetRegistrationId()}
	_, err := t.status(mixed)
	t.refused(err, "another Run's ID", connect.CodeFailedPrecondition, "REGISTRATION_STALE")
}
