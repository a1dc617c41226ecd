package runtimetest

import (
	"fmt"
	"strings"

	"connectrpc.com/connect/v2"

	executorv1 "github.com/hearth-run/hearth/gen/executor/v1"
)

func invokeCases() []Case {
	return []Case{
		must("FR-INV-01", builtin, "An invocation calls the handler with its payload and answers its result, with the registration.", invokeEcho, "echo"),
		must("FR-INV-02", invocation, "A supplied invocation ID comes back.", invokeID, "echo"),
		must("FR-INV-03", invocation, "An empty invocation ID is replaced by a generated one, a new one each time.", invokeGenerated, "echo"),
		should("FR-INV-04", notesOpen, "A generated invocation ID is a ULID.", invokeULID, "echo"),
		must("FR-INV-05", invocation, "An invocation ID of 128 bytes is taken.", invokeLongID, "echo"),
		should("FR-INV-06", notesLimits, "An invocation ID of 129 bytes is InvalidArgument; the gateway and runtimed see to it too.", invokeTooLongID, "echo"),
		should("FR-INV-07", notesOpen, "An invocation ID that is not printable ASCII is InvalidArgument.", invokeOddID, "echo"),
		must("FR-INV-08", invocation, "An invocation ID is no key for deduplication: the same one runs twice.", invokeTwice, "tally"),
		must("FR-INV-09", invocation, "A second invocation while one runs is refused at once and not queued.", invokeBusy, "hold"),
		must("FR-INV-10", invocation, "Of a thousand concurrent invocations one runs at any instant, the others are ResourceExhausted.", invokeStorm, "guard"),
		must("FR-INV-11", semantics, "in_flight is 0 or 1 and nothing else under a storm.", invokeStormStatus, "guard"),
		must("FR-INV-12", invocation, "While one invocation runs, a thousand others are all refused.", invokeThousandRefused, "hold"),
		must("FR-INV-13", identity, "An invocation with a stale ID is FailedPrecondition.", invokeStale, "echo"),
		must("FR-INV-14", notesCodes, "An invocation of a failed registration is FailedPrecondition.", invokeFailed, "load_raise"),
		must("FR-INV-15", unregister, "An invocation of a draining registration is FailedPrecondition.", invokeDraining, "hold"),
		must("FR-INV-16", notesCodes, "An invocation of a Run with no registration is NotFound.", invokeAbsent, "echo"),
		must("FR-INV-17", scope, "An invocation with an empty registration ID is InvalidArgument on a Runtime Server.", invokeEmptyID, "echo"),
		must("FR-INV-18", notesCodes, "A handler that fails is Internal with reason HANDLER_ERROR, and the next call runs.", invokeFails("fail"), "fail"),
		must("FR-INV-19", notesCodes, "A handler that ends its process is Internal with reason HANDLER_ERROR, and the next call runs.", invokeFails("exit"), "exit"),
		must("FR-INV-20", notesOpen, "What the loaded code keeps lives from one invocation to the next.", invokeKeepsState, "counter"),
	}
}

func invokeEcho(t *T) {
	f := t.ready("echo")
	res := f.answers(map[string]any{"a": []int{1, 2}, "b": "é"}, `{"a":[1,2],"b":"é"}`)
	t.check(res.GetRegistration().GetRegistrationId() == f.ref.GetRegistrationId(), "the registration "+f.ref.String(), "%v", res.GetRegistration())
}

// withID invokes echo with an invocation ID.
func (f *function) withID(id string) (*invoked, error) {
	req := f.request(1)
	req.InvocationId = id
	return f.t.beginInvoke(req).wait(f.t)
}

func invokeID(t *T) {
	for _, id := range []string{"a", "trace 1/2~!", "01J0000000000000000000000A"} {
		res, err := t.ready("echo").withID(id)
		t.ok(err, "the invocation")
		t.check(res.GetInvocationId() == id, "the ID "+id, "%q", res.GetInvocationId())
	}
}

func invokeGenerated(t *T) {
	f := t.ready("echo")
	seen := map[string]bool{}
	for range 5 {
		res := f.answers(1, "1")
		id := res.GetInvocationId()
		t.check(len(id) >= 1 && len(id) <= 128 && !seen[id], "an ID of 1 to 128 bytes that is new", "%q", id)
		seen[id] = true
	}
}

func invokeULID(t *T) {
	res := t.ready("echo").answers(1, "1")
	t.check(ulidForm.MatchString(res.GetInvocationId()), "a ULID", "%q", res.GetInvocationId())
}

func long(n int) string { return strings.Repeat("a", n) }

func invokeLongID(t *T) {
	res, err := t.ready("echo").withID(long(128))
	t.ok(err, "an ID of 128 bytes")
	t.check(res.GetInvocationId() == long(128), "the ID as it was sent", "%q", res.GetInvocationId())
}

func invokeTooLongID(t *T) {
	f := t.ready("echo")
	_, err := f.withID(long(129))
	t.refused(err, "an ID of 129 bytes", connect.CodeInvalidArgument)
	f.answers(1, "1")
}

