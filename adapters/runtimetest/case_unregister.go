package runtimetest

import (
	"connectrpc.com/connect/v2"

	executorv1 "github.com/hearth-run/hearth/gen/executor/v1"
)

func unregisterCases() []Case {
	return []Case{
		must("FR-UNR-01", unregister, "After an unregister the Run has no registration: status and invocation are NotFound.", unregisterRemoves, "echo"),
		must("FR-UNR-02", unregister, "Unregistering an absent registration succeeds.", unregisterAbsent, "echo"),
		must("FR-UNR-03", unregister, "Unregistering a stale ID is FailedPrecondition and leaves the newer registration alone.", unregisterStale, "echo"),
		must("FR-UNR-04", unregister, "Unregistering twice succeeds twice.", unregisterTwice, "echo"),
		must("FR-UNR-05", notesOpen, "A second unregister during a drain joins the first.", unregisterJoins, "hold"),
		must("FR-UNR-06", unregister, "Without cancel_in_flight the invocation that runs is waited for and answers.", unregisterWaits, "hold"),
		must("FR-UNR-07", notesOpen, "When the drain timeout has passed the invocation is cancelled and the registration is gone.", unregisterGivesUp, "hold"),
		must("FR-UNR-08", unregister, "With cancel_in_flight the invocation is cancelled at once, whatever the drain timeout.", unregisterCancels, "hold"),
		must("FR-UNR-09", notesOpen, "A handler that ignores TERM does not keep a registration alive.", unregisterStubborn, "stubborn"),
		must("FR-UNR-10", notesOpen, "A negative drain timeout is InvalidArgument.", unregisterNegative, "echo"),
		should("FR-UNR-11", notesOpen, "A drain timeout beyond 5 minutes is InvalidArgument.", unregisterLong, "echo"),
		must("FR-UNR-12", notesOpen, "A drain timeout of 0 is the default, not none: the invocation is waited for.", unregisterZero, "hold"),
		must("FR-UNR-13", notesOpen, "A drain timeout of 0 ends after the default.", unregisterDefault, "hold", needDrainTime),
		must("FR-UNR-14", notesOpen, "Unregistering with an empty registration ID is InvalidArgument.", unregisterEmptyID, "echo"),
		must("FR-UNR-15", unregister, "A failed registration can be unregistered.", unregisterFailed, "load_raise"),
		must("FR-UNR-16", unregister, "The answer carries the registration that was unregistered.", unregisterAnswer, "echo"),
	}
}

func unregisterRemoves(t *T) {
	f := t.ready("echo")
	t.ok(f.unregister(), "UnregisterFunction")
	_, err := t.status(f.ref)
	t.refused(err, "FunctionStatus after an unregister", connect.CodeNotFound)
	_, err = f.invoke(1)
	t.refused(err, "an invocation after an unregister", connect.CodeNotFound)
}

func unregisterAbsent(t *T) {
	f := t.function("echo")
	f.ref = f.stranger()
	t.ok(f.unregister(), "UnregisterFunction of an unknown Run")
}

func unregisterStale(t *T) {
	f := t.ready("echo")
	next := f.attempt(2, "echo")
	next.becomeReady()
	t.refused(f.unregister(), "UnregisterFunction with a stale ID", connect.CodeFailedPrecondition, "REGISTRATION_STALE")
	next.answers(1, "1")
}

func unregisterTwice(t *T) {
	f := t.ready("echo")
	t.ok(f.unregister(), "the first UnregisterFunction")
	t.ok(f.unregister(), "the second UnregisterFunction")
}

func unregisterJoins(t *T) {
	f := t.ready("hold")
	running := f.hold("a")
	first := f.beginDrain(60_000)
	f.reaches(stateDraining)
	second := f.beginDrain(60_000)
	t.check(f.status().GetState() == stateDraining, "the registration to drain on", "%v", f.status().GetState())
	f.touch("release-a")
	_, err := running.wait(t)
	t.ok(err, "the invocation")
	for _, p := range []*pending[*unregistered]{first, second} {
		_, err := p.wait(t)
		t.ok(err, "each of two UnregisterFunction")
	}
	_, err = t.status(f.ref)
	t.refused(err, "FunctionStatus after the drain", connect.CodeNotFound)
}

