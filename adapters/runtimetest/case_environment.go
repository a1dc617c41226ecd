package runtimetest

import (
	"encoding/json"
	"slices"
	"strings"
)

func environmentCases() []Case {
	return []Case{
		must("FR-ENV-01", semantics, "The Run's env reaches the user code, byte for byte.", environmentGiven, "env"),
		must("FR-ENV-02", notesOpen, "User code sees PATH, HOME, LANG, TZ, TMPDIR, the Run's env and HEARTH_*, and nothing of the server's environment.", environmentClosed, "environ"),
		must("FR-ENV-03", notesOpen, "PATH, HOME and LANG are set.", environmentBasics, "env"),
		must("FR-ENV-04", invocation, "User code learns its Run's UID and the invocation ID in use.", environmentContext, "context"),
		must("FR-ENV-05", builtin, "User code runs beneath the registered working directory.", environmentDir, "tally"),
	}
}

func environmentGiven(t *T) {
	values := map[string]string{"PLAIN": "a b", "EMPTY": "", "ODD": "a'b$c;d*e", "UTF8": "é€"}
	f := t.function("env")
	f.req.Env = values
	f.becomeReady()
	for name, value := range values {
		want, err := json.Marshal(value)
		t.must(err)
		f.answers(name, string(want))
	}
}

// shellNames are variables that interpreters set for themselves.
var shellNames = []string{"PATH", "HOME", "LANG", "TZ", "TMPDIR", "PWD", "OLDPWD", "SHLVL", "_", "LC_ALL", "LC_CTYPE"}

func environmentClosed(t *T) {
	f := t.function("environ")
	f.req.Env = map[string]string{"GIVEN": "x"}
	f.becomeReady()
	res, err := f.invoke(1)
	t.ok(err, "the invocation")
	var names string
	t.must(json.Unmarshal(res.GetOutput(), &names))
	list := strings.Fields(names)
	t.check(slices.Contains(list, "GIVEN"), "GIVEN among the variables", "%s", names)
	for _, n := range list {
		t.check(n == "GIVEN" || strings.HasPrefix(n, "HEARTH_") || slices.Contains(shellNames, n), "no variable of the server's own", "%s", n)
	}
}

func environmentBasics(t *T) {
	f := t.ready("env")
	for _, n := range []string{"PATH", "HOME", "LANG"} {
		res, err := f.invoke(n)
		t.ok(err, "the invocation")
		t.check(!sameJSON(res.GetOutput(), []byte(`""`)), n+" to be set", "nothing in it")
	}
}

func environmentContext(t *T) {
	f := t.ready("context")
	for _, id := range []string{"one", "two"} {
		res, err := f.withID(id)
		t.ok(err, "the invocation")
		t.answered(res, `"`+f.req.GetRunUid()+" "+id+`"`)
	}
}

func environmentDir(t *T) {
	f := t.ready("tally")
	f.answers(1, "1")
	t.check(f.lines("calls") == 1, "the file that the handler writes in the working directory", "no such file")
}
