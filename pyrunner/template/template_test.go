package template_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/hearth-run/hearth/pyrunner"
	"github.com/hearth-run/hearth/pyrunner/frame"
	"github.com/hearth-run/hearth/pyrunner/message"
	"github.com/hearth-run/hearth/pyrunner/template"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var interpreter = sync.OnceValues(func() (pyrunner.Interpreter, error) {
	return pyrunner.FindInterpreter(context.Background(), "python3")
})

type process struct {
	*template.Template
	t   *testing.T
	cmd *exec.Cmd
	dir string
}

// start starts a template process for a handler app.handle.
func start(t *testing.T, source string) *process {
	t.Helper()
	python, err := interpreter()
	if err != nil {
		t.Fatal(err)
	}
	pkg, err := pyrunner.Install(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "app.py"), []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	ours, theirs, err := template.Pair(0)
	if err != nil {
		t.Fatal(err)
	}
	cmd := pkg.Command(python.Path, "template")
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.Stderr = os.Stderr
	if err := errors.Join(cmd.Start(), theirs.Close()); err != nil {
		t.Fatal(err)
	}
	p := &process{template.New(ours), t, cmd, dir}
	t.Cleanup(p.end)
	return p
}

// end lets the process go and wants it to end by itself, with status 0.
func (p *process) end() {
	if err := p.Close(); err != nil {
		p.t.Error(err)
	}
	if err := p.cmd.Wait(); err != nil {
		p.t.Errorf("the template process: %v", err)
	}
}

func (p *process) load() (template.Loaded, error) {
	return p.Load(p.t.Context(), "function", "run-1", p.dir, "app", "handle")
}

// fork returns a child that has said Ready.
func (p *process) fork() (int, *template.Conn) {
	p.t.Helper()
	ours, theirs, err := template.Pair(0)
	if err != nil {
		p.t.Fatal(err)
	}
	pid, err := p.Fork(p.t.Context(), theirs)
	if err != nil {
		p.t.Fatal(err)
	}
	if m, err := ours.Receive(); err != nil || m.Kind != message.Ready {
		p.t.Fatalf("the child said %v, %v", m, err)
	}
	return pid, ours
}

func ask(t *testing.T, c *template.Conn, payload string) string {
	t.Helper()
	if err := c.Send(message.Call, 1, "call", 60_000, payload); err != nil {
		t.Fatal(err)
	}
	m, err := c.Receive()
	if err != nil || m.Kind != message.Answer {
		t.Fatalf("answered %d %q, %v", m.Kind, m.Fields, err)
	}
	return m.Text(1)
}

func TestChildrenStartFromTheSamePristineState(t *testing.T) {
	p := start(t, "import os, time\ntime.sleep(0)\nn = 0\ndef handle(event):\n    global n\n    n += 1\n    return [n, os.getppid()]\n")
	loaded, err := p.load()
	if err != nil || !loaded.CanFork() || len(loaded.Descriptors) != 0 || loaded.Ended != 0 {
		t.Fatalf("%+v, %v", loaded, err)
	}
	first, a := p.fork()
	one := ask(t, a, "0")
	if two := ask(t, a, "0"); two == one {
		t.Errorf("module state was lost: %s twice", one)
	}
	second, b := p.fork()
	if got := ask(t, b, "0"); got != one {
		t.Errorf("the second child answers %s, the first %s", got, one)
	}
	for pid, c := range map[int]*template.Conn{first: a, second: b} {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if status, err := p.Reap(t.Context(), pid); err != nil || status.ExitStatus() != 0 {
			t.Errorf("child %d: %v, %v", pid, status, err)
		}
	}
}

