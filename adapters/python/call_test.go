package python_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hearth-run/hearth/adapters/runtimeserver"
)

const echo = "def handle(event):\n    return event\n"

func TestPrintGoesToTheLogOfItsInvocation(t *testing.T) {
	l := newWorld(t, false).app(t, `
import os, sys
print("importing")
def handle(event):
    print("out", event)
    print("err", event, file=sys.stderr)
    os.write(1, b"raw\n")
    os.system("echo child")
    return event
`)
	l.want(`1`, `1`)
	l.want(`2`, `2`)
	for key, want := range map[string]string{
		"/stdout": "importing\n", "call-1/stdout": "out 1\nraw\nchild\n", "call-2/stdout": "out 2\nraw\nchild\n",
		"call-1/stderr": "err 1\n", "call-2/stderr": "err 2\n",
	} {
		if got := l.logs.text(key); got != want {
			t.Errorf("%s: %q, want %q", key, got, want)
		}
	}
}

func TestPrintfOfCCodeIsCapturedInItsInvocation(t *testing.T) {
	l := newWorld(t, false).app(t, `
import ctypes
libc = ctypes.CDLL(None)
def handle(event):
    libc.printf(b"no newline %d", event)
`)
	l.want(`1`, `null`)
	l.want(`2`, `null`)
	if a, b := l.logs.text("call-1/stdout"), l.logs.text("call-2/stdout"); a != "no newline 1" || b != "no newline 2" {
		t.Errorf("printf went to %q and %q", a, b)
	}
}

func TestModuleStateLivesOn(t *testing.T) {
	l := newWorld(t, false).app(t, `
count = 0
def handle(event):
    global count
    count += 1
    return count
`)
	l.want(`{}`, `1`)
	l.want(`{}`, `2`)
}

func TestContext(t *testing.T) {
	l := newWorld(t, false).app(t, `
import os
def handle(event, context):
    context.outputs["size"] = "7"
    context.logger.info("an %s", "entry")
    context.logger.warning("careful")
    try:
        1 / 0
    except ZeroDivisionError:
        context.logger.exception("failed")
    left = context.remaining_time_ms()
    return [context.run_uid, context.invocation_id, 50_000 < left <= 60_000, type(left).__name__, sorted(os.environ)]
`)
	got, err := l.call(`{}`)
	if err != nil {
		t.Fatal(err)
	}
	if want := `["run-1","call-1",true,"int",["GREETING","LANG","PATH"]]`; string(got.Output) != want {
		t.Errorf("answered %s, want %s", got.Output, want)
	}
	if got.Outputs["size"] != "7" || len(got.Outputs) != 1 || got.ContentType != "application/json" {
		t.Errorf("outputs %v, content type %q", got.Outputs, got.ContentType)
	}
	mustContain(t, l.logs.text("call-1/logger"), "info an entry\nwarn careful\nerror failed\nTraceback", "ZeroDivisionError")
}

func TestOddPayloadsHaveADefinedAnswer(t *testing.T) {
	l := newWorld(t, false).app(t, echo)
	for name, c := range map[string]struct{ in, out, err string }{
		"scalar":          {in: `7`, out: `7`},
		"white space":     {in: " [1,\n2] ", out: `[1,2]`},
		"duplicate keys":  {in: `{"a":1,"a":2}`, out: `{"a":2}`},
		"lone surrogate":  {in: `"\ud800 ü"`, out: `"\ud800 \u00fc"`},
		"NUL escaped":     {in: `"a\u0000b"`, out: `"a\u0000b"`},
		"big integer":     {in: strings.Repeat("9", 4000), out: strings.Repeat("9", 4000)},
		"long integer":    {in: strings.Repeat("9", 5000), err: "cannot be read"},
		"beyond a double": {in: `1e999`, err: "cannot be JSON"},
		"empty":           {in: ``, err: "the payload is empty: send JSON"},
		"not JSON":        {in: "{\n'a': 1}", err: "not JSON: Expecting property name enclosed in double quotes at line 2 column 1"},
		"two values":      {in: `1 2`, err: "Extra data"},
		"NaN":             {in: `NaN`, err: "NaN is no JSON"},
		"Infinity":        {in: `[-Infinity]`, err: "-Infinity is no JSON"},
		"not UTF-8":       {in: "\"a\xff\"", err: "not UTF-8: byte 2 is 0xff"},
		"byte order mark": {in: "\ufeff1", err: "not JSON"},
		"NUL raw":         {in: "\"a\x00\"", err: "not JSON: Invalid control character"},
		"nested too deep": {in: strings.Repeat("[", 300_000) + strings.Repeat("]", 300_000), err: "nested too deeply"},
	} {
		got, err := l.call(c.in)
		if string(got.Output) != c.out || (c.err == "") != (err == nil) || !strings.Contains(text(err), c.err) {
			t.Errorf("%s: answered %.200s, %.300v; want %.200s, %s", name, got.Output, err, c.out, c.err)
		}
		wantPayloadError := c.err != "" && name != "beyond a double"
		if wantPayloadError != errors.Is(err, runtimeserver.ErrPayload) {
			t.Errorf("%s: %v is the wrong error", name, err)
		}
	}
}

