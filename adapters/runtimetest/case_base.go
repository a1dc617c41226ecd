package runtimetest

import (
	"connectrpc.com/connect/v2"

	executorv1 "github.com/hearth-run/hearth/gen/executor/v1"
)

func baseCases() []Case {
	return []Case{
		must("RT-BAS-01", notesBase, "Health says that the Runtime Server can accept work.", baseHealth),
		must("RT-BAS-02", notesBase, "Status, Cancel and Forget of an unknown id are NotFound.", baseUnknown),
		must("RT-BAS-03", notesBase, "An id that is empty or over 128 bytes is InvalidArgument.", baseBadID, "run:hello"),
		must("RT-BAS-04", notesBase, "Execute accepts and returns while the execution goes on.", baseAsync, "run:hold"),
		must("RT-BAS-05", notesBase, "List has every execution that was not forgotten.", baseList, "run:hold", "run:hello"),
		must("RT-BAS-06", notesBase, "Forget drops an execution that has ended: Status is NotFound and List has it no more.", baseForget, "run:hello"),
		must("RT-BAS-07", notesBase, "Forget of a running execution is FailedPrecondition, and it runs on.", baseForgetRunning, "run:hold"),
		must("RT-BAS-08", notesBase, "Execute again with the same id and request answers the execution that is there and runs nothing again.", baseRepeat, "run:hello"),
		must("RT-BAS-09", notesBase, "Execute with the same id and another request is AlreadyExists.", baseOther, "run:hello"),
		must("RT-BAS-10", notesBase, "State and output are kept until Forget.", baseKept, "run:hello"),
		must("RT-BAS-11", notesBase, "Cancel of an execution that has ended succeeds and changes nothing.", baseCancelEnded, "run:hello"),
		must("RT-BAS-12", notesBase, "A forgotten id can be used anew.", baseReuse, "run:hello"),
	}
}

func baseHealth(t *T) {
	res, err := call(t, t.base.Health, &executorv1.HealthRequest{})
	t.ok(err, "Health")
	t.check(res.GetHealthy(), "healthy", "unhealthy: %q", res.GetMessage())
}

func baseUnknown(t *T) {
	e := &execution{function: &function{t: t}, req: &executorv1.ExecuteRequest{Id: name("nobody")}}
	_, err := call(t, t.base.Status, &executorv1.StatusRequest{Id: e.req.GetId()})
	t.refused(err, "Status of an unknown id", connect.CodeNotFound)
	t.refused(e.cancel(), "Cancel of an unknown id", connect.CodeNotFound)
	t.refused(e.forget(), "Forget of an unknown id", connect.CodeNotFound)
}

func baseBadID(t *T) {
	for _, bad := range []string{"", long(129)} {
		e := t.execution("hello")
		e.req.Id = bad
		t.refused(e.execute(), "the id "+clip([]byte(bad)), connect.CodeInvalidArgument)
	}
}

func baseAsync(t *T) {
	e := t.execution("hold").start()
	s := e.status()
	t.check(s.GetState() == execPending || s.GetState() == execRunning, "PENDING or RUNNING", "%v", s.GetState())
	t.eventually("the execution to run", func() bool { return e.there("started") })
	t.eventually("Status to say RUNNING", func() bool { return e.status().GetState() == execRunning })
	e.touch("release")
	e.succeeds()
}

// listed returns the state of each execution.
func (t *T) listed() map[string]*executorv1.StatusResponse {
	res, err := call(t, t.base.List, &executorv1.ListRequest{})
	t.ok(err, "List")
	entries := map[string]*executorv1.StatusResponse{}
	for _, e := range res.GetEntries() {
		entries[e.GetId()] = e
	}
	return entries
}

func baseList(t *T) {
	running, ended := t.execution("hold").held(), t.execution("hello").start()
	ended.succeeds()
	list := t.listed()
	for e, want := range map[*execution]executorv1.ExecutionState{running: execRunning, ended: execSucceeded} {
		entry := list[e.req.GetId()]
		t.check(entry.GetState() == want, e.req.GetId()+" in the list as "+want.String(), "%v", entry)
	}
}

func baseForget(t *T) {
	e := t.execution("hello").start()
	e.succeeds()
	t.ok(e.forget(), "Forget")
	_, err := call(t, t.base.Status, &executorv1.StatusRequest{Id: e.req.GetId()})
	t.refused(err, "Status after Forget", connect.CodeNotFound)
	t.check(t.listed()[e.req.GetId()] == nil, "nothing of it in List", "an entry")
}

func baseForgetRunning(t *T) {
	e := t.execution("hold").held()
	t.refused(e.forget(), "Forget of a running execution", connect.CodeFailedPrecondition)
	e.touch("release")
	e.succeeds()
}

func baseRepeat(t *T) {
	e := t.execution("hello").start()
	e.start()
	e.succeeds()
	e.start()
	e.succeeds()
	t.check(e.lines("runs") == 1, "one run", "%d", e.lines("runs"))
}

func baseOther(t *T) {
	e := t.execution("hello").start()
	e.req.Env = map[string]string{"OTHER": "x"}
	t.refused(e.execute(), "another request with the same id", connect.CodeAlreadyExists)
	e.succeeds()
}

func baseKept(t *T) {
	e := t.execution("hello").start()
	first := e.succeeds()
	again := e.status()
	t.check(again.GetStdout() == first.GetStdout() && again.GetStdout() == "out\n", `standard output "out\n" each time`, "%q and %q", first.GetStdout(), again.GetStdout())
}

func baseCancelEnded(t *T) {
	e := t.execution("hello").start()
	e.succeeds()
	t.ok(e.cancel(), "Cancel")
	e.succeeds()
}

func baseReuse(t *T) {
	e := t.execution("hello").start()
	e.succeeds()
	t.ok(e.forget(), "Forget")
	e.start()
	e.succeeds()
	t.check(e.lines("runs") == 2, "a second run", "%d runs", e.lines("runs"))
}
