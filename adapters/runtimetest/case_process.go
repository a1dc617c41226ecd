package runtimetest

import (
	"fmt"

	"connectrpc.com/connect/v2"
)

func processCases() []Case {
	return []Case{
		must("FR-PRC-01", notesOpen, "After a timeout no process of the call is left, its children included.", processTimeout, "children", needProcesses),
		must("FR-PRC-02", notesOpen, "After a cancel by the caller no process of the call is left, its children included.", processCancel, "children", needProcesses),
		must("FR-PRC-03", unregister, "After an unregister with cancel_in_flight no process of the call is left, its children included.", processUnregister, "children", needProcesses),
		must("FR-PRC-04", notesOpen, "After a higher attempt no process of the older invocation is left.", processSuperseded, "children", "echo", needProcesses),
		must("FR-PRC-05", notesOpen, "A process left in the background does not hold its call open.", processLeakReturns, "leak"),
		should("FR-PRC-06", notesOpen, "A process left in the background is gone when its call has returned.", processLeakGone, "leak", needProcesses),
		must("FR-PRC-07", unregister, "A daemon that a load started is gone after the unregister.", processDaemon, "load_daemon", needProcesses),
		must("FR-PRC-08", notesOpen, "A load that hung and was superseded leaves no process.", processHungLoad, "load_hang", "echo", needProcesses),
		must("FR-PRC-09", unregister, "A process left in the background is gone after the unregister.", processLeakUnregistered, "leak", needProcesses),
		must("FR-PRC-10", notesOpen, "After a load that ran into its limit no process of it is left.", processLoadLimit, "load_hang", needProcesses, needLoadTime),
	}
}

// family starts an invocation of children and returns once they run.
func (t *T) family() (*function, *pending[*invoked], int64) {
	f, tok := t.ready("children"), token()
	return f, f.holdWith(f.request(tok), fmt.Sprint(tok)), tok
}

func processTimeout(t *T) {
	f, tok := t.ready("children"), token()
	req := f.request(tok)
	req.TimeoutMillis = 700
	_, err := t.beginInvoke(req).wait(t)
	t.refused(err, "the invocation", connect.CodeDeadlineExceeded)
	t.gone(tok, "after the timeout")
}

func processCancel(t *T) {
	f, running, tok := t.family()
	running.cancel()
	f.idle()
	t.gone(tok, "after the cancel")
}

func processUnregister(t *T) {
	f, running, tok := t.family()
	f.drained(f.beginCancel(), running)
	t.gone(tok, "after the unregister")
}

func processSuperseded(t *T) {
	f, running, tok := t.family()
	f.attempt(2, "echo").becomeReady()
	_, _ = running.wait(t)
	t.gone(tok, "after the higher attempt")
}

func processLeakReturns(t *T) {
	f := t.ready("leak")
	f.answers(token(), `"leaked"`)
}

func processLeakGone(t *T) {
	f, tok := t.ready("leak"), token()
	f.answers(tok, `"leaked"`)
	t.gone(tok, "after the call has returned")
}

func processLeakUnregistered(t *T) {
	f, tok := t.ready("leak"), token()
	f.answers(tok, `"leaked"`)
	t.ok(f.unregister(), "UnregisterFunction")
	t.gone(tok, "after the unregister")
}

func processDaemon(t *T) {
	f, tok := t.function("load_daemon"), token()
	f.req.Env = map[string]string{"TOKEN": fmt.Sprint(tok)}
	f.becomeReady()
	t.ok(f.unregister(), "UnregisterFunction")
	t.gone(tok, "after the unregister")
}

func processHungLoad(t *T) {
	f, tok := t.hang()
	f.attempt(2, "echo").becomeReady()
	t.gone(tok, "after the higher attempt")
}

func processLoadLimit(t *T) {
	f, tok := t.function("load_hang"), token()
	f.req.Env = map[string]string{"TOKEN": fmt.Sprint(tok)}
	res, err := f.beginRegister().waitFor(t, t.target.Times.Load+t.soon)
	t.ok(err, "RegisterFunction")
	f.ref = res.GetRegistration()
	t.gone(tok, "after the load limit")
}
