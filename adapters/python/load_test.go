package python_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/hearth-run/hearth/adapters/python"
	"github.com/hearth-run/hearth/adapters/runtimeserver"
)

func TestHandlersThatAreNone(t *testing.T) {
	w := newWorld(t, false)
	for name, c := range map[string]struct{ source, want string }{
		"no such name":    {"def handel(event): pass\ndef other(e): pass\n", "app.py has no function handle: it defines handel, other"},
		"a value":         {"handle = 7\n", "handle is of type int, not a function: def handle(event):"},
		"a class":         {"class handle: pass\n", "handle is a class, not a function"},
		"async":           {"\nasync def handle(event): pass\n", "app.py:2: handle is async: make it a plain function"},
		"no argument":     {"def handle(): pass\n", "app.py:1: handle() cannot be called with an event: def handle(event): or def handle(event, context):"},
		"three arguments": {"def handle(a, b, c): pass\n", "handle(a, b, c) cannot be called with an event"},
		"a keyword more":  {"def handle(a, *, key): pass\n", "handle(a, *, key) cannot be called"},
	} {
		l := w.load(t, "app.handle", "app.py", c.source)
		if !errors.Is(l.err, runtimeserver.ErrHandlerInvalid) || !strings.Contains(text(l.err), c.want) {
			t.Errorf("%s: %v", name, l.err)
		}
	}
}

func TestSignatures(t *testing.T) {
	w := newWorld(t, false)
	for name, c := range map[string]struct{ source, want string }{
		"event":           {"def handle(event): return 1", `1`},
		"event, context":  {"def handle(event, context): return context.run_uid", `"run-1"`},
		"context default": {"def handle(event, context=None): return context.run_uid", `"run-1"`},
		"other default":   {"def handle(event, retries=3): return retries", `3`},
		"any":             {"def handle(*args): return len(args)", `2`},
		"lambda":          {"handle = lambda event: event", `{}`},
		"partial":         {"import functools\nhandle = functools.partial(lambda a, e: a, 5)", `5`},
		"decorated":       {"import functools\ndef d(f):\n  @functools.wraps(f)\n  def g(*a): return [f(*a)]\n  return g\n@d\ndef handle(event): return 1", `[1]`},
		"callable object": {"class C:\n  def __call__(self, event): return 2\nhandle = C()", `2`},
		"method":          {"class C:\n  def m(self, event): return 3\nhandle = C().m", `3`},
	} {
		t.Run(name, func(t *testing.T) { w.app(t, c.source+"\n").want(`{}`, c.want) })
	}
}

func TestImportsThatFail(t *testing.T) {
	w := newWorld(t, false)
	for name, c := range map[string]struct {
		source string
		want   []string
	}{
		"missing module": {"x = 1\nimport nosuch.part\ndef handle(e): pass\n",
			[]string{"/app.py:2: module nosuch is not there for ", "python3 -m pip install --target . nosuch", "ModuleNotFoundError"}},
		"syntax error": {"def handle(e):\n    return (\n", []string{"/app.py:2: '(' was never closed: correct the line", "SyntaxError"}},
		"tabs":         {"def handle(e):\n\tif e:\n        return 1\n", []string{"/app.py:3: ", "TabError"}},
		"raises":       {"def f(): return {}['k']\nf()\n", []string{"/app.py:1: KeyError while module app was imported: 'k'", "Traceback", "line 2, in <module>"}},
		"sys.exit":     {"import sys\nsys.exit('bye')\n", []string{"/app.py:2: the module called sys.exit('bye') while it was imported: put that under if __name__"}},
		"os._exit":     {"import os, sys\nprint('going', file=sys.stderr)\nos._exit(4)\n", []string{"the module's import ended its process with status 4", "going"}},
		"killed":       {"import os\nos.kill(os.getpid(), 9)\n", []string{"the module's import was killed by signal 9 (SIGKILL)"}},
		"exec":         {"import os\nos.execv('/bin/sleep', ['sleep', '100'])\n", []string{"the module's import closed the server's control socket or became another program"}},
		"closes all":   {"import os\nos.closerange(3, 3000)\n", []string{"the module's import closed, replaced or wrote to the server's control socket"}},
		"huge":         {"raise ValueError('ä' * 1_000_000)\n", []string{"ValueError", "ää"}},
		"deep":         {"def f(): f()\nf()\n", []string{"RecursionError"}},
		"not UTF-8":    {"x = '\xff'\ndef handle(e): pass\n", []string{"app.py", "SyntaxError"}},
	} {
		l := w.load(t, "app.handle", "app.py", c.source)
		failed, ok := errors.AsType[*runtimeserver.LoadError](l.err)
		if !ok {
			t.Errorf("%s: %v is no LoadError", name, l.err)
			continue
		}
		mustContain(t, failed.Text, c.want...)
		if len(failed.Text) > runtimeserver.MaxFatalError || !utf8.ValidString(failed.Text) {
			t.Errorf("%s: a text of %d bytes, valid: %v", name, len(failed.Text), utf8.ValidString(failed.Text))
		}
		if strings.Contains(failed.Text, "hearth_pyrunner") || strings.Contains(failed.Text, "importlib") {
			t.Errorf("%s: frames of ours in\n%s", name, failed.Text)
		}
	}
}

