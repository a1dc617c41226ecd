package runtimetest

import (
	"regexp"

	"connectrpc.com/connect/v2"

	executorv1 "github.com/hearth-run/hearth/gen/executor/v1"
)

func registerCases() []Case {
	return []Case{
		must("FR-REG-01", semantics, "RegisterFunction answers READY once the handler can be called, with the Run's UID.", registerReady, "echo"),
		must("FR-REG-02", notesLimits, "A registration ID is 1 to 128 bytes.", registerIDBounds, "echo"),
		should("FR-REG-03", notesOpen, "A registration ID is reg_ and a ULID.", registerIDForm, "echo"),
		must("FR-REG-04", semantics, "Repeating Run UID, attempt and digest returns the registration that is there and loads nothing again.", registerRepeat, "loads"),
		must("FR-REG-05", semantics, "Fifty concurrent repeats cause one load and get one ID.", registerStorm, "loads"),
		must("FR-REG-06", semantics, "Another digest for the same attempt is AlreadyExists.", registerDigestMismatch, "echo"),
		must("FR-REG-07", semantics, "A refused digest does not replace the registration.", registerMismatchKeeps, "echo"),
		must("FR-REG-08", identity, "A higher attempt gets a new ID.", registerHigher, "echo"),
		must("FR-REG-09", notesOpen, "A higher attempt cancels the invocation of the older registration.", registerHigherCancels, "hold", "echo"),
		must("FR-REG-10", notesOpen, "A higher attempt makes the old ID stale before its own load has ended.", registerFencesFirst, "echo", "load_slow"),
		must("FR-REG-11", semantics, "A lower attempt is FailedPrecondition and leaves the registration alone.", registerLower, "echo"),
		must("FR-REG-12", notesOpen, "After an unregister a lower attempt is still refused.", registerLowerLater, "echo"),
		must("FR-REG-13", identity, "An ID that was unregistered never comes back to life.", registerAgain, "echo"),
		must("FR-REG-14", semantics, "An attempt below 1 is InvalidArgument.", registerBadAttempt, "echo"),
		must("FR-REG-15", notesLimits, "A digest that is not sha256: and 64 lowercase hex digits is InvalidArgument.", registerBadDigest, "echo"),
		must("FR-REG-16", semantics, "A Run UID that is empty or over 128 bytes is InvalidArgument.", registerBadUID, "echo"),
		must("FR-REG-17", semantics, "A working directory that is relative, missing or a file is InvalidArgument.", registerBadDir, "echo"),
		must("FR-REG-18", semantics, "A negative idle timeout is InvalidArgument.", registerBadIdle, "echo"),
		must("FR-REG-19", identity, "The working directory's path is no part of a registration's identity.", registerOtherDir, "loads"),
		must("FR-REG-20", identity, "Registrations of different Runs are independent: each has its ID and its own invocation.", registerTwoRuns, "hold", "echo"),
	}
}

func registerReady(t *T) {
	f := t.function("echo")
	f.becomeReady()
	t.check(f.ref.GetRunUid() == f.req.GetRunUid(), "the registration to carry "+f.req.GetRunUid(), "%q", f.ref.GetRunUid())
	f.answers("hi", `"hi"`)
}

func registerIDBounds(t *T) {
	n := len(t.ready("echo").ref.GetRegistrationId())
	t.check(n >= 1 && n <= 128, "an ID of 1 to 128 bytes", "%d bytes", n)
}

var ulidForm = regexp.MustCompile(`^[0-7][0-9A-HJKMNP-TV-Z]{25}$`)

func registerIDForm(t *T) {
	id := t.ready("echo").ref.GetRegistrationId()
	t.check(len(id) > 4 && id[:4] == "reg_" && ulidForm.MatchString(id[4:]), "reg_ and a ULID", "%q", id)
}

func registerRepeat(t *T) {
	f := t.ready("loads")
	first := f.ref.GetRegistrationId()
	for range 3 {
		f.becomeReady()
		t.check(f.ref.GetRegistrationId() == first, "the repeat to return "+first, "%q", f.ref.GetRegistrationId())
	}
	f.answers(1, "1")
	t.check(f.lines("loads") == 1, "one load", "%d loads", f.lines("loads"))
}

func registerStorm(t *T) {
	f := t.function("loads")
	var calls []*pending[*registered]
	for range 50 {
		calls = append(calls, f.beginRegister())
	}
	for _, p := range calls {
		res, err := p.wait(t)
		t.ok(err, "each concurrent RegisterFunction")
		if f.ref == nil {
			f.ref = res.GetRegistration()
		}
		t.check(res.GetState() == stateReady, "each answer to be READY", "%v", res.GetState())
		t.check(res.GetRegistration().GetRegistrationId() == f.ref.GetRegistrationId(), "one ID for all", "%q and %q", f.ref.GetRegistrationId(), res.GetRegistration().GetRegistrationId())
	}
	t.check(f.lines("loads") == 1, "one load", "%d loads", f.lines("loads"))
}

func registerDigestMismatch(t *T) {
	f := t.ready("echo")
	other := f.attempt(1, "echo")
	other.req.RegistrationDigest = digest("another")
	_, err := other.register()
	t.refused(err, "another digest", connect.CodeAlreadyExists, "REGISTRATION_DIGEST_MISMATCH")
}

func registerMismatchKeeps(t *T) {
	f := t.ready("echo")
	other := f.attempt(1, "echo")
	other.req.RegistrationDigest = digest("another")
	_, _ = other.register()
	t.check(f.status().GetState() == stateReady, "the registration to stay READY", "%v", f.status().GetState())
	f.answers(2, "2")
}

