package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// SIGTERM ends everything within five seconds, with status 0.
func TestSIGTERM(t *testing.T) {
	h := spawn(t, t.TempDir())
	h.create(t, "python", "python", "app.hello", examples("python", "hello"))
	h.create(t, "bash", "bash", "hello.greet", examples("bash", "hello"))
	family := h.family(t)
	if len(family) < 5 {
		t.Errorf("only %v belong to the house: the test sees too few", family)
	}
	start := time.Now()
	if code := h.stop(); code != 0 {
		t.Errorf("exit code %d\n%s", code, h.stderr)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
	if left := alive(t, family); len(left) > 0 {
		t.Errorf("left running: %v", left)
	}
	sockets, err := filepath.Glob(filepath.Join(h.data, "sockets", "*"))
	if err != nil || len(sockets) > 0 {
		t.Errorf("left behind: %v %v", sockets, err)
	}
}

// What does not end by itself is ended in all nodes at once, so that two stubborn
// tasks take no longer than one.
func TestSIGTERMEndsStubborn(t *testing.T) {
	h := spawn(t, t.TempDir())
	h.task(t, 0, "sh", []string{"--runtime", "bash"}, `trap "" TERM; echo ready; sleep 100`)
	h.task(t, 0, "py", []string{"--runtime", "python"}, "-c",
		"import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True); time.sleep(100)")
	for _, name := range []string{"sh", "py"} {
		h.follow(t, name).until(t, "ready")
	}
	family := h.family(t)
	if code := h.stop(); code != 0 {
		t.Errorf("exit code %d\n%s", code, h.stderr)
	}
	if left := alive(t, family); len(left) > 0 {
		t.Errorf("left running: %v", left)
	}
	var begun []string
	for line := range strings.Lines(h.stderr.String()) {
		node, _, _ := strings.Cut(line[strings.Index(line, `"service":"`)+11:], `"`)
		switch {
		case strings.Contains(line, `"to":"releasing"`):
			begun = append(begun, node)
		case strings.Contains(line, `"from":"releasing"`) && len(begun) < 2:
			t.Errorf("%s had let go before another node was told to:\n%s", node, h.stderr)
		}
	}
	if len(begun) != 2 {
		t.Errorf("released: %v, want both tasks\n%s", begun, h.stderr)
	}
}

// A call that outlasts the end is told so, on every protocol alike.
func TestSIGTERMAnswersCalls(t *testing.T) {
	h := spawn(t, t.TempDir())
	file := filepath.Join(t.TempDir(), "app.sh")
	if err := os.WriteFile(file, []byte("handle() { echo ready >&2; sleep 100; }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.create(t, "slow", "bash", "app.handle", file)
	answered := make(chan answer, 1)
	go func() { answered <- h.call(t, "slow", "") }()
	h.follow(t, "slow").until(t, "ready")
	if code := h.stop(); code != 0 {
		t.Errorf("exit code %d\n%s", code, h.stderr)
	}
	got := <-answered
	got.wants(t, 503, "SHUTTING_DOWN")
}

// follow reads the log of a Run from its beginning, as it is written.
func (h *house) follow(t *testing.T, name string) *lines {
	t.Helper()
	cmd := command("logs", name, "-f", "--gateway", h.doors["gateway"])
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return newLines(pipe)
}

// After kill -9 a new start brings the Runs back, and ends what the first life
// has left.
func TestKillAndRestart(t *testing.T) {
	data := t.TempDir()
	first := spawn(t, data)
	first.create(t, "hello", "python", "app.hello", examples("python", "hello"))
	first.create(t, "shell", "bash", "hello.greet", examples("bash", "hello"))
	uid := first.uid(t, "hello")
	before := first.family(t)
	if err := first.process.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	first.stop()

	second := spawn(t, data)
	second.run(t, 0, "run", "wait", "hello")
	second.run(t, 0, "run", "wait", "shell")
	if now := second.uid(t, "hello"); now != uid {
		t.Errorf("Run %s came back as %s", uid, now)
	}
	second.call(t, "hello", "{}").wants(t, 200, "")
	second.call(t, "shell", "{}").wants(t, 200, "")
	if left := alive(t, before); len(left) > 0 {
		t.Errorf("alive since the first life: %v", left)
	}
	after := second.family(t)
	if code := second.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if left := alive(t, after); len(left) > 0 {
		t.Errorf("left running: %v", left)
	}
}

func (h *house) uid(t *testing.T, name string) string {
	t.Helper()
	out, _ := h.run(t, 0, "run", "get", name)
	for line := range strings.Lines(out) {
		if fields := strings.Fields(line); len(fields) == 2 && fields[0] == "UID:" {
			return fields[1]
		}
	}
	t.Fatalf("no UID in %s", out)
	return ""
}

// Two houses cannot live in one folder, and the second one says so.
func TestLock(t *testing.T) {
	h := up(t)
	cmd := command(upArgs(h.data, nil)...)
	out, err := cmd.CombinedOutput()
	if err == nil || cmd.ProcessState.ExitCode() != 1 || !bytes.Contains(out, []byte("another Hearth uses this data folder")) || !bytes.Contains(out, []byte("--data")) {
		t.Errorf("%v: %s", err, out)
	}
	h.run(t, 0, "status")
}

// The demo is right about everything it shows.
func TestDemo(t *testing.T) {
	out, err := command("demo", "--exit").CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("Every answer was right.")) {
		t.Errorf("%v\n%s", err, out)
	}
}

// proc is one process; a pid that is used again has another start.
type proc struct {
	pid, parent, name, start string
}

// table is every process that there is now.
func table(t *testing.T) []proc {
	t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	var list []proc
	for _, dir := range dirs {
		// One that has ended meanwhile is not there; a zombie runs no more.
		stat, _ := os.ReadFile(filepath.Join(dir, "stat"))
		head, rest, _ := strings.Cut(string(stat), ") ")
		fields := strings.Fields(rest)
		if len(fields) < 20 || fields[0] == "Z" {
			continue
		}
		pid, name, _ := strings.Cut(head, " (")
		list = append(list, proc{pid, fields[1], name, fields[19]})
	}
	return list
}

// family is the house's process and all that descend from it.
func (h *house) family(t *testing.T) []proc {
	t.Helper()
	all := table(t)
	members := map[string]bool{strconv.Itoa(h.process.Process.Pid): true}
	for grown := true; grown; {
		grown = false
		for _, p := range all {
			if members[p.parent] && !members[p.pid] {
				members[p.pid], grown = true, true
			}
		}
	}
	return slices.DeleteFunc(all, func(p proc) bool { return !members[p.pid] })
}

// alive are those of a list that run still.
func alive(t *testing.T, list []proc) []proc {
	t.Helper()
	now := table(t)
	return slices.DeleteFunc(list, func(p proc) bool {
		return !slices.ContainsFunc(now, func(other proc) bool { return other.pid == p.pid && other.start == p.start })
	})
}

// processes returns "pid name start" of every process that has to do with a
// folder: it works in it, or its command line or environment names it.
func processes(t *testing.T, folder string) []string {
	t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, dir := range dirs {
		// A process can end while it is looked at: then it is not there.
		cwd, _ := os.Readlink(filepath.Join(dir, "cwd"))
		environ, _ := os.ReadFile(filepath.Join(dir, "environ"))
		cmdline, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		stat, _ := os.ReadFile(filepath.Join(dir, "stat"))
		_, rest, _ := strings.Cut(string(stat), ") ")
		fields := strings.Fields(rest)
		if len(fields) < 20 || filepath.Base(dir) == "self" {
			continue
		}
		if strings.HasPrefix(cwd, folder) || bytes.Contains(environ, []byte(folder)) || bytes.Contains(cmdline, []byte(folder)) {
			name, _, _ := strings.Cut(string(cmdline), "\x00")
			found = append(found, filepath.Base(dir)+" "+name+" "+fields[19])
		}
	}
	return found
}
