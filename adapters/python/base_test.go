package python_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hearth-run/hearth/adapters/python"
)

// surroundings answers all that a function can see of where it came from.
const surroundings = `
import os, random, sys, threading
DRAWN = random.random()
TEMPLATE = os.getpid()
def handle(event):
    return {
        "environment": dict(os.environ), "cwd": os.getcwd(), "drawn": DRAWN, "hash": hash("hearth"), "template": TEMPLATE,
        "born": open("/proc/self/environ").read(), "fds": {fd: os.readlink("/proc/self/fd/" + fd).split(":")[0] for fd in os.listdir("/proc/self/fd") if os.path.lexists("/proc/self/fd/" + fd)},
        "cgroup": open("/proc/self/cgroup").read(), "path": sys.path, "argv": sys.argv, "flags": str(sys.flags), "threads": threading.active_count(),
        "orig": sys.orig_argv[0], "session": os.getsid(0) == os.getpid(), "mask": os.umask(0o22), "modules": sorted(sys.modules), "encoding": sys.stdout.encoding + sys.getfilesystemencoding(),
    }
`

type seen struct {
	Environment         map[string]string
	Cwd, Born, Cgroup   string
	Drawn               float64
	Hash                int64
	Template, Mask      int
	Fds                 map[string]string
	Path, Argv, Modules []string
	Flags, Orig         string
	Threads             int
	Session             bool
	Encoding            string
}

func (l *loaded) look() seen {
	l.t.Helper()
	result, err := l.call("null")
	if err != nil {
		l.t.Fatal(err)
	}
	var s seen
	if err := json.Unmarshal(result.Output, &s); err != nil {
		l.t.Fatal(err)
	}
	return s
}

// with loads surroundings with more variables.
func (w *world) with(t *testing.T, dir string, variables ...string) *loaded {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "app.py"), []byte(surroundings), 0o644); err != nil {
		t.Fatal(err)
	}
	before := environment
	environment = append(slices.Clone(environment), variables...)
	defer func() { environment = before }()
	l := w.loadDir(t, dir, "app.handle")
	if l.err != nil {
		t.Fatal(l.err)
	}
	return l
}

func warm(t *testing.T) *world {
	w := newWorld(t, false)
	if !w.keeper.Cgroups() {
		t.Skip("there are no cgroups here, and without them no base")
	}
	return w
}

// A function that grew from the base finds what one with an interpreter of its own
// finds, and nothing of the base or of another function.
func TestGrownIsAsStartedAfresh(t *testing.T) {
	w := warm(t)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	first, second := w.with(t, dir, "SECRET=one"), w.with(t, dir, "OTHER=two")
	own := w.with(t, dir, "SECRET=one", "MALLOC_ARENA_MAX=1")
	a, b, c := first.look(), second.look(), own.look()
	if strings.Contains(a.Born, "SECRET") || !strings.Contains(c.Born, "SECRET=one\x00") {
		t.Errorf("which of them have an interpreter of their own? %q, %q", a.Born, c.Born)
	}
	if a.Environment["SECRET"] != "one" || b.Environment["SECRET"] != "" || b.Environment["OTHER"] != "two" || a.Environment["OTHER"] != "" {
		t.Errorf("environments: %v, %v", a.Environment, b.Environment)
	}
	if a.Drawn == b.Drawn || a.Template == b.Template || a.Cgroup == b.Cgroup {
		t.Errorf("two functions share their numbers (%v), their template (%d) or their group (%s)", a.Drawn, a.Template, a.Cgroup)
	}
	delete(c.Environment, "MALLOC_ARENA_MAX")
	a.Born, c.Born, a.Cgroup, c.Cgroup, a.Drawn, c.Drawn, a.Template, c.Template, a.Hash, c.Hash = "", "", "", "", 0, 0, 0, 0, 0, 0
	if x, y := fmt.Sprintf("%+v", a), fmt.Sprintf("%+v", c); x != y {
		t.Errorf("grown:\n%s\nstarted:\n%s", x, y)
	}
}