func TestContentTypes(t *testing.T) {
	l := newWorld(t, false).app(t, echo)
	for contentType, ok := range map[string]bool{
		"": true, "application/json": true, "application/json; charset=UTF-8": true, "application/cloudevents+json": true,
		"text/plain": false, "application/json; charset=latin-1": false, "application/octet-stream": false, ";": false,
	} {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		_, err := l.inst.Invoke(ctx, runtimeserver.Call{Input: []byte("1"), ContentType: contentType, Deadline: time.Now().Add(time.Minute)})
		cancel()
		if (err == nil) != ok || (!ok && !errors.Is(err, runtimeserver.ErrPayload)) {
			t.Errorf("%q: %v", contentType, err)
		}
	}
}

func TestAnswersThatJSONCannotCarry(t *testing.T) {
	l := newWorld(t, false).app(t, `
import datetime
loop = []; loop.append(loop)
deep = []
for _ in range(300_000): deep = [deep]
values = {"nan": float("nan"), "inf": [float("inf")], "bytes": b"x", "set": {1}, "date": datetime.date(2000, 1, 1),
          "loop": loop, "deep": deep, "key": {(1, 2): 3}, "int": 10 ** 5000}
def handle(event):
    return values[event]
`)
	for name, kind := range map[string]string{
		"nan": "ValueError", "inf": "ValueError", "bytes": "TypeError", "set": "TypeError", "date": "TypeError",
		"loop": "ValueError", "deep": "RecursionError", "key": "TypeError", "int": "ValueError",
	} {
		_, err := l.call(`"` + name + `"`)
		failed := handlerError(t, err)
		if failed.Type != kind || !strings.Contains(failed.Message, "the handler's answer cannot be JSON: ") {
			t.Errorf("%s: %s, %s", name, failed.Type, failed.Message)
		}
		mustContain(t, failed.Trace, "app.py:8")
	}
}

func TestMegabyteInAndOut(t *testing.T) {
	l := newWorld(t, false).app(t, echo)
	exact := `"` + strings.Repeat("x", runtimeserver.MaxPayload-2) + `"`
	l.want(exact, exact)
}

func TestResponseBound(t *testing.T) {
	l := newWorld(t, false).app(t, "def handle(n):\n    return 'x' * (n - 2)\n")
	if got, err := l.call(`1048576`); err != nil || len(got.Output) != runtimeserver.MaxPayload {
		t.Errorf("at the bound: %d bytes, %v", len(got.Output), err)
	}
	if _, err := l.call(`1048577`); !errors.Is(err, runtimeserver.ErrResponseTooLarge) {
		t.Errorf("over the bound: %v", err)
	}
	if _, err := l.call(`50000000`); !errors.Is(err, runtimeserver.ErrResponseTooLarge) {
		t.Errorf("far over the bound: %v", err)
	}
	l.want(`3`, `"x"`)
}

