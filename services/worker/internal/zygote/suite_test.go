package zygote_test

import (
	"context"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/hearth-run/hearth/sandbox"
	"github.com/hearth-run/hearth/sandbox/process"
	"github.com/hearth-run/hearth/sandbox/sandboxtest"
	"github.com/hearth-run/hearth/services/worker/internal/box"
	"github.com/hearth-run/hearth/services/worker/internal/zygote"
)

//go:embed testdata/program.py
var program string

// folderEnv names the tests' folder to the process that the suite kills: what that one
// makes lies within, and goes with it.
const folderEnv = "HEARTH_ZYGOTE_FOLDER"

func TestMain(m *testing.M) {
	if os.Geteuid() != 0 {
		fmt.Println("zygotes need root's rights: the sandbox's TestEntryGivenUp shows that they are refused without")
		return
	}
	var err error
	if folder, err = os.MkdirTemp(os.Getenv(folderEnv), "hearth-zygote-"); err != nil {
		panic(err)
	}
	_ = os.Setenv(folderEnv, folder)
	code := sandboxtest.Main(m, factory())
	_ = os.RemoveAll(folder)
	os.Exit(code)
}

// TestSuite is the sandbox's own suite, break-outs included, in containers that were
// forked from a zygote: their program is what a call of the executor makes of itself.
func TestSuite(t *testing.T) {
	defer goleak.VerifyNone(t)
	sandboxtest.Run(t, factory())
}

func factory() sandboxtest.Factory {
	return sandboxtest.Factory{
		Open: openForked,
		Sweep: func(root string) error {
			_, err := process.Sweep(root, 10*time.Second)
			return err
		},
		Leftovers: process.Leftovers, Lives: 30,
		Memory: true, Pids: true, CPU: true, OwnUser: true,
	}
}

// forked is a driver whose containers come from a zygote.
type forked struct {
	*process.Driver
	zygote *zygote.Zygote
	run    string
}

func openForked(root string) (sandbox.Driver, error) {
	s, err := environment()
	if err != nil {
		return nil, err
	}
	config := process.Default()
	config.Root = root
	f := &forked{run: filepath.Join(root, "run")}
	if f.Driver, err = process.Open(config); err != nil {
		return nil, err
	}
	if err = os.MkdirAll(f.run, 0o700); err == nil {
		f.zygote, err = zygote.Start(context.Background(), configOf(s, f.Driver, nil))
	}
	if err != nil {
		return nil, errors.Join(err, f.Driver.Close())
	}
	return f, nil
}

func (f *forked) Close() error { return errors.Join(f.zygote.Close(), f.Driver.Close()) }

// inmate is a container that was entered, as the suite sees one.
type inmate struct {
	sandbox.Container
	driver         *forked
	spec           sandbox.Spec
	sockets        *box.Sockets
	theirs         []*os.File // closed once it is entered
	status, report *os.File
	end            func() (any, error) // of the call

	closing sync.Once
	telling sync.Once // reads the next two
	word    [4]byte
	untold  error
}

func (f *forked) Create(ctx context.Context, spec sandbox.Spec) (sandbox.Container, error) {
	i := &inmate{driver: f, spec: spec}
	var err error
	if i.sockets, err = box.NewSockets(f.run, spec.ID); err != nil {
		// What the suite does with ids that are no names is for the driver to refuse.
		return f.Driver.Create(ctx, spec)
	}
	statusR, statusW, err1 := os.Pipe()
	reportR, reportW, err2 := os.Pipe()
	null, err3 := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	i.status, i.report, i.theirs = statusR, reportR, []*os.File{statusW, reportW, null}
	files := append(i.sockets.Files, statusW, reportW)
	for _, stdio := range []*os.File{spec.Stdin, spec.Stdout, spec.Stderr} {
		if stdio == nil {
			stdio = null
		}
		files = append(files, stdio)
	}
	inner := spec
	inner.Files = append(files, spec.Files...)
	inner.Stdin, inner.Stdout, inner.Stderr = nil, nil, nil
	if i.Container, err = f.Driver.Create(ctx, inner); err != nil {
		i.close()
		return nil, err
	}
	return i, nil
}

func (i *inmate) close() {
	for _, f := range append(i.theirs, i.status, i.report) {
		_ = f.Close()
	}
	_ = i.sockets.Close()
	if i.end != nil {
		_, _ = i.end()
	}
}

func (i *inmate) Start(ctx context.Context) error {
	if err := i.driver.zygote.Enter(ctx, i.Container, zygote.Begin{}); err != nil {
		return err
	}
	i.sockets.Started()
	executor := box.NewExecutor(i.sockets)
	if err := executor.AwaitReady(ctx); err != nil {
		return err
	}
	c := &cell{i.Container, executor}
	end, err := c.ask(program, i.spec.Argv, i.spec.Env, 3+len(i.spec.Files))
	if err != nil {
		return err
	}
	i.end = end
	for _, f := range i.theirs {
		_ = f.Close()
	}
	var errno [4]byte
	if _, err := io.ReadFull(i.report, errno[:]); err == nil {
		return &sandbox.StartError{Path: i.spec.Argv[0], Cause: syscall.Errno(binary.LittleEndian.Uint32(errno[:]))}
	}
	return nil
}

func (i *inmate) Wait(ctx context.Context) (sandbox.Exit, error) {
	exit, err := i.Container.Wait(ctx)
	if err != nil {
		return exit, err
	}
	i.telling.Do(func() { _, i.untold = io.ReadFull(i.status, i.word[:]) })
	if i.untold != nil {
		return exit, nil // pid 1 was killed
	}
	own := syscall.WaitStatus(binary.LittleEndian.Uint32(i.word[:]))
	exit.Code, exit.Signal = own.ExitStatus(), 0
	if own.Signaled() {
		exit.Code, exit.Signal = -1, own.Signal()
	}
	exit.Killed = exit.Killed && exit.Signal != 0
	return exit, nil
}

func (i *inmate) Destroy() error {
	err := i.Container.Destroy()
	if err == nil {
		i.closing.Do(i.close)
	}
	return err
}
