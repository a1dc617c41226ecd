package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// apart are a router and a worker as processes of their own.
type apart struct {
	*house
	folder string
	router *part
	worker *part
}

// separate starts them, and returns once the worker is ready.
func separate(t *testing.T, workerArgs ...string) *apart {
	t.Helper()
	return separateWith(t, os.Args[0], workerArgs...)
}

// separateWith is separate with a program of its own.
func separateWith(t *testing.T, program string, workerArgs ...string) *apart {
	t.Helper()
	folder, err := os.MkdirTemp("", "hx") // short: a socket's path has 108 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	router, worker := "unix:"+filepath.Join(folder, "r"), "unix:"+filepath.Join(folder, "w")
	a := &apart{folder: folder}
	a.router = launch(t, program, router, "router", "--listen", router, "--probe-every", "500ms", "--probe-timeout", "300ms")
	a.worker = launch(t, program, worker, append([]string{
		"worker", "--listen", worker, "--routers", router, "--worker-data", filepath.Join(folder, "d"),
		"--executor-python", interpreter(t), "--utilization-interval", "500ms",
	}, workerArgs...)...)
	a.worker.until(t, "worker is prepared")
	a.house = &house{doors: map[string]string{"router": router}, stderr: a.router.stderr}
	a.awaitWorker(t)
	return a
}

// launch is begin with a program of its own.
func launch(t *testing.T, program, address string, args ...string) *part {
	t.Helper()
	p := &part{cmd: command(args...), address: address, stderr: &safeBuffer{}}
	p.cmd.Path, p.cmd.Args[0], p.cmd.Stderr = program, program, p.stderr
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.kill(syscall.SIGKILL) })
	p.until(t, "address")
	return p
}

// end stops both and checks that nothing is left of them.
func (a *apart) end(t *testing.T) {
	t.Helper()
	a.worker.kill(syscall.SIGTERM)
	a.router.kill(syscall.SIGTERM)
	if left := processes(t, a.folder); len(left) > 0 {
		t.Errorf("left running: %v", left)
	}
}

// A worker that stands still is evicted and its sessions are told; when it goes on
// it registers again and takes calls.
func TestWorkerStandsStill(t *testing.T) {
	a := separate(t)
	primes := examples("exec", "primes.py")
	if out, _ := a.run(t, 0, "exec", "--session", "s", primes+":counter"); out != "1\n" {
		t.Fatalf("the session's first call: %q", out)
	}
	if err := a.worker.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(time.Minute)
	for {
		out, _ := a.run(t, 0, "worker", "list", "-o", "json")
		if !strings.Contains(out, "READY") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("it was not evicted: %s\n%s", out, a.router.stderr)
		}
		time.Sleep(20 * time.Millisecond) // nothing tells when a worker is evicted
	}
	if _, said := a.run(t, 1, "exec", "--session", "s", primes+":counter"); !strings.Contains(said, "SESSION_EXPIRED") {
		t.Errorf("its session was told %q", said)
	}
	if _, said := a.run(t, 1, "exec", primes+":count", "10"); !strings.Contains(said, "NO_WORKER") {
		t.Errorf("a call without any worker was told %q", said)
	}
	if err := a.worker.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	a.awaitWorker(t)
	if out, _ := a.run(t, 0, "exec", primes+":count", "100"); out != "25\n" {
		t.Errorf("a new call: %q", out)
	}
	if _, said := a.run(t, 1, "exec", "--session", "s", primes+":counter"); !strings.Contains(said, "SESSION_EXPIRED") {
		t.Errorf("the session came back to life, or was told %q", said)
	}
	if out, _ := a.run(t, 0, "exec", "--session", "s2", primes+":counter"); out != "1\n" {
		t.Errorf("a new session: %q", out)
	}
	a.end(t)
}
