package runtimetest

import (
	"errors"
	"regexp"

	"connectrpc.com/connect/v2"

	"github.com/hearth-run/hearth/internal/kit/edge"
)

func errorCases() []Case {
	return []Case{
		must("FR-ERR-01", notesCodes, "Every refusal carries exactly one google.rpc.ErrorInfo of the domain hearth.", errorInfo, "echo"),
		must("FR-ERR-02", notesCodes, "Every refusal has a reason in UPPER_SNAKE_CASE.", errorReason, "echo"),
		must("FR-ERR-03", notesCodes, "A refusal names the Run where it is known.", errorRunUID, "echo"),
		must("FR-ERR-04", notesCodes, "A failed invocation names its invocation ID.", errorInvocationID, "fail"),
		must("FR-ERR-05", notesCodes, "HANDLER_ERROR carries the failure's type.", errorType, "fail"),
		must("FR-ERR-06", notesCodes, "HANDLER_ERROR carries the exit code of a process that ended.", errorExitCode, "exit"),
		must("FR-ERR-07", notesCodes, "HANDLER_ERROR carries the traceback or the tail of standard error, at most 4 KiB.", errorDebug, "fail"),
		must("FR-ERR-08", notesCodes, "A refusal says something to its reader.", errorText, "echo"),
		must("FR-ERR-09", scope, "A Runtime without function mode answers Unimplemented to all four calls.", errorUnimplemented, needBaseOnly),
	}
}

// refusals makes one call wrong in each of five ways.
func (t *T) refusals() (*function, []error) {
	f := t.ready("echo")
	next := f.attempt(2, "echo")
	next.becomeReady()
	_, stale := t.status(f.ref)
	_, invoke := f.invoke(1)
	lower := *f
	_, attempt := lower.register()
	other := next.attempt(2, "echo")
	other.req.RegistrationDigest = digest("another")
	_, mismatch := other.register()
	return next, []error{stale, invoke, attempt, mismatch, f.unregister()}
}

func errorInfo(t *T) {
	_, errs := t.refusals()
	for _, err := range errs {
		var e *connect.Error
		t.check(errors.As(err, &e) && answered(err), "a refusal", "%s", verdict(err))
		n := 0
		for _, d := range e.Details() {
			if d.Type == "google.rpc.ErrorInfo" {
				n++
			}
		}
		t.check(n == 1, "one ErrorInfo", "%d in %s", n, verdict(err))
		t.check(edge.Info(err).GetDomain() == edge.Domain, "the domain hearth", "%q", edge.Info(err).GetDomain())
	}
}

var reasonForm = regexp.MustCompile(`^[A-Z][A-Z0-9]*(_[A-Z0-9]+)*$`)

func errorReason(t *T) {
	_, errs := t.refusals()
	for _, err := range errs {
		t.check(reasonForm.MatchString(edge.Reason(err)), "a reason in UPPER_SNAKE_CASE", "%q", edge.Reason(err))
	}
}

func errorRunUID(t *T) {
	f, errs := t.refusals()
	for _, err := range errs {
		uid := edge.Info(err).GetMetadata()[edge.RunUID]
		t.check(uid == f.req.GetRunUid(), "metadata run_uid "+f.req.GetRunUid(), "%q in %s", uid, verdict(err))
	}
}

// failsWith invokes a failing fixture under an ID.
func (t *T) failsWith(behaviour string) error {
	f := t.ready(behaviour)
	_, err := f.withID("conformance/1")
	t.refused(err, "the handler's failure", connect.CodeInternal, "HANDLER_ERROR")
	return err
}

func errorInvocationID(t *T) {
	id := edge.Info(t.failsWith("fail")).GetMetadata()[edge.InvocationID]
	t.check(id == "conformance/1", "metadata invocation_id conformance/1", "%q", id)
}

func errorType(t *T) {
	meta := edge.Info(t.failsWith("fail")).GetMetadata()
	t.check(meta["type"] != "", "metadata type", "%v", meta)
}

func errorExitCode(t *T) {
	meta := edge.Info(t.failsWith("exit")).GetMetadata()
	t.check(meta["exit_code"] == "3", "metadata exit_code 3", "%v", meta)
}

func errorDebug(t *T) {
	n := len(edge.DebugText(t.failsWith("fail")))
	t.check(n >= 1 && n <= 4096, "1 to 4096 bytes in DebugInfo", "%d", n)
}

func errorText(t *T) {
	_, errs := t.refusals()
	for _, err := range errs {
		var e *connect.Error
		t.check(errors.As(err, &e) && e.Message() != "", "a text", "none in %s", verdict(err))
	}
}

func errorUnimplemented(t *T) {
	f := &function{t: t, ref: &registration{RunUid: "run", RegistrationId: "reg_none"}}
	f.req = t.plainRegister()
	_, register := f.beginRegister().wait(t)
	_, status := t.status(f.ref)
	_, invoke := f.invoke(1)
	for what, err := range map[string]error{"RegisterFunction": register, "FunctionStatus": status, "InvokeFunction": invoke, "UnregisterFunction": f.unregister()} {
		t.refused(err, what, connect.CodeUnimplemented)
	}
}