func TestLoadThatHangsLeavesNothing(t *testing.T) {
	w := newWorld(t, false)
	dir := t.TempDir()
	source := "import subprocess, time\nsubprocess.Popen(['setsid', 'sleep', '1000'])\nopen('started', 'w').close()\nwhile True: time.sleep(1)\n"
	if err := os.WriteFile(filepath.Join(dir, "app.py"), []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	group, err := w.keeper.Group("hang")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
	defer cancel()
	_, err = w.lang.Load(ctx, runtimeserver.Function{RunUID: "r", Dir: dir, Handler: "app.handle", Env: environment, Processes: group, Logs: newSink()})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("load answered %v", err)
	}
	if left, err := group.Left(); left || err != nil {
		t.Errorf("processes are left: %v, %v", left, err)
	}
	if err := group.Close(); err != nil {
		t.Error(err)
	}
}

func TestImportThatForksOrLeavesProcesses(t *testing.T) {
	l := newWorld(t, false).app(t, `
import os, subprocess
subprocess.Popen(["setsid", "sleep", "1000"])
back = os.fork() == 0
def handle(event): return back
`)
	l.want(`1`, `false`)
	mustContain(t, l.logs.text("/logger"), "processes running; they were ended")
}

func TestImportsBesideTheHandler(t *testing.T) {
	w := newWorld(t, false)
	for handler, files := range map[string][]string{
		"app.handle":        {"app.py", "import helper\nfrom pack.deep import value\nimport vendored\ndef handle(e): return [helper.x, value, vendored.y]\n", "helper.py", "x = 1\n", "pack/__init__.py", "", "pack/deep.py", "value = 2\n", "vendor/vendored.py", "y = 3\n"},
		"pack.sub.handle":   {"pack/sub.py", "from . import helper\nimport other\ndef handle(e): return [helper.x, other.y, 3]\n", "pack/__init__.py", "", "pack/helper.py", "x = 1\n", "other.py", "y = 2\n"},
		"space.sub.handle":  {"space/sub.py", "from .helper import x\ndef handle(e): return [x, 2, 3]\n", "space/helper.py", "x = 1\n"},
		"whole.handle":      {"whole/__init__.py", "def handle(e): return [1, 2, 3]\n", "whole.py", "raise ValueError('the package comes first')\n"},
		"code.handle":       {"code.py", "def handle(e): return [1, 2, 3]\n"},
		"executor.handle":   {"executor.py", "import function\ndef handle(e): return [1, 2, function.x]\n", "function.py", "x = 3\n"},
		"_private.__call__": {"_private.py", "def __call__(e): return [1, 2, 3]\n"},
	} {
		l := w.load(t, handler, files...)
		if l.err != nil {
			t.Errorf("%s: %v", handler, l.err)
			continue
		}
		l.want(`1`, `[1,2,3]`)
		if left, _ := filepath.Glob(filepath.Join(l.dir, "__pycache__")); len(left) > 0 {
			t.Errorf("%s: the import wrote into the working folder", handler)
		}
	}
}

