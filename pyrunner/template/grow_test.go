package template_test

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/hearth-run/hearth/pyrunner/template"
)

// grow grows a template and returns it with its pid.
func grow(t *testing.T, from *template.Template, s template.Surroundings) (*template.Template, int) {
	t.Helper()
	ours, theirs, err := template.Pair(0)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := from.Grow(t.Context(), theirs, s)
	if err != nil {
		t.Fatal(err)
	}
	return template.New(ours), pid
}

func closeTemplate(t *testing.T, grown *template.Template) {
	t.Helper()
	if err := grown.Close(); err != nil {
		t.Error(err)
	}
}

// TestGrownTemplateIsATemplateOfItsOwn: a template that has loaded nothing grows one with
// surroundings of its own, which grows another one, loads, forks and reaps.
func TestGrownTemplateIsATemplateOfItsOwn(t *testing.T) {
	p := start(t, `
import os, random, sys, time
print("imported", os.environ["A"], flush=True)
shared = random.random()
def handle(event):
    print("called", flush=True)
    return [os.getcwd(), dict(os.environ), time.tzname[0], os.getsid(0) == os.getpid(), sorted(map(int, os.listdir("/proc/self/fd")))[:4], random.random() == shared]
`)
	out, err := os.CreateTemp(t.TempDir(), "out")
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	between, first := grow(t, p.Template, template.Surroundings{})
	env := []string{"A=ü=1", "EMPTY=", "TZ=XYZ3"}
	grown, second := grow(t, between, template.Surroundings{Dir: p.dir, Env: env, Stdout: out, Stderr: out})
	if loaded, err := grown.Load(t.Context(), "function", "run-1", p.dir, "app", "handle"); err != nil || !loaded.CanFork() || len(loaded.Descriptors) != 0 {
		t.Fatalf("%+v, %v", loaded, err)
	}
	child := &process{Template: grown, t: t}
	pid, conn := child.fork()
	var got []any
	if err := json.Unmarshal([]byte(ask(t, conn, "0")), &got); err != nil {
		t.Fatal(err)
	}
	want := []any{p.dir, map[string]any{"A": "ü=1", "EMPTY": "", "TZ": "XYZ3"}, "XYZ", true, []any{0.0, 1.0, 2.0, 3.0}, false}
	want[4] = got[4] // judged by its first three, and by what Load has listed
	if a, b := mustText(t, got), mustText(t, want); a != b || !strings.HasPrefix(mustText(t, got[4]), "[0,1,2,") {
		t.Errorf("%s, want %s", a, b)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	if status, err := grown.Reap(t.Context(), pid); err != nil || status.ExitStatus() != 0 {
		t.Errorf("the child: %v, %v", status, err)
	}
	closeTemplate(t, grown)
	if status, err := between.Reap(t.Context(), second); err != nil || status.ExitStatus() != 0 {
		t.Errorf("the grown template: %v, %v", status, err)
	}
	closeTemplate(t, between)
	if status, err := p.Reap(t.Context(), first); err != nil || status.ExitStatus() != 0 {
		t.Errorf("the one between: %v, %v", status, err)
	}
	if text, err := os.ReadFile(out.Name()); err != nil || string(text) != "imported ü=1\ncalled\n" {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := p.load(); err == nil || !strings.Contains(err.Error(), "KeyError") {
		t.Errorf("the first template took the grown one's environment: %v", err)
	}
}

func mustText(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestGrownTemplateEndsWithItsOwn: kill -9 of a template takes a grown child along, and
// what that has forked.
func TestGrownTemplateEndsWithItsOwn(t *testing.T) {
	p := start(t, "import os\ndef handle(event):\n    open('pid', 'w').write(str(os.getpid()))\n    return 1\n")
	between, first := grow(t, p.Template, template.Surroundings{})
	grown, _ := grow(t, between, template.Surroundings{})
	if _, err := grown.Load(t.Context(), "function", "run-1", p.dir, "app", "handle"); err != nil {
		t.Fatal(err)
	}
	child := &process{Template: grown, t: t}
	_, conn := child.fork()
	ask(t, conn, "0")
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Receive(); !errors.Is(err, io.EOF) {
		t.Errorf("the child said %v", err)
	}
	if status, err := p.Reap(t.Context(), first); err != nil || status.Signal() != syscall.SIGKILL {
		t.Errorf("%v, %v", status, err)
	}
	wantGone(t, filepath.Join(p.dir, "pid"))
	closeTemplate(t, between)
	closeTemplate(t, grown)
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
}

// TestGrownSibling: it outlives the template that it grew from, and is reaped here.
func TestGrownSibling(t *testing.T) {
	runtime.LockOSThread() // whose end would be the end of what it has started
	defer runtime.UnlockOSThread()
	p := start(t, "import os\ndef handle(event): return os.getppid()\n")
	between, first := grow(t, p.Template, template.Surroundings{Sibling: true})
	wantGroup(t, first, syscall.Getpgrp()) // the group of the template, which leads none here
	grown, second := grow(t, between, template.Surroundings{Sibling: true})
	wantGroup(t, first, first) // it was told something
	wantGroup(t, second, first)
	closeTemplate(t, between)
	if status := reap(t, first); status.ExitStatus() != 0 {
		t.Errorf("%v", status)
	}
	if _, err := grown.Load(t.Context(), "function", "run-1", p.dir, "app", "handle"); err != nil {
		t.Fatal(err)
	}
	wantGroup(t, second, second)
	child := &process{Template: grown, t: t}
	_, conn := child.fork()
	if got := ask(t, conn, "0"); got != mustText(t, second) {
		t.Errorf("parent %s, want %d", got, second)
	}
	closeTemplate(t, grown)
	if status := reap(t, second); status.ExitStatus() != 0 {
		t.Errorf("%v", status)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
}

func wantGroup(t *testing.T, pid, want int) {
	t.Helper()
	if group, err := syscall.Getpgid(pid); err != nil || group != want {
		t.Errorf("process %d is in group %d, want %d; %v", pid, group, want, err)
	}
}

func reap(t *testing.T, pid int) syscall.WaitStatus {
	t.Helper()
	var status syscall.WaitStatus
	for {
		if _, err := syscall.Wait4(pid, &status, 0, nil); err == nil {
			return status
		} else if err != syscall.EINTR {
			t.Fatal(err)
		}
	}
}
