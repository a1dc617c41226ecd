package runtimetest

import (
	"fmt"
	"strings"

	"connectrpc.com/connect/v2"
)

func executeCases() []Case {
	return []Case{
		must("RT-EXE-01", notesBase, "An execution that ends with status 0 is SUCCEEDED, its two streams kept apart.", executeHello, "run:hello"),
		must("RT-EXE-02", notesBase, "An execution that ends with another status is FAILED with its exit code.", executeFail, "run:fail"),
		must("RT-EXE-03", notesBase, "Cancel ends an execution and leaves it FAILED; it may be repeated.", executeCancel, "run:hold"),
		must("RT-EXE-04", notesBase, "Cancel sends TERM first: the execution may end by itself.", executePolite, "run:polite"),
		must("RT-EXE-05", notesBase, "An execution that ignores TERM is killed after the grace.", executeStubborn, "run:stubborn"),
		must("RT-EXE-06", notesBase, "Cancel ends the whole process group.", executeGroup, "run:stubborn", needProcesses),
		must("RT-EXE-07", notesBase, "The timeout ends an execution and leaves it FAILED with a message.", executeTimeout, "run:hold"),
		must("RT-EXE-08", notesBase, "A negative timeout of an execution is InvalidArgument.", executeNegative, "run:hello"),
		must("RT-EXE-09", notesBase, "An entrypoint that is absolute or leaves the working directory is InvalidArgument.", executeEscape, "run:words"),
		must("RT-EXE-10", notesBase, "Output is kept up to 1 MiB a stream.", executeBound, "run:flood"),
		must("RT-EXE-11", notesBase, "A stream that was cut keeps its tail and says that it was cut.", executeMarker, "run:flood"),
		must("RT-EXE-12", notesBase, "The env reaches the execution.", executeEnv, "run:env"),
		must("RT-EXE-13", notesBase, "An env with a reserved name is InvalidArgument.", executeReserved, "run:hello"),
		must("RT-EXE-14", notesBase, "An entrypoint runs with its args.", executeWords, "run:words"),
		must("RT-EXE-15", notesBase, "A file named script runs where no handler and no entrypoint is given.", executePrints("script", "script\n"), "run:script"),
		must("RT-EXE-16", notesBase, "Args alone run by the language's own rule.", executePrints("args", "args\n"), "run:args"),
		must("RT-EXE-17", notesBase, "A handler is called once with its args.", executeHandler, "run:handler"),
		must("RT-EXE-18", notesBase, "HEARTH_OUTPUTS names a file that the execution can write.", executeOutputs, "run:outputs"),
		must("RT-EXE-19", notesBase, "An execution that a signal ended has 128 and the signal's number as its exit code.", executeKilled, "run:stubborn"),
	}
}

func executeHello(t *T) {
	s := t.execution("hello").start().succeeds()
	t.check(s.GetStdout() == "out\n" && s.GetStderr() == "err\n", `"out\n" and "err\n"`, "%q and %q", s.GetStdout(), s.GetStderr())
}

func executeFail(t *T) {
	s := t.execution("fail").start().end()
	t.check(s.GetState() == execFailed && s.GetExitCode() == 3, "FAILED with exit code 3", "%v with %d", s.GetState(), s.GetExitCode())
}

func executeCancel(t *T) {
	e := t.execution("hold").held()
	for range 3 {
		t.ok(e.cancel(), "Cancel")
	}
	t.check(e.end().GetState() == execFailed, "FAILED", "%v", e.end().GetState())
}

func executePolite(t *T) {
	e := t.execution("polite").held()
	t.ok(e.cancel(), "Cancel")
	s := e.end()
	t.check(e.there("asked"), "the execution to get TERM", "it was killed outright")
	t.check(s.GetState() == execFailed, "FAILED", "%v", s.GetState())
}