func unregisterWaits(t *T) {
	f := t.ready("hold")
	running := f.hold("a")
	draining := f.beginDrain(60_000)
	f.reaches(stateDraining)
	t.check(!draining.ended(), "UnregisterFunction to wait", "it answered while the invocation ran")
	f.touch("release-a")
	res, err := running.wait(t)
	t.ok(err, "the invocation")
	t.answered(res, `"a"`)
	_, err = draining.wait(t)
	t.ok(err, "UnregisterFunction")
}

// drained fails the case unless an unregister has ended with its invocation
// cancelled and nothing left.
func (f *function) drained(p *pending[*unregistered], running *pending[*invoked]) {
	t := f.t
	_, err := p.wait(t)
	t.ok(err, "UnregisterFunction")
	_, err = running.wait(t)
	t.refused(err, "the invocation that was cut", connect.CodeCanceled)
	_, err = t.status(f.ref)
	t.refused(err, "FunctionStatus after the unregister", connect.CodeNotFound)
}

func unregisterGivesUp(t *T) {
	f := t.ready("hold")
	running := f.hold("a")
	f.drained(f.beginDrain(100), running)
}

func (f *function) beginCancel() *pending[*unregistered] {
	return f.t.beginUnregister(&executorv1.UnregisterFunctionRequest{Registration: f.ref, CancelInFlight: true, DrainTimeoutMillis: 300_000})
}

func unregisterCancels(t *T) {
	f := t.ready("hold")
	running := f.hold("a")
	f.drained(f.beginCancel(), running)
}

func unregisterStubborn(t *T) {
	f := t.ready("stubborn")
	running := f.hold("a")
	f.drained(f.beginCancel(), running)
}

func unregisterNegative(t *T) {
	_, err := t.ready("echo").beginDrain(-1).wait(t)
	t.refused(err, "drain_timeout_millis -1", connect.CodeInvalidArgument)
}

func unregisterLong(t *T) {
	_, err := t.ready("echo").beginDrain(300_001).wait(t)
	t.refused(err, "drain_timeout_millis 300001", connect.CodeInvalidArgument)
}

func unregisterZero(t *T) {
	f := t.ready("hold")
	running := f.hold("a")
	draining := f.beginDrain(0)
	f.reaches(stateDraining)
	f.touch("release-a")
	_, err := running.wait(t)
	t.ok(err, "the invocation")
	_, err = draining.wait(t)
	t.ok(err, "UnregisterFunction")
}

func unregisterDefault(t *T) {
	f := t.ready("hold")
	req := f.request("a")
	req.TimeoutMillis = 900_000
	running := f.holdWith(req, "a")
	_, err := f.beginDrain(0).waitFor(t, t.target.Times.Drain+t.soon)
	t.ok(err, "UnregisterFunction")
	_, err = running.wait(t)
	t.refused(err, "the invocation that was cut", connect.CodeCanceled)
}

func unregisterEmptyID(t *T) {
	f := t.ready("echo")
	_, err := t.beginUnregister(&executorv1.UnregisterFunctionRequest{Registration: &registration{RunUid: f.req.GetRunUid()}}).wait(t)
	t.refused(err, "an empty registration ID", connect.CodeInvalidArgument)
	f.answers(1, "1")
}

func unregisterFailed(t *T) {
	f := t.function("load_raise")
	f.becomes(stateFailed)
	t.ok(f.unregister(), "UnregisterFunction of a failed registration")
	_, err := t.status(f.ref)
	t.refused(err, "FunctionStatus after an unregister", connect.CodeNotFound)
}

func unregisterAnswer(t *T) {
	f := t.ready("echo")
	res, err := f.beginCancel().wait(t)
	t.ok(err, "UnregisterFunction")
	t.check(res.GetRegistration().GetRegistrationId() == f.ref.GetRegistrationId(), "the registration "+f.ref.String(), "%v", res.GetRegistration())
}
