package python_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// state answers what a call finds of the process.
const state = `
import os, sys, signal, locale, gc
def state():
    mask = os.umask(0); os.umask(mask)
    return [os.getcwd() == home, mask, signal.getsignal(signal.SIGTERM) == signal.SIG_DFL, sorted(os.environ),
            locale.setlocale(locale.LC_ALL), sys.stdout is out, sys.getrecursionlimit(), gc.isenabled(),
            signal.getitimer(signal.ITIMER_REAL)[0], sorted(map(int, signal.pthread_sigmask(signal.SIG_BLOCK, ()))),
            os.get_blocking(1), os.readlink("/proc/self/fd/0")]
home, out = os.getcwd(), sys.stdout
`

func TestWhatACallChangesOfTheProcessIsPutBack(t *testing.T) {
	l := newWorld(t, false).app(t, state+`
import io
def handle(event):
    if event == "state": return state()
    if event == "cwd": os.chdir("/")
    if event == "umask": os.umask(0o777)
    if event == "signal": signal.signal(signal.SIGTERM, lambda *a: None); signal.alarm(1); signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    if event == "env": os.environ["NEW"] = "1"; del os.environ["PATH"]
    if event == "locale": locale.setlocale(locale.LC_ALL, "C")
    if event == "stdout": sys.stdout = io.StringIO(); print("lost")
    if event == "close": sys.stdout.close()
    if event == "none": sys.stdout = sys.stderr = None
    if event == "recursion": sys.setrecursionlimit(100000); gc.disable()
    if event == "block": os.set_blocking(1, False); os.dup2(os.open("/dev/zero", os.O_RDONLY), 0)
    if event == "fds": os.close(0); os.close(1); os.close(2)
    return event
`)
	before, err := l.call(`"state"`)
	if err != nil {
		t.Fatal(err)
	}
	for _, event := range []string{"cwd", "umask", "signal", "env", "locale", "stdout", "none", "recursion", "block", "fds"} {
		l.calls = 0
		l.want(`"`+event+`"`, `"`+event+`"`)
		l.want(`"state"`, string(before.Output))
	}
	l.want(`"close"`, `"close"`)
}

func TestPrintWorksAfterACallThatClosedItsStreams(t *testing.T) {
	l := newWorld(t, false).app(t, `
import os, sys
def handle(event):
    if event == "fd": os.close(1)
    if event == "stream": sys.stdout.close()
    if event == "print": print("here")
    if event == "raw": os.write(1, b"there\n")
    return event
`)
	for n, event := range []string{"fd", "print", "raw", "stream", "print", "raw"} {
		l.want(`"`+event+`"`, `"`+event+`"`)
		want := map[string]string{"print": "here\n", "raw": "there\n"}[event]
		if got := l.logs.text(l.id() + "/stdout"); got != want {
			t.Errorf("call %d, %s: logged %q, want %q", n, event, got, want)
		}
	}
}

func TestWritesToLowDescriptorsReachNothing(t *testing.T) {
	l := newWorld(t, false).app(t, `
import os
def handle(event):
    written = []
    for fd in range(3, 21):
        try:
            os.write(fd, b"garbage"); written.append(fd)
        except OSError:
            pass
    return written
`)
	l.want(`1`, `[]`)
	l.want(`1`, `[]`)
}

// lost is what a handler does to its process, and what its caller is told.
var lost = map[string]struct {
	code, kind, message string
	exit                int
}{
	"os._exit":        {"os._exit(3)", "exit", "the handler ended its process with status 3: return instead of os._exit", 3},
	"SIGKILL to self": {"os.kill(os.getpid(), 9)", "signal", "killed by signal 9 (SIGKILL)", 137},
	"SIGSEGV":         {"import ctypes; print('last words', file=sys.stderr); ctypes.string_at(0)", "signal", "killed by signal 11 (SIGSEGV)", 139},
	"exec true":       {"os.execv('/bin/true', ['true'])", "exit", "with status 0", 0},
	"exec sleep":      {"os.execv('/bin/sleep', ['sleep', '1000'])", "lost", "closed the server's control socket or became another program", 0},
	"closes all":      {"os.closerange(3, 5000)", "lost", "closed, replaced or wrote to the server's control socket", 0},
	"corrupts": {"import socket\n    for fd in map(int, os.listdir('/proc/self/fd')):\n" +
		"        try: socket.socket(fileno=os.dup(fd)).sendall(b'garbage' * 100)\n        except OSError: pass", "lost", "control socket", 0},
	"replaces the socket": {"import socket\n    a, b = socket.socketpair()\n    for fd in map(int, os.listdir('/proc/self/fd')):\n" +
		"        try:\n            if fd > 20 and 'socket' in os.readlink(f'/proc/self/fd/{fd}'): os.dup2(a.fileno(), fd)\n        except OSError: pass", "lost", "control socket", 0},
}

