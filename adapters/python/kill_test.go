package python_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hearth-run/hearth/adapters/runtimeserver"
)

// eachWay runs a test with cgroups, where there are any, and without.
func eachWay(t *testing.T, test func(t *testing.T, w *world)) {
	t.Run("cgroup", func(t *testing.T) { test(t, newWorld(t, false)) })
	t.Run("process group", func(t *testing.T) { test(t, newWorld(t, true)) })
}

// spawner starts processes that hide in every way, notes their pids in files,
// and then does as the event says.
const spawner = `
import os, signal, subprocess, sys, time
def note(name):
    with open(name + ".new", "w") as f: f.write(str(os.getpid()))
    os.rename(name + ".new", name + ".pid")
def stay():
    while True: time.sleep(1000)
def child(name, body):
    if os.fork() == 0:
        try:
            body(name)
        finally:
            os._exit(0)
def plain(name): note(name); stay()
def deaf(name):
    for n in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP): signal.signal(n, signal.SIG_IGN)
    note(name); stay()
def daemon(name):
    os.setsid()
    if os.fork(): os._exit(0)
    os.closerange(0, 3000); os.chdir("/"); os.umask(0); os.chdir(home)
    note(name); stay()
def grandchild(name):
    child(name, plain); stay()
def stopped(name):
    note(name); os.kill(os.getpid(), signal.SIGSTOP)
home = os.getcwd()
kinds = {"plain": plain, "deaf": deaf, "daemon": daemon, "grandchild": grandchild, "stopped": stopped}
def handle(event):
    if event == "ping": return "pong"
    for name, body in kinds.items(): child(name, body)
    while not all(os.path.exists(name + ".pid") for name in kinds): time.sleep(0.001)
    note("self")
    if event == "raise": raise ValueError("with children")
    if event == "exit": os._exit(0)
    if event == "stay":
        signal.pthread_sigmask(signal.SIG_BLOCK, set(signal.Signals)); stay()
    return "done"
`

// pids returns the noted pids by name.
func pids(t *testing.T, dir string) map[string]int {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.pid"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		pid, err := strconv.Atoi(string(data))
		if err != nil {
			t.Fatal(err)
		}
		found[strings.TrimSuffix(filepath.Base(name), ".pid")] = pid
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	return found
}

// wantGone wants five processes noted and none of them in the process table, not
// as a zombie either. self is excepted if the instance lives on.
func wantGone(t *testing.T, found map[string]int, selfLives bool) {
	t.Helper()
	if len(found) != 6 {
		t.Errorf("noted only %v", found)
	}
	for name, pid := range found {
		err := syscall.Kill(pid, 0)
		if name == "self" && selfLives {
			if err != nil {
				t.Errorf("the instance %d is gone: %v", pid, err)
			}
			continue
		}
		if !errors.Is(err, syscall.ESRCH) {
			state, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			t.Errorf("%s (%d) is left: %s", name, pid, state)
		}
	}
}

func TestNoProcessOutlivesACallThatSucceeds(t *testing.T) {
	eachWay(t, func(t *testing.T, w *world) {
		l := w.app(t, spawner)
		l.want(`"return"`, `"done"`)
		wantGone(t, pids(t, l.dir), true)
		mustContain(t, l.logs.text("call-1/logger"), "warn ended what the call left running: ", " python")
		l.want(`"ping"`, `"pong"`)
	})
}

func TestNoProcessOutlivesACallThatFails(t *testing.T) {
	eachWay(t, func(t *testing.T, w *world) {
		l := w.app(t, spawner)
		_, err := l.call(`"raise"`)
		if failed := handlerError(t, err); failed.Type != "ValueError" {
			t.Error(failed)
		}
		wantGone(t, pids(t, l.dir), true)
		_, err = l.call(`"exit"`)
		if failed := handlerError(t, err); failed.Type != "exit" {
			t.Error(failed)
		}
		wantGone(t, pids(t, l.dir), false)
		l.want(`"ping"`, `"pong"`)
	})
}

