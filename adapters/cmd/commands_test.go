// Package cmd_test runs the commands as processes of their own.
package cmd_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	executorv1 "github.com/hearth-run/hearth/gen/executor/v1"
	"github.com/hearth-run/hearth/gen/executor/v1/executorv1connect"
	"github.com/hearth-run/hearth/internal/kit/dial"
)

// life is one life of a Runtime Server's process.
type life struct {
	t         *testing.T
	cmd       *exec.Cmd
	workspace string
	socket    string
	functions executorv1connect.FunctionRuntimeClient
}

// program is the command, built once for all tests.
var program string

func TestMain(m *testing.M) {
	folder, err := os.MkdirTemp("", "hearth-commands-")
	if err == nil {
		program = filepath.Join(folder, "hearth-runtime-bash")
		build := exec.Command("go", "build", "-ldflags=-s -w", "-o", program, "./hearth-runtime-bash")
		build.Stderr = os.Stderr
		err = build.Run()
	}
	code := 1
	if err == nil {
		code = m.Run()
	}
	if err = errors.Join(err, os.RemoveAll(folder)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func begin(t *testing.T, workspace string) *life {
	t.Helper()
	l := &life{t: t, workspace: workspace, socket: filepath.Join(workspace, "socket")}
	l.cmd = exec.Command(program, "--listen", "unix:"+l.socket, "--workspace", workspace)
	l.cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	log, err := l.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := l.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 1) // the first line of the log says that it listens
	for buf[0] != '\n' {
		if _, err := log.Read(buf); err != nil {
			t.Fatal(err)
		}
	}
	dialer := dial.New(nil)
	t.Cleanup(dialer.Close)
	client, err := dialer.Client("unix:" + l.socket)
	if err != nil {
		t.Fatal(err)
	}
	l.functions = executorv1connect.NewFunctionRuntimeClient(client)
	return l
}

// busy registers a function and starts a call that leaves daemons and goes on; it
// returns the pids of everything.
func (l *life) busy() (pids []int, done chan error) {
	l.t.Helper()
	dir := filepath.Join(l.workspace, "run")
	_ = os.Remove(filepath.Join(dir, "pids"))
	script := `handle() { trap '' TERM; echo $$ >>pids; echo $BASHPID >>pids; setsid sleep 1000 & echo $! >>pids; mkfifo ready; echo >ready; sleep 1000; }`
	if err := os.MkdirAll(dir, 0o755); err != nil {
		l.t.Fatal(err)
	}
	_ = os.Remove(filepath.Join(dir, "ready"))
	if err := os.WriteFile(filepath.Join(dir, "app.sh"), []byte(script), 0o644); err != nil {
		l.t.Fatal(err)
	}
	res, err := l.functions.RegisterFunction(context.Background(), &executorv1.RegisterFunctionRequest{
		RunUid: "run", RegistrationAttempt: 1, WorkingDir: dir, Handler: "app.handle", RegistrationDigest: "sha256:" + strings.Repeat("0", 64),
	})
	if err != nil {
		l.t.Fatal(err)
	}
	done = make(chan error, 1)
	go func() {
		_, err := l.functions.InvokeFunction(context.Background(), &executorv1.InvokeFunctionRequest{Registration: res.GetRegistration()})
		done <- err
	}()
	for {
		if _, err := os.ReadFile(filepath.Join(dir, "ready")); err == nil {
			break
		}
	}
	data, err := os.ReadFile(filepath.Join(dir, "pids"))
	if err != nil {
		l.t.Fatal(err)
	}
	for _, field := range strings.Fields(string(data)) {
		pid, err := strconv.Atoi(field)
		if err != nil {
			l.t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	if len(pids) != 3 {
		l.t.Fatalf("pids %v", pids)
	}
	return pids, done
}

// ended waits for processes that are no children of ours.
func ended(t *testing.T, pids []int) {
	t.Helper()
	for _, pid := range pids {
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue
		}
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 20_000)
		unix.Close(fd)
		if n == 0 || err != nil {
			t.Errorf("process %d lives on (%v)", pid, err)
		}
	}
}

// TERM drains, ends everything, removes the socket, and exits with 0.
func TestTerm(t *testing.T) {
	l := begin(t, t.TempDir())
	pids, done := l.busy()
	if err := l.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := l.cmd.Wait(); err != nil {
		t.Errorf("exit: %v", err)
	}
	if err := <-done; err == nil {
		t.Error("a call that never ends was answered")
	}
	for _, pid := range pids {
		if _, err := os.Stat(fmt.Sprintf("/proc/%d", pid)); err == nil {
			t.Errorf("process %d is left", pid)
		}
	}
	if _, err := os.Lstat(l.socket); err == nil {
		t.Error("the socket is left")
	}
}

// After kill -9 nothing is left either, and the next life takes the socket over.
func TestKill(t *testing.T) {
	workspace := t.TempDir()
	l := begin(t, workspace)
	pids, done := l.busy()
	if err := l.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = l.cmd.Wait()
	if err := <-done; err == nil {
		t.Error("a call of a server that was killed was answered")
	}
	ended(t, pids)
	next := begin(t, workspace)
	if _, done := next.busy(); done == nil {
		t.Error("the next life serves nothing")
	}
	if err := next.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := next.cmd.Wait(); err != nil {
		t.Errorf("exit: %v", err)
	}
}

// Wrong settings are refused at once.
func TestRefusals(t *testing.T) {
	workspace := t.TempDir()
	for name, tc := range map[string]struct{ arg, env string }{
		"unknown flag":     {"--nonsense", ""},
		"unknown variable": {"", "HEARTH_NONSENSE=1"},
		"recycle calls":    {"--recycle-calls=-1", ""},
		"no bash":          {"--bash=/none", ""},
		"address":          {"--listen=nowhere", ""},
	} {
		cmd := exec.Command(program, "--workspace", workspace)
		if tc.arg != "" {
			cmd.Args = append(cmd.Args, tc.arg)
		}
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HEARTH_LISTEN=127.0.0.1:0"}
		if tc.env != "" {
			cmd.Env = append(cmd.Env, tc.env)
		}
		if out, err := cmd.CombinedOutput(); err == nil || len(out) == 0 {
			t.Errorf("%s: %v %s", name, err, out)
		}
	}
}