func TestHandlersThatLoseTheirProcess(t *testing.T) {
	w := newWorld(t, false)
	for name, c := range lost {
		t.Run(name, func(t *testing.T) {
			l := w.app(t, "import os, sys\ndef handle(event):\n    if event: return event\n    "+c.code+"\n    return 'came back'\n")
			l.want(`1`, `1`)
			_, err := l.call(`0`)
			failed := handlerError(t, err)
			if failed.Type != c.kind || failed.ExitCode != c.exit || !strings.Contains(failed.Message, c.message) {
				t.Errorf("%s, %d, %q", failed.Type, failed.ExitCode, failed.Message)
			}
			if name == "SIGSEGV" {
				mustContain(t, failed.Trace, "last words", "Segmentation fault", "app.py")
			}
			l.want(`2`, `2`)
		})
	}
}

func TestForkedChildThatComesBackDoesNotAnswer(t *testing.T) {
	l := newWorld(t, false).app(t, `
import os, sys
def handle(event):
    parent = os.getpid()
    for _ in range(3):
        if os.fork() == 0:
            if event == "raise": raise ValueError("in the child")
            if event == "exit": sys.exit(1)
            return "child"
    if event == "wait":
        for _ in range(3): os.wait()
    return "parent"
`)
	for _, event := range []string{"return", "raise", "exit", "wait", "return"} {
		l.want(`"`+event+`"`, `"parent"`)
		// A child that raised may say so before it is ended; nothing of ours may speak.
		got := l.logs.text(l.id() + "/stderr")
		whole := strings.HasPrefix(got, "Traceback ") && strings.HasSuffix(strings.TrimSpace(got), "ValueError: in the child")
		if strings.Contains(got, "hearth") && !(event == "raise" && whole) {
			t.Errorf("%s: a child tried to answer: %s", event, got)
		}
	}
}

func TestThreadsOfACallMayLiveOn(t *testing.T) {
	l := newWorld(t, false).app(t, `
import threading
seen = []
go, done = threading.Event(), threading.Event()
def late():
    go.wait(); seen.append("late"); print("between"); done.set()
def handle(event, context):
    if event == "start": threading.Thread(target=late).start()
    if event == "go": go.set(); done.wait()
    return seen
`)
	l.want(`"start"`, `[]`)
	l.want(`"go"`, `["late"]`)
}

func TestDeletedModuleGoesOn(t *testing.T) {
	l := newWorld(t, false).app(t, "import os\ndef handle(event):\n    if event == 'die': os._exit(1)\n    if os.path.exists(__file__): os.remove(__file__)\n    return 'gone'\n")
	l.want(`1`, `"gone"`)
	l.want(`1`, `"gone"`)
	if _, err := l.call(`"die"`); err == nil {
		t.Error("os._exit was answered")
	}
	l.want(`1`, `"gone"`) // the template holds it
	if _, err := os.Stat(filepath.Join(l.dir, "app.py")); err == nil {
		t.Error("the module is still there")
	}
}

func TestFloodOnOneLineIsNoTrouble(t *testing.T) {
	l := newWorld(t, false).app(t, `
import sys, os
def handle(event):
    for _ in range(event): sys.stderr.write("x" * (1 << 20))
    os.write(1, bytes(range(256)) * 4096)
    return "done"
`)
	l.want(`100`, `"done"`)
	if got := len(l.logs.text("call-1/stderr")); got != 100<<20 {
		t.Errorf("logged %d bytes of stderr", got)
	}
	if got := len(l.logs.text("call-1/stdout")); got != 1<<20 {
		t.Errorf("logged %d bytes of stdout", got)
	}
	l.want(`0`, `"done"`)
}

func TestFullDiskIsTheHandlersOwnError(t *testing.T) {
	l := newWorld(t, false).app(t, `
import resource, signal
def handle(event):
    if event == "fill":
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
    if event in ("fill", "again"):
        with open("big", "wb") as f: f.write(bytes(100_000))
    return event
`)
	_, err := l.call(`"fill"`)
	if failed := handlerError(t, err); failed.Type != "OSError" {
		t.Errorf("%v", failed)
	}
	l.want(`"again"`, `"again"`)
}
