//go:build linux && amd64

package process_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/hearth-run/hearth/sandbox"
	"github.com/hearth-run/hearth/sandbox/process"
	"github.com/hearth-run/hearth/sandbox/sandboxtest"
)

// TestEntry: a child of a Python template applies the same plan by itself, stands
// behind the same walls, and is killed and counted like any other container.
func TestEntry(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("entries need root's rights; Enter refuses without (TestEntryGivenUp)")
		return
	}
	t.Cleanup(func() { goleak.VerifyNone(t) })
	d := openDriver(t)
	template := startTemplate(t)
	entryTests(t, d, template)
}

func entryTests(t *testing.T, d *process.Driver, template *net.UnixConn) {
	for name, args := range map[string][]string{
		"identity": {"own-user"}, "calls": nil, "network": {"1", "nobody"}, "descriptors": {"4", "512"},
	} {
		t.Run(name, func(t *testing.T) {
			c, out := enter(t, d, template, sandboxtest.Script(t, name), args)
			exit, err := c.Wait(t.Context())
			if got := drain(t, out); got != "HELD" || err != nil {
				t.Errorf("%s, %v", got, err)
			}
			// The script leaves by os._exit and tells no status.
			if exit.Signal != syscall.SIGKILL || exit.Killed {
				t.Errorf("%+v", exit)
			}
		})
	}
	t.Run("kill", func(t *testing.T) {
		c, out := enter(t, d, template, "import os, time\nos.fork()\nos.write(1, b'.')\nwhile True: time.sleep(1000)", nil)
		if _, err := io.ReadFull(out, make([]byte, 2)); err != nil {
			t.Fatal(err)
		}
		if stats, err := c.Stats(); err != nil || stats.Pids != 2 || stats.MemoryBytes == 0 {
			t.Errorf("%+v, %v", stats, err)
		}
		if err := c.Destroy(); err != nil {
			t.Error(err)
		}
		if rest := drain(t, out); rest != "" {
			t.Errorf("%q", rest)
		}
		if exit, err := c.Wait(t.Context()); err != nil || !exit.Killed {
			t.Errorf("%+v, %v", exit, err)
		}
	})
	t.Run("failed step", func(t *testing.T) {
		bound := t.TempDir() + "/bound"
		if err := os.Mkdir(bound, 0o755); err != nil {
			t.Fatal(err)
		}
		c, err := d.Create(t.Context(), sandbox.Spec{ID: "failed", Argv: []string{"/template"}, Binds: []sandbox.Bind{{Source: bound}}})
		if err != nil {
			t.Fatal(err)
		}
		err = adopt(t, c, template, "pass", nil, func() { _ = os.Remove(bound) })
		var wall *sandbox.WallError
		if !errors.As(err, &wall) || wall.Wall != "root-file-system" || !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%v", err)
		}
		if err := c.Destroy(); err != nil {
			t.Error(err)
		}
	})
}

// TestEntryGivenUp: an entry that leads nowhere leaves nothing.
func TestEntryGivenUp(t *testing.T) {
	d := openDriver(t)
	c, err := d.Create(t.Context(), sandbox.Spec{ID: "a", Argv: []string{"/x"}})
	if err != nil {
		t.Fatal(err)
	}
	e, err := c.(*process.Container).Enter()
	var wall *sandbox.WallError
	if os.Geteuid() != 0 {
		if !errors.As(err, &wall) {
			t.Errorf("%v", err)
		}
		if _, err := d.StartTemplate(process.TemplateSpec{ID: "b"}); !errors.As(err, &wall) {
			t.Errorf("%v", err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(t.Context()); !errors.Is(err, sandbox.ErrState) {
		t.Errorf("start an entered container: %v", err)
	}
	e.Close()
	e.Close()
}

func openDriver(t testing.TB) *process.Driver {
	t.Helper()
	config := process.Default()
	config.Root = t.TempDir()
	d, err := process.Open(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// startTemplate runs testdata/template.py at the other end of the connection.
func startTemplate(t testing.TB) *net.UnixConn {
	t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	theirs := os.NewFile(uintptr(pair[1]), "template")
	mine := os.NewFile(uintptr(pair[0]), "driver")
	conn, err := net.FileConn(mine)
	_ = mine.Close()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("python3", "-I", "-S", "testdata/template.py")
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = theirs.Close()
	t.Cleanup(func() { _ = conn.Close(); _ = cmd.Wait() })
	return conn.(*net.UnixConn)
}

var entries atomic.Int64 // names containers

// enter has the template fork into a new container that runs code.
func enter(t testing.TB, d *process.Driver, template *net.UnixConn, code string, args []string) (sandbox.Container, *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	_ = r.SetReadDeadline(time.Now().Add(30 * time.Second))
	c, err := d.Create(t.Context(), sandbox.Spec{
		ID: fmt.Sprintf("entry-%d", entries.Add(1)), Argv: []string{"/template"},
		Binds: sandbox.SystemBinds(), Scratch: []sandbox.Scratch{{Target: "/tmp", Bytes: 1 << 20}},
		Limits: sandbox.Limits{Memory: 128 << 20, Pids: 32, NoFile: 512}, Stdout: w, Stderr: w, Files: []*os.File{w},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := adopt(t, c, template, code, args, func() {}); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	return c, r
}

// adopt enters the container by way of the template; between is done when the plan is
// made and not yet applied.
func adopt(t testing.TB, c sandbox.Container, template *net.UnixConn, code string, args []string, between func()) error {
	t.Helper()
	e, err := c.(*process.Container).Enter()
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	message, err := json.Marshal(struct {
		*process.Entry
		Source string   `json:"source"`
		Argv   []string `json:"argv"`
	}{e, code, args})
	if err != nil {
		t.Fatal(err)
	}
	between()
	return e.Adopt(context.Background(), exchange(t, template, message, e.Files))
}

// exchange sends an entry and its files, and gets the child's pidfd.
func exchange(t testing.TB, template *net.UnixConn, message []byte, files []*os.File) *os.File {
	t.Helper()
	var numbers []int
	for _, f := range files {
		numbers = append(numbers, int(f.Fd()))
	}
	if _, _, err := template.WriteMsgUnix(message, unix.UnixRights(numbers...), nil); err != nil {
		t.Fatal(err)
	}
	rights := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := template.ReadMsgUnix(make([]byte, 1), rights)
	if err != nil {
		t.Fatal(err)
	}
	messages, err := unix.ParseSocketControlMessage(rights[:n])
	if err != nil || len(messages) != 1 {
		t.Fatal(messages, err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		t.Fatal(err)
	}
	return os.NewFile(uintptr(fds[0]), "pidfd")
}

func drain(t testing.TB, r io.Reader) string {
	t.Helper()
	text, err := io.ReadAll(r)
	if err != nil {
		t.Error(err)
	}
	return strings.TrimSpace(string(text))
}