func TestReapTellsTheSignalAndEndsWhatIsLeft(t *testing.T) {
	p := start(t, "import os, subprocess\ndef handle(event):\n    s = subprocess.Popen(['setsid', 'sleep', '1000'])\n    open('pid', 'w').write(str(s.pid))\n    os.kill(os.getpid(), 9)\n")
	if _, err := p.load(); err != nil {
		t.Fatal(err)
	}
	pid, c := p.fork()
	if err := c.Send(message.Call, 1, "call", 60_000, "0"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Receive(); !errors.Is(err, io.EOF) {
		t.Errorf("received %v", err)
	}
	if status, err := p.Reap(t.Context(), pid); err != nil || status.Signal() != syscall.SIGKILL {
		t.Errorf("%v, %v", status, err)
	}
	wantGone(t, filepath.Join(p.dir, "pid"))
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

func wantGone(t *testing.T, file string) {
	t.Helper()
	pid, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat("/proc/" + string(pid)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("process %s is left", pid)
	}
}

func TestTemplateTakesItsChildrenAlong(t *testing.T) {
	p := start(t, "import os, time\ndef handle(event):\n    open('pid.new', 'w').write(str(os.getpid())); os.rename('pid.new', 'pid')\n    time.sleep(1000)\n")
	if _, err := p.load(); err != nil {
		t.Fatal(err)
	}
	_, c := p.fork()
	if err := c.Send(message.Call, 1, "call", 60_000, "0"); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(p.dir, "pid")
	for {
		if _, err := os.Stat(file); err == nil {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if err := p.Close(); err != nil { // as when the server dies
		t.Error(err)
	}
	if _, err := c.Receive(); !errors.Is(err, io.EOF) {
		t.Errorf("the child said %v", err)
	}
	if err := p.cmd.Process.Signal(syscall.Signal(0)); err == nil {
		if _, err := p.cmd.Process.Wait(); err != nil {
			t.Error(err)
		}
	}
	wantGone(t, file)
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	p.cmd = exec.Command("true")
	if err := p.cmd.Start(); err != nil {
		t.Error(err)
	}
}

func TestRefusedLoadCanBeRepeated(t *testing.T) {
	p := start(t, "def handel(event): pass\n")
	_, err := p.load()
	if refused, ok := errors.AsType[*template.RefusedError](err); !ok || refused.Code != message.RefusedHandler || !strings.Contains(refused.Text, "handel") {
		t.Errorf("%v", err)
	}
}

func TestImportWithThreadsAndSocketsSaysSo(t *testing.T) {
	p := start(t, "import socket, threading, time\ns = socket.socket()\nthreading.Thread(target=time.sleep, args=(1000,), daemon=True).start()\ndef handle(event): return event\n")
	loaded, err := p.load()
	if err != nil || loaded.Threads != 2 || loaded.CanFork() || len(loaded.Descriptors) != 1 || !strings.Contains(loaded.Descriptors[0], " socket:[") {
		t.Fatalf("%+v, %v", loaded, err)
	}
	ours, theirs, err := template.Pair(0)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Serve(theirs); err != nil {
		t.Fatal(err)
	}
	if m, err := ours.Receive(); err != nil || m.Kind != message.Ready {
		t.Fatalf("said %v, %v", m, err)
	}
	if got := ask(t, ours, "7"); got != "7" {
		t.Errorf("answered %s", got)
	}
	if err := ours.Close(); err != nil {
		t.Error(err)
	}
}

func TestBoundInterruptsALoad(t *testing.T) {
	p := start(t, "import time\ntime.sleep(0.5)\ndef handle(event): pass\n")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, errors.New("too slow"))
	defer cancel()
	if _, err := p.Load(ctx, "function", "r", p.dir, "app", "handle"); err == nil || !strings.Contains(err.Error(), "too slow") {
		t.Errorf("%v", err)
	}
}

// A number that would stand for many processes, to whoever signals it, is none.
func TestForgedProcessNumber(t *testing.T) {
	for _, forged := range []int{-1, 0, 1} {
		ours, theirs, err := template.Pair(0)
		if err != nil {
			t.Fatal(err)
		}
		peer, err := net.FileConn(theirs)
		if err != nil {
			t.Fatal(err)
		}
		_ = theirs.Close()
		go func() { _ = frame.NewWriter(peer).Write(message.Append(nil, message.Forked, forged)) }()
		lost, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		tmpl := template.New(ours)
		if pid, err := tmpl.Fork(t.Context(), lost); !errors.Is(err, template.ErrOrder) {
			t.Errorf("process %d was believed: %d, %v", forged, pid, err)
		}
		if err := errors.Join(tmpl.Close(), peer.Close()); err != nil {
			t.Error(err)
		}
	}
}