func invokeOddID(t *T) {
	f := t.ready("echo")
	for _, id := range []string{"é", strings.Repeat("é", 64), strings.Repeat("€", 43), "a\nb", "\x7f"} {
		_, err := f.withID(id)
		t.refused(err, "the ID "+clip([]byte(id)), connect.CodeInvalidArgument)
	}
}

func invokeTwice(t *T) {
	f := t.ready("tally")
	for range 2 {
		_, err := f.withID("same")
		t.ok(err, "the invocation")
	}
	t.check(f.lines("calls") == 2, "two runs of the handler", "%d", f.lines("calls"))
}

func invokeBusy(t *T) {
	f := t.ready("hold")
	running := f.hold("a")
	_, err := f.invoke("b")
	t.refused(err, "a second invocation", connect.CodeResourceExhausted, "INVOCATION_ACTIVE")
	f.touch("release-a")
	_, err = running.wait(t)
	t.ok(err, "the first invocation")
	f.idle()
	t.check(!f.there("started-b"), "the refused invocation never to run", "it ran later")
}

// storm starts a crowd of invocations of guard and returns how many ran alone;
// during is called in between.
func (t *T) storm(f *function, during func()) (alone int) {
	var calls []*pending[*invoked]
	for i := range t.crowd {
		calls = append(calls, f.begin(i))
		if i%20 == 0 {
			during()
		}
	}
	for _, p := range calls {
		res, err := p.wait(t)
		switch {
		case err != nil:
			t.refused(err, "an invocation that did not win", connect.CodeResourceExhausted, "INVOCATION_ACTIVE")
		case sameJSON(res.GetOutput(), []byte(`"alone"`)):
			alone++
		default:
			t.fail("one invocation at any instant", "the handler found another: %s", clip(res.GetOutput()))
		}
	}
	return alone
}

func invokeStorm(t *T) {
	f := t.ready("guard")
	t.check(t.storm(f, func() {}) >= 1, "at least one invocation to win", "none")
	f.answers(1, `"alone"`)
}

func invokeStormStatus(t *T) {
	f := t.ready("guard")
	t.storm(f, func() {
		n := f.status().GetInFlight()
		t.check(n == 0 || n == 1, "in_flight 0 or 1", "%d", n)
	})
	f.idle()
}

func invokeThousandRefused(t *T) {
	f := t.ready("hold")
	running := f.hold("a")
	var calls []*pending[*invoked]
	for i := range t.crowd {
		calls = append(calls, f.begin(fmt.Sprint("other", i)))
	}
	for _, p := range calls {
		_, err := p.wait(t)
		t.refused(err, "an invocation beside the one that runs", connect.CodeResourceExhausted, "INVOCATION_ACTIVE")
	}
	f.touch("release-a")
	_, err := running.wait(t)
	t.ok(err, "the one that ran")
}

func invokeStale(t *T) {
	f := t.ready("echo")
	f.attempt(2, "echo").becomeReady()
	_, err := f.invoke(1)
	t.refused(err, "an invocation with a stale ID", connect.CodeFailedPrecondition, "REGISTRATION_STALE")
}

func invokeFailed(t *T) {
	f := t.function("load_raise")
	f.becomes(stateFailed)
	_, err := f.invoke(1)
	t.refused(err, "an invocation of a failed registration", connect.CodeFailedPrecondition, "REGISTRATION_FAILED")
}

func invokeDraining(t *T) {
	f := t.ready("hold")
	running := f.hold("a")
	draining := f.beginDrain(60_000)
	f.reaches(stateDraining)
	_, err := f.invoke("b")
	t.refused(err, "an invocation of a draining registration", connect.CodeFailedPrecondition, "REGISTRATION_DRAINING")
	f.touch("release-a")
	_, err = running.wait(t)
	t.ok(err, "the invocation that ran")
	_, err = draining.wait(t)
	t.ok(err, "UnregisterFunction")
}

func invokeAbsent(t *T) {
	f := t.function("echo")
	_, err := t.beginInvoke(&executorv1.InvokeFunctionRequest{Registration: f.stranger(), Input: []byte("1"), ContentType: jsonType}).wait(t)
	t.refused(err, "an invocation of an unknown Run", connect.CodeNotFound)
}

func invokeEmptyID(t *T) {
	f := t.ready("echo")
	req := f.request(1)
	req.Registration = &registration{RunUid: f.ref.GetRunUid()}
	_, err := t.beginInvoke(req).wait(t)
	t.refused(err, "an empty registration ID", connect.CodeInvalidArgument)
}

func invokeFails(behaviour string) func(*T) {
	return func(t *T) {
		f := t.ready(behaviour)
		for range 2 {
			_, err := f.invoke(1)
			t.refused(err, "the handler's failure", connect.CodeInternal, "HANDLER_ERROR")
		}
		t.check(f.status().GetState() == stateReady, "the registration to stay READY", "%v", f.status().GetState())
	}
}

func invokeKeepsState(t *T) {
	f := t.ready("counter")
	for i := 1; i <= 3; i++ {
		f.answers(1, fmt.Sprint(i))
	}
}
