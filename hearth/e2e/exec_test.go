package e2e

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hearth-run/hearth/hearth/internal/cli"
	"github.com/hearth-run/hearth/sandbox/process"
)

// workshop is a house with executions, whose worker is ready.
func workshop(t *testing.T) *house {
	t.Helper()
	h := spawn(t, t.TempDir(), "--router", "127.0.0.1:0", "--executor-python", interpreter(t))
	h.awaitWorker(t)
	return h
}

func (h *house) awaitWorker(t *testing.T) {
	t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for {
		out, _ := h.run(t, 0, "worker", "list", "-o", "json")
		if strings.Contains(out, "READY") {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("no worker is ready: %s\n%s", out, h.stderr)
		}
		time.Sleep(20 * time.Millisecond) // nothing tells when a worker is ready
	}
}

var environment struct {
	once   sync.Once
	python string
	err    error
}

// interpreter makes one environment with cloudpickle for all tests of the run.
func interpreter(t *testing.T) string {
	t.Helper()
	environment.once.Do(func() {
		var folder string
		if folder, environment.err = os.MkdirTemp("", "hearth-e2e-"); environment.err != nil {
			return
		}
		// Executors run as users without rights, who have to be able to read it.
		if environment.err = os.Chmod(folder, 0o755); environment.err != nil {
			return
		}
		venv := exec.Command("python3", "-m", "venv", "--system-site-packages", folder)
		if out, err := venv.CombinedOutput(); err != nil {
			environment.err = fmt.Errorf("%w: %s", err, out)
			return
		}
		environment.python = filepath.Join(folder, "bin", "python")
		pip := exec.Command(environment.python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "cloudpickle==3.1.2")
		if out, err := pip.CombinedOutput(); err != nil {
			environment.err = fmt.Errorf("%w: %s", err, out)
		}
	})
	if environment.err != nil {
		t.Fatal(environment.err)
	}
	return environment.python
}

// cleanEnvironment removes what interpreter made.
func cleanEnvironment() {
	if environment.python != "" {
		_ = os.RemoveAll(filepath.Dir(filepath.Dir(environment.python)))
	}
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "f.py")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestExec(t *testing.T) {
	h := workshop(t)
	primes := examples("exec", "primes.py")
	out, printed := h.run(t, 0, "exec", "--explain", primes+":count", "100")
	if out != "25\n" || !strings.Contains(printed, "crossed out the multiples of 7") || !strings.Contains(printed, "started cold") && !strings.Contains(printed, "started from z-") || !strings.Contains(printed, "in all") {
		t.Errorf("printed %q, %q", out, printed)
	}
	for _, want := range []string{"1\n", "2\n"} {
		if out, _ := h.run(t, 0, "exec", "--session", "s", primes+":counter"); out != want {
			t.Errorf("session: %q, want %q", out, want)
		}
	}
	if out, _ := h.run(t, 0, "session", "list"); !strings.Contains(out, "PINNED") {
		t.Errorf("sessions: %s", out)
	}
	if _, printed := h.run(t, 1, "exec", write(t, "def f(): raise ValueError('no')")+":f"); !strings.Contains(printed, "ValueError: no") || !strings.Contains(printed, "Traceback") {
		t.Errorf("a function that raises: %s", printed)
	}
	if _, printed := h.run(t, 2, "exec", primes+":count", "x"); !strings.Contains(printed, "not JSON") {
		t.Errorf("an argument that is no JSON: %s", printed)
	}
	if _, printed := h.run(t, 124, "exec", "--timeout", "2s", write(t, "import time\ndef f(): time.sleep(600)")+":f"); !strings.Contains(printed, "--timeout") {
		t.Errorf("a deadline: %s", printed)
	}
	if _, printed := h.run(t, 1, "exec", "--memory", "64Mi", "--max-memory", "64Mi", write(t, "def f(): return len([b'x' * (1 << 20) for _ in range(500)])")+":f"); !strings.Contains(printed, "OUT_OF_MEMORY") {
		t.Errorf("too little memory: %s", printed)
	}
	if code := h.stop(); code != 0 {
		t.Errorf("exit code %d\n%s", code, h.stderr)
	}
	if left := processes(t, h.data); len(left) > 0 {
		t.Errorf("left running: %v", left)
	}
}

// A line that is printed before the function's end arrives before it: the
// function waits for a file that is written only once its line was seen.
func TestExecIsLive(t *testing.T) {
	h := workshop(t)
	source := write(t, "import time\ndef f():\n    print('before', flush=True)\n    time.sleep(3)\n    return time.time()\n")
	cmd := command(h.lead([]string{"exec", source + ":f"})...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(stderr).ReadString('\n'); err != nil || line != "before\n" {
		t.Errorf("the first line was %q (%v)", line, err)
	}
	seen := time.Now()
	value, err := io.ReadAll(stdout)
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	var ended float64
	if _, err := fmt.Sscan(string(value), &ended); err != nil {
		t.Fatalf("value %q: %v", value, err)
	}
	if seen.After(time.UnixMicro(int64(ended * 1e6))) {
		t.Error("the line arrived only after the function's end")
	}
}

// part is one service as a process of its own.
type part struct {
	cmd     *exec.Cmd
	address string
	stderr  *safeBuffer
}

// begin starts a service and returns once it says where it listens.
func begin(t *testing.T, address string, args ...string) *part {
	t.Helper()
	p := &part{cmd: command(args...), address: address, stderr: &safeBuffer{}}
	p.cmd.Stderr = p.stderr
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.kill(syscall.SIGKILL) })
	p.until(t, "address")
	return p
}

