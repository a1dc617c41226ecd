package runtimetest

import (
	"bytes"
	"fmt"

	"connectrpc.com/connect/v2"
)

func limitCases() []Case {
	return []Case{
		must("FR-LIM-01", notesLimits, "256 environment variables are taken, 257 are InvalidArgument.", limitEnvCount, "echo"),
		must("FR-LIM-02", notesLimits, "A variable's name of 256 bytes is taken, 257 are InvalidArgument.", limitEnvName, "echo"),
		must("FR-LIM-03", notesLimits, "A variable's value of 32 KiB is taken, one byte more is InvalidArgument.", limitEnvValue, "echo"),
		must("FR-LIM-04", notesLimits, "An environment of 128 KiB is taken, one byte more is InvalidArgument.", limitEnvTotal, "echo"),
		must("FR-LIM-05", notesLimits, "A variable's name that is no identifier is InvalidArgument.", limitEnvForm, "echo"),
		must("FR-LIM-06", notesLimits, "A variable whose name starts with HEARTH_ is InvalidArgument.", limitEnvReserved, "echo"),
		must("FR-LIM-07", notesLimits, "A NUL in a variable's value is InvalidArgument.", limitEnvNUL, "echo"),
		must("FR-LIM-08", notesLimits, "A registration ID of 129 bytes is InvalidArgument.", limitRegistrationID, "echo"),
		must("FR-LIM-09", notesLimits, "A payload of 1 MiB is taken.", limitInput, "echo"),
		should("FR-LIM-10", notesLimits, "A payload of 1 MiB and one byte is InvalidArgument; the gateway and runtimed see to it too.", limitInputOver, "echo"),
		must("FR-LIM-11", notesLimits, "A message over 4 MiB is refused, and the next one is served.", limitMessage, "echo"),
		must("FR-LIM-12", builtin, "A payload of 1 MiB reaches the handler whole.", limitInputWhole, "echo"),
	}
}

// taken registers with env, which has to become READY.
func (t *T) takes(env map[string]string) {
	f := t.function("echo")
	f.req.Env = env
	f.becomeReady()
}

// refuses registers with env, which has to be InvalidArgument.
func (t *T) refuses(what string, env map[string]string) {
	f := t.function("echo")
	f.req.Env = env
	_, err := f.register()
	t.refused(err, what, connect.CodeInvalidArgument)
}

func variables(n, size int) map[string]string {
	env := map[string]string{}
	for i := range n {
		env[fmt.Sprintf("VAR_%03d", i)] = long(size)
	}
	return env
}

func limitEnvCount(t *T) {
	t.takes(variables(256, 1))
	t.refuses("257 variables", variables(257, 1))
}

func limitEnvName(t *T) {
	t.takes(map[string]string{long(256): "x"})
	t.refuses("a name of 257 bytes", map[string]string{long(257): "x"})
}

func limitEnvValue(t *T) {
	t.takes(map[string]string{"A": long(32 << 10)})
	t.refuses("a value of 32 KiB and one byte", map[string]string{"A": long(32<<10 + 1)})
}

// limitEnvTotal fills 128 KiB with names of 7 bytes: 8 × (7 + 16377).
func limitEnvTotal(t *T) {
	full := variables(8, 16<<10-7)
	t.takes(full)
	full["VAR_000"] += "a"
	t.refuses("an environment of 128 KiB and one byte", full)
}

func limitEnvForm(t *T) {
	for _, bad := range []string{"", "1A", "A-B", "A B", "A=B", "É"} {
		t.refuses(fmt.Sprintf("the name %q", bad), map[string]string{bad: "x"})
	}
}

func limitEnvReserved(t *T) {
	t.refuses("HEARTH_RUN_UID", map[string]string{"HEARTH_RUN_UID": "x"})
}

func limitEnvNUL(t *T) {
	t.refuses("a NUL", map[string]string{"A": "a\x00b"})
}

func limitRegistrationID(t *T) {
	f := t.ready("echo")
	_, err := t.status(&registration{RunUid: f.req.GetRunUid(), RegistrationId: long(129)})
	t.refused(err, "a registration ID of 129 bytes", connect.CodeInvalidArgument)
}

// text is a JSON string of n bytes.
func text(n int) []byte {
	b := bytes.Repeat([]byte{'x'}, n)
	b[0], b[n-1] = '"', '"'
	return b
}

func limitInput(t *T) {
	_, err := t.ready("echo").send(text(1 << 20))
	t.ok(err, "a payload of 1 MiB")
}

func limitInputOver(t *T) {
	f := t.ready("echo")
	_, err := f.send(text(1<<20 + 1))
	t.refused(err, "a payload of 1 MiB and one byte", connect.CodeInvalidArgument)
	f.answers(1, "1")
}

func limitMessage(t *T) {
	f := t.ready("echo")
	_, err := f.send(text(5 << 20))
	t.check(err != nil && !isLate(err), "a message of 5 MiB to be refused", "%s", verdict(err))
	f.answers(1, "1")
}

func limitInputWhole(t *T) {
	f := t.ready("echo")
	for _, n := range []int{100, 10 << 10, 200 << 10, 1 << 20} {
		res, err := f.send(text(n))
		t.ok(err, fmt.Sprintf("a payload of %d bytes", n))
		t.check(bytes.Equal(bytes.TrimSpace(res.GetOutput()), text(n)), fmt.Sprintf("the same %d bytes", n), "%s", clip(res.GetOutput()))
	}
}