// stubborn starts an execution that ignores TERM and has a child that does too.
func (t *T) stubborn() (*execution, int64) {
	tok := token()
	return t.execution("stubborn").with(map[string]string{"TOKEN": fmt.Sprint(tok)}).held(), tok
}

func executeStubborn(t *T) {
	e, _ := t.stubborn()
	t.ok(e.cancel(), "Cancel")
	t.check(e.end().GetState() == execFailed, "FAILED", "%v", e.end().GetState())
}

func executeKilled(t *T) {
	e, _ := t.stubborn()
	t.ok(e.cancel(), "Cancel")
	code := e.end().GetExitCode()
	t.check(code == 137, "the exit code 137", "%d", code)
}

func executeGroup(t *T) {
	e, tok := t.stubborn()
	t.ok(e.cancel(), "Cancel")
	e.end()
	t.gone(tok, "after the cancel")
}

func executeTimeout(t *T) {
	e := t.execution("hold")
	e.req.TimeoutSeconds = 1
	s := e.start().end()
	t.check(s.GetState() == execFailed && s.GetErrorMessage() != "", "FAILED with a message", "%v, %q", s.GetState(), s.GetErrorMessage())
}

func executeNegative(t *T) {
	e := t.execution("hello")
	e.req.TimeoutSeconds = -1
	t.refused(e.execute(), "timeout_seconds -1", connect.CodeInvalidArgument)
}

func executeEscape(t *T) {
	for _, relative := range []bool{false, true} {
		e := t.execution("words")
		bad := e.dir + "/" + e.req.GetEntrypoint()
		if relative {
			bad = "../" + name("x") + "/" + e.req.GetEntrypoint()
		}
		e.req.Entrypoint = bad
		t.refused(e.execute(), "the entrypoint "+bad, connect.CodeInvalidArgument)
	}
}

func executeBound(t *T) {
	s := t.execution("flood").start().succeeds()
	n := len(s.GetStdout())
	t.check(n > 1<<19 && n <= 1<<20+256, "more than 512 KiB and at most 1 MiB beside the mark", "%d bytes", n)
}

func executeMarker(t *T) {
	out := t.execution("flood").start().succeeds().GetStdout()
	t.check(strings.HasSuffix(out, "the end\n"), "the last line", "%s", clip([]byte(out[max(0, len(out)-40):])))
	marker := strings.Trim(strings.TrimSuffix(out, "the end\n"), "x\n")
	t.check(marker != "", "a mark where the stream was cut", "nothing but the execution's own lines")
}

func executeEnv(t *T) {
	s := t.execution("env").with(map[string]string{"GREETING": "hé llo"}).start().succeeds()
	t.check(s.GetStdout() == "hé llo\n", `"hé llo\n"`, "%q", s.GetStdout())
}

func executeReserved(t *T) {
	t.refused(t.execution("hello").with(map[string]string{"HEARTH_X": "x"}).execute(), "HEARTH_X", connect.CodeInvalidArgument)
}

func executeWords(t *T) {
	e := t.execution("words")
	e.req.Args = []string{"one", "two words", "$(three)"}
	s := e.start().succeeds()
	t.check(s.GetStdout() == "one\ntwo words\n$(three)\n", "one argument a line", "%q", s.GetStdout())
}

func executePrints(behaviour, want string) func(*T) {
	return func(t *T) {
		s := t.execution(behaviour).start().succeeds()
		t.check(s.GetStdout() == want, fmt.Sprintf("%q", want), "%q", s.GetStdout())
	}
}

func executeHandler(t *T) {
	e := t.execution("handler")
	e.req.Args = []string{"one", "two"}
	e.start().succeeds()
	t.check(strings.TrimSpace(e.read("event")) == "one two", "the event's args one and two", "%q", e.read("event"))
}

func executeOutputs(t *T) {
	s := t.execution("outputs").start().succeeds()
	t.check(strings.TrimSpace(s.GetStdout()) != "", "a path in HEARTH_OUTPUTS", "nothing")
}