func (p *part) until(t *testing.T, text string) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for !strings.Contains(p.stderr.String(), text) {
		if time.Now().After(deadline) {
			t.Fatalf("%q was not said: %s", text, p.stderr)
		}
		time.Sleep(10 * time.Millisecond) // another process's log
	}
}

func (p *part) kill(signal syscall.Signal) {
	if p.cmd.ProcessState == nil {
		_ = p.cmd.Process.Signal(signal)
		_ = p.cmd.Wait()
	}
}

// Whatever dies in the middle of a hundred calls: each ends with its value or a
// typed error, nothing is left, and the next call works.
func TestExecFaults(t *testing.T) {
	folder, err := os.MkdirTemp("", "hx")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(folder)
	router, worker := "unix:"+filepath.Join(folder, "r"), "unix:"+filepath.Join(folder, "w")
	startRouter := func() *part {
		return begin(t, router, "router", "--listen", router, "--probe-every", "1s", "--probe-timeout", "500ms")
	}
	startWorker := func() *part {
		p := begin(t, worker, "worker", "--listen", worker, "--routers", router, "--worker-data", filepath.Join(folder, "d"),
			"--executor-python", interpreter(t), "--memory", "274877906944", "--default-memory", "134217728", "--scratch-bytes", "16777216")
		p.until(t, "worker is prepared")
		return p
	}
	r, w := startRouter(), startWorker()
	h := &house{doors: map[string]string{"router": router}, stderr: r.stderr}
	h.awaitWorker(t)
	source := write(t, "import time\ndef f():\n    print('up')\n    time.sleep(8)\n    return 7\n")
	for _, fault := range []struct {
		name string
		do   func()
	}{
		{"executor", func() { killExecutors(t, filepath.Join(folder, "d")) }},
		{"worker", func() { w.kill(syscall.SIGKILL); awaitGone(t, filepath.Join(folder, "d")); w = startWorker() }},
		{"router", func() { r.kill(syscall.SIGKILL); r = startRouter() }},
	} {
		t.Run(fault.name, func(t *testing.T) {
			h.awaitWorker(t)
			results := make(chan string, 100)
			running := make(chan struct{}, 100)
			for range 100 {
				go func() { results <- execOnce(h, source, running) }()
			}
			for i := range 10 {
				select {
				case <-running:
				case <-time.After(time.Minute):
					t.Fatalf("only %d calls run\n%s", i, w.stderr)
				}
			}
			fault.do()
			counts := map[string]int{}
			for range 100 {
				counts[<-results]++
			}
			t.Logf("%v", counts)
			if counts["7"] == 100 {
				t.Error("no call was hit: the fault did nothing")
			}
			for what := range counts {
				if strings.HasPrefix(what, "untyped") {
					t.Errorf("%d calls: %s", counts[what], what)
				}
			}
			h.awaitWorker(t)
			if got := execOnce(h, source, running); got != "7" {
				t.Errorf("the next call: %s\n%s", got, w.stderr)
			}
		})
	}
	w.kill(syscall.SIGTERM)
	r.kill(syscall.SIGTERM)
	if left := processes(t, folder); len(left) > 0 {
		t.Errorf("left running: %v", left)
	}
	if text, err := os.ReadFile("/proc/self/mountinfo"); err != nil || strings.Contains(string(text), folder) {
		t.Errorf("left mounted (%v)", err)
	}
}

// awaitGone returns when nothing is left of a killed worker, which nobody starts again:
// processes, control groups, mounts, sockets of calls.
func awaitGone(t *testing.T, data string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		left, err := process.Leftovers(filepath.Join(data, "sandbox"))
		if err != nil {
			t.Fatal(err)
		}
		files, err := filepath.Glob(filepath.Join(data, "run", "*"))
		if err != nil {
			t.Fatal(err)
		}
		left = slices.Concat(left, files, processes(t, data))
		if len(left) == 0 {
			return
		}
		if time.Now().After(end) {
			t.Errorf("left of a killed worker: %q", left)
			return
		}
	}
}

// killExecutors kills every executor of a worker.
func killExecutors(t *testing.T, folder string) {
	t.Helper()
	for _, entry := range processes(t, folder) {
		if strings.Contains(entry, "python") {
			var pid int
			if _, err := fmt.Sscan(entry, &pid); err == nil {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
}

// execOnce runs one call as the command does and returns its value or the reason
// of its error.
func execOnce(h *house, source string, running chan<- struct{}) string {
	var out bytes.Buffer
	said := &upTeller{running: running}
	shell := cli.Shell{In: strings.NewReader(""), Out: &out, Err: said, Environ: os.Environ()}
	code := cli.Main(context.Background(), shell, h.lead([]string{"exec", "--timeout", "2m", source + ":f"}))
	if code == 0 {
		return strings.TrimSpace(out.String())
	}
	text := said.text.String()
	if i, j := strings.LastIndex(text, "["), strings.LastIndex(text, "]"); i >= 0 && j > i {
		return text[i : j+1]
	}
	if strings.Contains(text, "cannot reach") {
		return "[unreachable]" // the caller lost the router itself
	}
	return "untyped " + text
}

// upTeller keeps what a command says and tells when its function says that it is up.
type upTeller struct {
	running chan<- struct{}
	text    bytes.Buffer
}

func (u *upTeller) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("up\n")) {
		select {
		case u.running <- struct{}{}:
		default:
		}
		return len(p), nil
	}
	return u.text.Write(p)
}