func registerHigher(t *T) {
	f := t.ready("echo")
	next := f.attempt(2, "echo")
	next.becomeReady()
	t.check(next.ref.GetRegistrationId() != f.ref.GetRegistrationId(), "a new ID", "the old one")
	next.answers(3, "3")
}

func registerHigherCancels(t *T) {
	f := t.ready("hold")
	running := f.hold("a")
	next := f.attempt(2, "echo")
	next.becomeReady()
	_, err := running.wait(t)
	t.refused(err, "the older registration's invocation", connect.CodeCanceled)
	next.answers(4, "4")
}

func registerFencesFirst(t *T) {
	f := t.ready("echo")
	next := f.attempt(2, "load_slow")
	loading := next.beginRegister()
	t.eventually("the new load to start", func() bool { return f.there("load-started") })
	_, err := t.status(f.ref)
	t.refused(err, "FunctionStatus with the old ID during the new load", connect.CodeFailedPrecondition, "REGISTRATION_STALE")
	_, err = f.invoke(1)
	t.refused(err, "an invocation with the old ID during the new load", connect.CodeFailedPrecondition, "REGISTRATION_STALE")
	f.touch("load-release")
	res, err := loading.wait(t)
	t.ok(err, "the new registration")
	next.ref = res.GetRegistration()
	next.answers(1, "1")
}

func registerLower(t *T) {
	f := t.function("echo").attempt(3, "echo")
	f.becomeReady()
	lower := f.attempt(2, "echo")
	_, err := lower.register()
	t.refused(err, "a lower attempt", connect.CodeFailedPrecondition, "REGISTRATION_ATTEMPT_STALE")
	f.answers(5, "5")
}

func registerLowerLater(t *T) {
	f := t.function("echo").attempt(3, "echo")
	f.becomeReady()
	t.ok(f.unregister(), "UnregisterFunction")
	lower := f.attempt(2, "echo")
	_, err := lower.register()
	t.refused(err, "a lower attempt after an unregister", connect.CodeFailedPrecondition, "REGISTRATION_ATTEMPT_STALE")
}

// registerAgain leaves open whether the same attempt may register again; what
// matters is that the old ID stays dead.
func registerAgain(t *T) {
	f := t.ready("echo")
	t.ok(f.unregister(), "UnregisterFunction")
	again := f.attempt(2, "echo")
	again.becomeReady()
	t.check(again.ref.GetRegistrationId() != f.ref.GetRegistrationId(), "a new ID", "the old one")
	_, err := f.invoke(1)
	t.refused(err, "an invocation with the old ID", connect.CodeFailedPrecondition, "REGISTRATION_STALE")
}

// rejects registers variants of a good request that have to be InvalidArgument.
func (t *T) rejects(what string, changes ...func(*executorv1.RegisterFunctionRequest)) {
	for _, change := range changes {
		f := t.function("echo")
		change(f.req)
		_, err := f.register()
		t.refused(err, what, connect.CodeInvalidArgument)
	}
}

func registerBadAttempt(t *T) {
	t.rejects("an attempt below 1",
		func(r *executorv1.RegisterFunctionRequest) { r.RegistrationAttempt = 0 },
		func(r *executorv1.RegisterFunctionRequest) { r.RegistrationAttempt = -1 })
}

func registerBadDigest(t *T) {
	good := digest("x")
	for _, bad := range []string{"", good[7:], good[:70], good + "0", "sha256:" + "ABCDEF" + good[13:], "md5:" + good[7:]} {
		t.rejects("the digest "+bad, func(r *executorv1.RegisterFunctionRequest) { r.RegistrationDigest = bad })
	}
}

func registerBadUID(t *T) {
	for _, bad := range []string{"", long(129)} {
		t.rejects("the Run UID "+clip([]byte(bad)), func(r *executorv1.RegisterFunctionRequest) { r.RunUid = bad })
	}
}

func registerBadDir(t *T) {
	f := t.function("echo")
	f.touch("plain")
	for _, bad := range []string{"", "relative/dir", f.dir + "/nowhere", f.dir + "/plain"} {
		t.rejects("the working directory "+bad, func(r *executorv1.RegisterFunctionRequest) { r.WorkingDir = bad })
	}
}

func registerBadIdle(t *T) {
	t.rejects("a negative idle timeout", func(r *executorv1.RegisterFunctionRequest) { r.IdleTimeoutSeconds = -1 })
}

func registerOtherDir(t *T) {
	f := t.ready("loads")
	moved := f.attempt(1, "loads")
	moved.req.RegistrationDigest = f.req.GetRegistrationDigest()
	moved.req.WorkingDir = t.function("loads").dir
	moved.becomeReady()
	t.check(moved.ref.GetRegistrationId() == f.ref.GetRegistrationId(), "the registration that is there", "a new ID")
	t.check(f.lines("loads") == 1, "one load", "%d loads", f.lines("loads"))
}

func registerTwoRuns(t *T) {
	a, b := t.ready("hold"), t.ready("echo")
	t.check(a.ref.GetRegistrationId() != b.ref.GetRegistrationId(), "two IDs", "one")
	running := a.hold("a")
	b.answers(6, "6")
	a.touch("release-a")
	_, err := running.wait(t)
	t.ok(err, "the first Run's invocation")
	t.ok(b.unregister(), "UnregisterFunction")
	t.check(a.status().GetState() == stateReady, "the other Run to stay READY", "%v", a.status().GetState())
}