func TestNoProcessOutlivesATimeout(t *testing.T) {
	eachWay(t, func(t *testing.T, w *world) {
		l := w.app(t, spawner)
		_, err := l.callFor(1500*time.Millisecond, `"stay"`)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("answered %v", err)
		}
		wantGone(t, pids(t, l.dir), false)
		l.want(`"ping"`, `"pong"`)
	})
}

func TestCancelledCallSaysItsCause(t *testing.T) {
	l := newWorld(t, false).app(t, "import time\ndef handle(event):\n    open('in', 'w').close()\n    while event: time.sleep(1)\n    return 'ok'\n")
	cause := errors.New("superseded")
	ctx, cancel := context.WithCancelCause(context.Background())
	go func() {
		for {
			if _, err := os.Stat(filepath.Join(l.dir, "in")); err == nil {
				break
			}
			time.Sleep(time.Millisecond)
		}
		cancel(cause)
	}()
	_, err := l.inst.Invoke(ctx, runtimeserver.Call{InvocationID: "i", Input: []byte("1"), Deadline: time.Now().Add(time.Hour)})
	if !errors.Is(err, cause) {
		t.Errorf("answered %v", err)
	}
	l.want(`0`, `"ok"`)
}

func TestCloseInterruptsACall(t *testing.T) {
	eachWay(t, func(t *testing.T, w *world) {
		l := w.app(t, spawner)
		done := make(chan error)
		go func() {
			_, err := l.call(`"stay"`)
			done <- err
		}()
		for {
			if _, err := os.Stat(filepath.Join(l.dir, "self.pid")); err == nil {
				break
			}
			time.Sleep(time.Millisecond)
		}
		if err := l.inst.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; err == nil || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("answered %v", err)
		}
		wantGone(t, pids(t, l.dir), false)
		if _, err := l.call(`"ping"`); err == nil {
			t.Error("a closed instance answered")
		}
		if err := l.inst.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestSuccessorIsPristineAndDoesNotImportAgain(t *testing.T) {
	l := newWorld(t, false).app(t, `
import os, time
with open("imports", "a") as f: f.write("x")
count = 0
def handle(event):
    global count
    count += 1
    if event == "exit": os._exit(0)
    if event == "hang": time.sleep(1000)
    return [count, os.path.getsize("imports"), os.getpid() != os.getppid()]
`)
	l.want(`0`, `[1,1,true]`)
	l.want(`0`, `[2,1,true]`)
	for _, event := range []string{`"exit"`, `"hang"`, `"exit"`} {
		if _, err := l.callFor(300*time.Millisecond, event); err == nil {
			t.Errorf("%s was answered", event)
		}
		l.want(`0`, `[1,1,true]`)
	}
}

func TestThreadsAfterTheImportMeanAFreshLoad(t *testing.T) {
	eachWay(t, func(t *testing.T, w *world) {
		l := w.app(t, `
import os, threading, time
with open("imports", "a") as f: f.write("x")
threading.Thread(target=lambda: time.sleep(1000), daemon=True).start()
def handle(event):
    if event == "exit": os._exit(5)
    if event == "hang": os.system("setsid sleep 1000 & :"); time.sleep(1000)
    return os.path.getsize("imports")
`)
		mustContain(t, l.logs.text("/logger"), "warn the import of module app left 1 threads running", "loaded afresh")
		l.want(`0`, `1`)
		_, err := l.call(`"exit"`)
		if failed := handlerError(t, err); failed.Type != "exit" || failed.ExitCode != 5 {
			t.Errorf("%+v", failed)
		}
		l.want(`0`, `2`)
		if _, err := l.callFor(500*time.Millisecond, `"hang"`); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("answered %v", err)
		}
		l.want(`0`, `3`)
	})
}

func TestImportsAreAskedToStartNoThreads(t *testing.T) {
	l := newWorld(t, false).app(t, `
import os
at_import = os.environ.get("OPENBLAS_NUM_THREADS"), os.environ.get("OMP_NUM_THREADS")
def handle(event): return [*at_import, os.environ.get("OPENBLAS_NUM_THREADS"), os.environ.get("OMP_NUM_THREADS")]
`)
	l.want(`1`, `["1","1",null,null]`)
}

func TestFreshLoadThatFailsIsALoadError(t *testing.T) {
	l := newWorld(t, false).app(t, `
import os, threading, time
threading.Thread(target=lambda: time.sleep(1000), daemon=True).start()
def handle(event):
    os.remove(__file__)
    os._exit(0)
`)
	if _, err := l.call(`0`); err == nil {
		t.Error("os._exit was answered")
	}
	for range 2 {
		_, err := l.call(`0`)
		if failed, ok := errors.AsType[*runtimeserver.LoadError](err); !ok || !strings.Contains(failed.Text, "app") {
			t.Errorf("answered %v", err)
		}
	}
}

func TestTemplateThatIsKilledIsReplaced(t *testing.T) {
	l := newWorld(t, false).app(t, "import os\ndef handle(event):\n    if event: os.kill(os.getppid(), 9); os._exit(1)\n    return 'ok'\n")
	for range 2 {
		if _, err := l.call(`1`); err == nil {
			t.Error("os._exit was answered")
		}
		l.want(`0`, `"ok"`)
	}
}

func TestInstanceThatDiedBetweenCalls(t *testing.T) {
	l := newWorld(t, false).app(t, `
import os, threading
go = threading.Event()
def die(): go.wait(); os._exit(9)
def handle(event):
    if event: threading.Timer(0.02, os._exit, (9,)).start()
    return os.getpid()
`)
	got, err := l.call(`1`)
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	if err := json.Unmarshal(got.Output, &pid); err != nil {
		t.Fatal(err)
	}
	for zombie := false; !zombie; {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		zombie = err != nil || strings.Contains(string(stat), ") Z ")
		time.Sleep(time.Millisecond)
	}
	got, err = l.call(`0`)
	if err != nil || string(got.Output) == fmt.Sprint(pid) {
		t.Errorf("the call after it: %s, %v", got.Output, err)
	}
}

func TestSuccessorsShareNoRandomness(t *testing.T) {
	l := newWorld(t, false).app(t, `
import os, random, ssl, sys, tempfile, uuid
try:
    import numpy.random
except ImportError:
    pass
random.random(), tempfile.mktemp(), uuid.uuid1()
def handle(event):
    if event: os._exit(0)
    numpy = sys.modules.get("numpy")
    return [random.random(), str(uuid.uuid4()), str(uuid.uuid1()), ssl.RAND_bytes(8).hex(), tempfile.mktemp(),
            float(numpy.random.random()) if numpy else os.urandom(4).hex()]
`)
	seen := map[string]bool{}
	for range 20 {
		got, err := l.call(`0`)
		if err != nil {
			t.Fatal(err)
		}
		var values []any
		if err := json.Unmarshal(got.Output, &values); err != nil {
			t.Fatal(err)
		}
		for _, v := range values {
			if seen[fmt.Sprint(v)] {
				t.Errorf("%v came twice", v)
			}
			seen[fmt.Sprint(v)] = true
		}
		if _, err := l.call(`1`); err == nil {
			t.Fatal("os._exit was answered")
		}
	}
}

func TestManyDeathsLeaveDescriptorsAndProcessesFlat(t *testing.T) {
	l := newWorld(t, false).app(t, "import os\ndef handle(event):\n    if event: os._exit(1)\n    return 1\n")
	cycle := func(n int) int {
		for range n {
			if _, err := l.call(`1`); err == nil {
				t.Fatal("os._exit was answered")
			}
			l.calls = 0
			l.want(`0`, `1`)
		}
		open, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(open)
	}
	before := cycle(3)
	if after := cycle(50); after > before {
		t.Errorf("%d descriptors after 53 deaths, %d after 3", after, before)
	}
}
