package runtimetest

import "connectrpc.com/connect/v2"

func restartCases() []Case {
	return []Case{
		must("FR-KIL-01", notesCodes, "A call in flight when the server is killed ends with an error, and does not hang.", restartEndsCalls, "hold", needRestart),
		must("FR-KIL-02", identity, "After a crash the same attempt and digest can be registered and called.", restartRegisters, "echo", needRestart),
		must("FR-KIL-03", scope, "Registrations are local state: after a crash a Run that was not registered again is NotFound.", restartForgets, "echo", needRestart),
		must("FR-KIL-04", notesOpen, "After a crash and a restart no process of an earlier call is left.", restartSweeps, "children", needRestart, needProcesses),
	}
}

func (t *T) restart() {
	t.must(t.target.Restart(t.ctx))
	t.eventually("the server to answer again", func() bool {
		_, err := t.status((&function{t: t, req: t.plainRegister()}).stranger())
		return err == nil || answered(err)
	})
}

func restartEndsCalls(t *T) {
	f := t.ready("hold")
	running := f.hold("a")
	t.restart()
	_, err := running.wait(t)
	t.check(err != nil && connect.CodeOf(err) != connect.CodeDeadlineExceeded && !isLate(err), "an error at once", "%s", verdict(err))
}

func restartRegisters(t *T) {
	f := t.ready("echo")
	t.restart()
	f.becomeReady()
	f.answers(1, "1")
}

func restartForgets(t *T) {
	f := t.ready("echo")
	t.restart()
	_, err := t.status(f.ref)
	t.refused(err, "FunctionStatus after the crash", connect.CodeNotFound)
}

func restartSweeps(t *T) {
	_, _, tok := t.family()
	t.restart()
	t.gone(tok, "after the restart")
}