func TestNamesOfPythonItself(t *testing.T) {
	w := newWorld(t, false)
	for _, module := range []string{"json", "sys", "time", "os"} {
		l := w.load(t, module+".handle", module+".py", echo)
		if !errors.Is(l.err, runtimeserver.ErrHandlerInvalid) || !strings.Contains(text(l.err), "module "+module+": the name is taken") {
			t.Errorf("%s: %v", module, l.err)
		}
	}
}

func TestReplacedSourceIsNotRunStale(t *testing.T) {
	w := newWorld(t, false)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	when := time.Now().Truncate(time.Second)
	for _, n := range []string{"1", "2", "3"} {
		name := filepath.Join(dir, "app.py")
		if err := errors.Join(os.WriteFile(name, []byte("def handle(e): return "+n+"\n"), 0o644), os.Chtimes(name, when, when)); err != nil {
			t.Fatal(err)
		}
		l := w.loadDir(t, dir, "app.handle")
		if l.err != nil {
			t.Fatal(l.err)
		}
		l.want(`0`, n)
	}
}

func TestResolve(t *testing.T) {
	lang, err := language()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	outside := filepath.Join(t.TempDir(), "out.py")
	for name, content := range map[string]string{"app.py": "", "a/b.py": "", "p/__init__.py": "", "file": ""} {
		if err := errors.Join(os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755), os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	err = errors.Join(os.WriteFile(outside, nil, 0o644), os.Symlink(outside, filepath.Join(dir, "link.py")),
		os.Symlink("app.py", filepath.Join(dir, "inner.py")), os.Symlink(filepath.Dir(outside), filepath.Join(dir, "door")),
		os.Symlink("loop.py", filepath.Join(dir, "loop.py")), os.Mkdir(filepath.Join(dir, "folder.py"), 0o755))
	if err != nil {
		t.Fatal(err)
	}
	for handler, want := range map[string]string{
		"app.handle": "", "a.b.f": "", "p.f": "", "inner.f": "",
		"": "is not module.function", "app": "is not module.function", "app.": "is not module.function", ".f": "is not module.function",
		"app.py.handle": "there is no file app/py.py", "../app.f": "is not module.function", "a/b.f": "is not module.function",
		"app.f()": "is not module.function", "app.f\n": "is not module.function", "äpp.f": "is not module.function", "app..f": "is not module.function",
		"os.system": "there is no file os.py", "file.sub.f": "there is no file", "nosuch.f": "there is no file nosuch.py in the working directory",
		"link.f": "leaves the working directory", "door.out.f": "leaves the working directory",
		"loop.f": "cannot be read", "folder.f": "is not a regular file",
	} {
		err := lang.Resolve(dir, handler)
		if (want == "") != (err == nil) || !strings.Contains(text(err), want) || (err != nil && !errors.Is(err, runtimeserver.ErrHandlerInvalid)) {
			t.Errorf("%q: %v, want %q", handler, err, want)
		}
	}
}

func TestCommand(t *testing.T) {
	lang, err := language()
	if err != nil {
		t.Fatal(err)
	}
	got, err := lang.Command("/w", "/w/main.py", []string{"-v"})
	if want := lang.Interpreter().Path + " /w/main.py -v"; err != nil || strings.Join(got, " ") != want {
		t.Errorf("%q, %v", got, err)
	}
	got, err = lang.Command("/w", "", []string{"-c", "1"})
	if want := lang.Interpreter().Path + " -c 1"; err != nil || strings.Join(got, " ") != want {
		t.Errorf("%q, %v", got, err)
	}
}

func TestInterpreterThatIsNone(t *testing.T) {
	for _, name := range []string{"", "no-such-python", "/bin/true", "/bin/cat"} {
		if _, err := python.New(context.Background(), python.Config{Interpreter: name, Cache: t.TempDir()}, python.Deps{}); err == nil {
			t.Errorf("%q was taken for an interpreter", name)
		}
	}
}
