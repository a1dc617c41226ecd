package zygote

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/hearth-run/hearth/pyrunner"
	"github.com/hearth-run/hearth/sandbox"
	"github.com/hearth-run/hearth/sandbox/process"
	"github.com/hearth-run/hearth/services/worker/internal/pyenv"
)

// TestKilledBetweenForkAndAdopt: a child that dies, or is given up, before the container
// has adopted it is an error of the start and leaves no process.
func TestKilledBetweenForkAndAdopt(t *testing.T) {
	driver, z := alone(t)
	for name, strike := range map[string]func(*os.File, sandbox.Container){
		"killed": func(pidfd *os.File, _ sandbox.Container) {
			_ = unix.PidfdSendSignal(int(pidfd.Fd()), unix.SIGKILL, nil, 0)
		},
		"destroyed": func(_ *os.File, c sandbox.Container) { _ = c.Destroy() },
	} {
		lost, theirs, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		c, err := driver.Create(t.Context(), sandbox.Spec{ID: name, Argv: []string{"/x"}, Files: []*os.File{theirs, theirs}, Limits: sandbox.Limits{Pids: 8}})
		if err != nil {
			t.Fatal(err)
		}
		read, write, err := pipe()
		if err != nil {
			t.Fatal(err)
		}
		entry, err := c.(*process.Container).Enter(read)
		if err != nil {
			t.Fatal(err)
		}
		_, pidfd, err := z.enter(entry)
		if err != nil {
			t.Fatal(err)
		}
		_ = read.Close()
		_ = theirs.Close()
		strike(pidfd, c)
		_ = write.Close()
		// It may have put its walls up before it was struck.
		var wall *sandbox.WallError
		if err := entry.Adopt(t.Context(), pidfd); err != nil && !errors.As(err, &wall) && !errors.Is(err, sandbox.ErrState) {
			t.Errorf("%s: %v", name, err)
		}
		if err := c.Destroy(); err != nil {
			t.Error(err)
		}
		if _, err := io.ReadAll(lost); err != nil { // ends when the process has
			t.Error(err)
		}
		_ = lost.Close()
	}
}

// TestGivenUpBeforeItBegan: a child that is never told Begin ends by itself, behind its
// walls, in the zygote's process group.
func TestGivenUpBeforeItBegan(t *testing.T) {
	driver, z := alone(t)
	c, err := driver.Create(t.Context(), sandbox.Spec{ID: "given-up", Argv: []string{"/x"}})
	if err != nil {
		t.Fatal(err)
	}
	read, begin, err := pipe()
	if err != nil {
		t.Fatal(err)
	}
	entry, err := c.(*process.Container).Enter(read)
	if err != nil {
		t.Fatal(err)
	}
	pid, pidfd, err := z.enter(entry)
	if err != nil {
		t.Fatal(err)
	}
	_ = read.Close()
	if group, err := unix.Getpgid(pid); err != nil || group != z.process.Pid() {
		t.Errorf("group %d, %v", group, err)
	}
	if err := entry.Adopt(t.Context(), pidfd); err != nil {
		t.Fatal(err)
	}
	_ = begin.Close()
	if exit, err := c.Wait(t.Context()); err != nil || exit != (sandbox.Exit{}) {
		t.Errorf("%+v, %v", exit, err)
	}
	if err := c.Destroy(); err != nil {
		t.Error(err)
	}
}

func alone(t *testing.T) (*process.Driver, *Zygote) {
	t.Helper()
	t.Cleanup(func() { goleak.VerifyNone(t) })
	folder := t.TempDir()
	env, err := pyenv.Prepare(t.Context(), pyenv.Config{Folder: folder, Python: os.Getenv("HEARTH_TEST_PYTHON")}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	runner, err := pyrunner.Install(folder)
	if err != nil {
		t.Fatal(err)
	}
	config := process.Default()
	config.Root = t.TempDir()
	driver, err := process.Open(config)
	if err != nil {
		t.Fatal(err)
	}
	z, err := Start(context.Background(), Config{Driver: driver, Name: "zygote", Interpreter: env.Python, Runner: runner,
		OutputLimit: 1 << 20, ImportTimeout: time.Minute, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(z.Close(), driver.Close()); err != nil {
			t.Error(err)
		}
	})
	return driver, z
}