// parentOf returns the parent of a process.
func parentOf(t *testing.T, pid int) int {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	parent, err := strconv.Atoi(strings.Fields(rest)[1])
	if err != nil {
		t.Fatal(err)
	}
	return parent
}

// basePid finds the base, which is in a cgroup of its own beneath the keeper's.
func basePid(t *testing.T, function seen) int {
	t.Helper()
	path := ""
	for line := range strings.Lines(function.Cgroup) {
		if rest, ok := strings.CutPrefix(line, "0::"); ok {
			path = rest
		}
	}
	life, _, ok := strings.Cut(path, "/python-")
	if !ok {
		t.Fatalf("no life in %q", path)
	}
	all, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range all {
		text, err := os.ReadFile(file)
		if err == nil && strings.Contains(string(text), life+"/language-") {
			if stat, err := os.ReadFile(filepath.Join(filepath.Dir(file), "stat")); err != nil || strings.Contains(string(stat), ") Z ") {
				continue
			}
			pid, err := strconv.Atoi(strings.Split(file, "/")[2])
			if err != nil {
				t.Fatal(err)
			}
			return pid
		}
	}
	return 0
}

// The end of the base is nothing to what grew from it: calls, successors after a
// timeout and closes go on. Loads go on with interpreters of their own until there
// is a new base.
func TestBaseThatDiesTakesNothingAlong(t *testing.T) {
	w := warm(t)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	l := w.with(t, dir)
	slow := w.app(t, "import time\ndef handle(event):\n    time.sleep(event)\n    return 1\n")
	before := l.look()
	if parentOf(t, before.Template) != os.Getpid() {
		t.Errorf("the template is a child of %d", parentOf(t, before.Template))
	}
	base := basePid(t, before)
	if base == 0 || base == before.Template {
		t.Fatalf("the base is %d, the template %d", base, before.Template)
	}
	if err := syscall.Kill(base, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	slow.want("0", "1")
	if _, err := slow.callFor(50*time.Millisecond, "60"); err == nil {
		t.Error("a call that outlasts its deadline was answered")
	}
	slow.want("0", "1")
	if after := l.look(); after.Template != before.Template {
		t.Error("the function was loaded again")
	}
	if own := w.with(t, dir, "WITHOUT=base").look(); !strings.Contains(own.Born, "WITHOUT=base") {
		t.Error("a load right after the base's end has grown from one")
	}
	if pid := basePid(t, before); pid != 0 {
		t.Errorf("base %d came at once", pid)
	}
	w.lang.Rested()
	if again := w.with(t, dir, "WITH=base").look(); strings.Contains(again.Born, "WITH=base") {
		t.Error("no new base was started")
	}
}

// A base is never forked while it has threads: what site-packages make of an
// interpreter's start cannot be known.
func TestBaseWithThreadsIsNone(t *testing.T) {
	shared := warm(t)
	venv := t.TempDir()
	if out, err := exec.Command(shared.lang.Interpreter().Path, "-m", "venv", "--without-pip", venv).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	packages, err := filepath.Glob(filepath.Join(venv, "lib", "python*", "site-packages"))
	if err != nil || len(packages) != 1 {
		t.Fatalf("%v, %v", packages, err)
	}
	thread := "import threading, time; threading.Thread(target=time.sleep, args=(600,), daemon=True).start()\n"
	if err := os.WriteFile(filepath.Join(packages[0], "thread.pth"), []byte(thread), 0o644); err != nil {
		t.Fatal(err)
	}
	lang, err := python.New(t.Context(), python.Config{Interpreter: filepath.Join(venv, "bin", "python"), Cache: t.TempDir()}, python.Deps{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	group, err := shared.keeper.Group("language")
	if err != nil {
		t.Fatal(err)
	}
	if err := lang.Open(group); err != nil {
		t.Fatal(err)
	}
	defer lang.Close()
	w := &world{lang: lang, keeper: shared.keeper}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	l := w.with(t, dir, "OWN=start")
	if s := l.look(); !strings.Contains(s.Born, "OWN=start") {
		t.Error("a template grew from a base with threads")
	}
	if left, err := group.Left(); left || err != nil {
		t.Errorf("the base was kept: %v, %v", left, err)
	}
}