func TestOutputBounds(t *testing.T) {
	l := newWorld(t, false).app(t, `
cases = {
    "most": {str(n).rjust(128, "k"): "v" * 896 for n in range(64)},
    "keys": {str(n): "" for n in range(65)},
    "long key": {"k" * 129: ""},
    "empty key": {"": "v"},
    "long value": {"k": "v" * 8193},
    "total": {str(n): "v" * 8192 for n in range(8)},
    "kind": {"n": 1},
    "text": {"s": "\ud800"},
    "list": [1],
}
def handle(event, context):
    context.outputs = cases[event]
`)
	for name, want := range map[string]error{
		"most": nil, "keys": runtimeserver.ErrOutputsTooLarge, "long key": runtimeserver.ErrOutputsInvalid,
		"empty key": runtimeserver.ErrOutputsInvalid, "long value": runtimeserver.ErrOutputsTooLarge,
		"total": runtimeserver.ErrOutputsTooLarge, "kind": runtimeserver.ErrOutputsInvalid,
		"text": runtimeserver.ErrOutputsInvalid, "list": runtimeserver.ErrOutputsInvalid,
	} {
		got, err := l.call(`"` + name + `"`)
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
		if checked := runtimeserver.CheckOutputs(got.Outputs); checked != nil {
			t.Errorf("%s: the server disagrees: %v", name, checked)
		}
	}
}

func TestExceptions(t *testing.T) {
	l := newWorld(t, false).app(t, `
class Mine(Exception):
    pass
class Broken(Exception):
    def __str__(self): raise RuntimeError("no text")
def deep(n):
    return deep(n + 1)
def chain():
    try:
        raise KeyError("inner")
    except KeyError as e:
        raise Mine("outer\nline two") from e
def handle(event):
    if event == "mine": chain()
    if event == "broken": raise Broken()
    if event == "deep": deep(0)
    if event == "huge": raise ValueError("ä" * 10_000_000)
    if event == "interrupt": raise KeyboardInterrupt()
    import sys; sys.exit(event)
`)
	for input, want := range map[string]struct {
		kind, message string
		exit          int
	}{
		`"mine"`:      {"Mine", "outer line two", 0},
		`"broken"`:    {"Broken", "<Broken whose text raises RuntimeError>", 0},
		`"deep"`:      {"RecursionError", "maximum recursion depth exceeded", 0},
		`"huge"`:      {"ValueError", "ää", 0},
		`"interrupt"`: {"KeyboardInterrupt", "", 1},
		`3`:           {"SystemExit", "the handler called sys.exit(3): return instead", 3},
		`"words"`:     {"SystemExit", "the handler called sys.exit('words'): return instead", 1},
	} {
		_, err := l.call(input)
		failed := handlerError(t, err)
		if failed.Type != want.kind || !strings.HasPrefix(failed.Message, want.message) || failed.ExitCode != want.exit {
			t.Errorf("%s: %s %d %.200q", input, failed.Type, failed.ExitCode, failed.Message)
		}
		if len(failed.Trace) > runtimeserver.MaxFatalError || len(failed.Message) > 1024 {
			t.Errorf("%s: trace of %d bytes, message of %d", input, len(failed.Trace), len(failed.Message))
		}
		if strings.Contains(failed.Trace, "hearth_pyrunner") {
			t.Errorf("%s: frames of ours in the traceback:\n%s", input, failed.Trace)
		}
	}
	_, err := l.call(`"mine"`)
	mustContain(t, handlerError(t, err).Trace, "KeyError: 'inner'", "app.py", "chain()", "Mine: outer")
}

func handlerError(t testing.TB, err error) *runtimeserver.HandlerError {
	t.Helper()
	failed, ok := errors.AsType[*runtimeserver.HandlerError](err)
	if !ok {
		t.Fatalf("%v is no HandlerError", err)
	}
	return failed
}

func TestThousandCallsKeepDescriptorsThreadsAndOrder(t *testing.T) {
	l := newWorld(t, false).app(t, `
import os
def handle(event):
    print(event)
    return [len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))]
`)
	first, err := l.call(`0`)
	if err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= 1000; n++ {
		l.calls = 0
		l.want(fmt.Sprint(n), string(first.Output))
	}
	var want strings.Builder
	for n := 0; n <= 1000; n++ {
		fmt.Fprintln(&want, n)
	}
	if got := l.logs.text("call-1/stdout"); got != want.String() {
		t.Errorf("the log of 1001 calls is out of order or incomplete: %d bytes, want %d", len(got), want.Len())
	}
}
