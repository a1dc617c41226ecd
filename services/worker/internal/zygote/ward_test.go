package zygote_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/hearth-run/hearth/pyrunner"
	"github.com/hearth-run/hearth/pyrunner/frame"
	"github.com/hearth-run/hearth/sandbox"
	"github.com/hearth-run/hearth/sandbox/process"
	"github.com/hearth-run/hearth/services/worker/internal/box"
	"github.com/hearth-run/hearth/services/worker/internal/pyenv"
	"github.com/hearth-run/hearth/services/worker/internal/zygote"
)

// pythonEnv names an interpreter with cloudpickle for these tests, and with numpy and
// pandas for the benchmarks; without it an environment is made as a worker makes it.
const pythonEnv = "HEARTH_TEST_PYTHON"

// site is an environment above another one: what the other has, and the modules that
// tests write.
type site struct {
	pyenv.Environment
	modules string
	runner  pyrunner.Package
}

var (
	folder      string // of the tests' environments
	environment = sync.OnceValues(makeSite)
)

func makeSite() (site, error) {
	var s site
	base, err := pyenv.Prepare(context.Background(), pyenv.Config{Folder: folder, Python: os.Getenv(pythonEnv)}, slog.New(slog.DiscardHandler))
	if err != nil {
		return s, err
	}
	const ask = "import json, sys, sysconfig; print(json.dumps([sys._base_executable, sysconfig.get_path('purelib')]))"
	out, err := exec.Command(base.Python, "-I", "-c", ask).Output()
	if err != nil {
		return s, err
	}
	var told []string
	if err := json.Unmarshal(out, &told); err != nil {
		return s, err
	}
	top := filepath.Join(folder, "above")
	s.modules = filepath.Join(top, "lib", "python"+base.Version, "site-packages")
	python := filepath.Join(top, "bin", "python")
	err = errors.Join(os.MkdirAll(s.modules, 0o755), os.MkdirAll(filepath.Dir(python), 0o755),
		os.WriteFile(filepath.Join(top, "pyvenv.cfg"), []byte("home = "+filepath.Dir(told[0])+"\n"), 0o644),
		os.WriteFile(filepath.Join(s.modules, "base.pth"), []byte(told[1]+"\n"), 0o644),
		os.Symlink(told[0], python))
	if err != nil {
		return s, err
	}
	if s.runner, err = pyrunner.Install(folder); err != nil {
		return s, err
	}
	s.Environment, err = pyenv.Prepare(context.Background(), pyenv.Config{Python: python}, slog.New(slog.DiscardHandler))
	s.Binds = append(s.Binds, base.Binds...)
	return s, err
}

func mustSite(t testing.TB) site {
	t.Helper()
	s, err := environment()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// write makes a module of the environment, until the test ends.
func (s site) write(t testing.TB, name, source string) {
	t.Helper()
	file := filepath.Join(s.modules, name+".py")
	if err := os.WriteFile(file, []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(file) })
}

// ward is a driver and a tree of zygotes.
type ward struct {
	site
	t      testing.TB
	state  string // the driver's
	driver *process.Driver
	root   *zygote.Zygote
	run    string // folder of sockets
}

func open(t testing.TB, change func(*zygote.Config)) *ward {
	t.Helper()
	if b, ok := t.(*testing.T); ok {
		b.Cleanup(func() { goleak.VerifyNone(b) })
	}
	w := &ward{site: mustSite(t), t: t, state: t.TempDir(), run: t.TempDir()}
	config := process.Default()
	config.Root = w.state
	var err error
	if w.driver, err = process.Open(config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.driver.Close(); err != nil {
			t.Error(err)
		}
	})
	w.root, err = zygote.Start(t.Context(), configOf(w.site, w.driver, change))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.close(w.root) })
	return w
}

func configOf(s site, d *process.Driver, change func(*zygote.Config)) zygote.Config {
	cfg := zygote.Config{
		Driver: d, Name: "zygote", Interpreter: s.Python, Runner: s.runner, OutputLimit: 1 << 20,
		MemoryLimit: 512 << 20, ImportTimeout: 30 * time.Second, Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	}
	if change != nil {
		change(&cfg)
	}
	return cfg
}

func (w *ward) close(z *zygote.Zygote) {
	if err := z.Close(); err != nil {
		w.t.Error(err)
	}
}

func (w *ward) grow(from *zygote.Zygote, modules ...string) *zygote.Zygote {
	w.t.Helper()
	z, err := from.Grow(w.t.Context(), modules)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { w.close(z) })
	return z
}

var boxes atomic.Int64 // names containers

func (w *ward) spec(id string, files []*os.File) sandbox.Spec {
	spec := sandbox.Spec{
		ID: id, Argv: []string{w.Python}, Dir: "/tmp", Env: []string{"PATH=/usr/bin:/bin", "HOME=/tmp", "LANG=C.UTF-8"},
		Binds:   sandbox.SystemBinds(),
		Scratch: []sandbox.Scratch{{Target: "/tmp", Bytes: 8 << 20}, {Target: "/dev/shm", Bytes: 8 << 20}},
		Limits:  sandbox.Limits{Memory: 256 << 20, Pids: 64},
		Files:   files,
	}
	for _, path := range w.Binds {
		if !strings.HasPrefix(path+"/", "/usr/") {
			spec.Binds = append(spec.Binds, sandbox.Bind{Source: path})
		}
	}
	return spec
}

// cell is a container with an executor that is ready.
type cell struct {
	sandbox.Container
	executor *box.Executor
}

// enter forks a container from a zygote.
func (w *ward) enter(z *zygote.Zygote, begin zygote.Begin, change func(*sandbox.Spec)) (*cell, error) {
	id := fmt.Sprintf("c%d", boxes.Add(1))
	sockets, err := box.NewSockets(w.run, id)
	if err != nil {
		return nil, err
	}
	spec := w.spec(id, sockets.Files)
	if change != nil {
		change(&spec)
	}
	c, err := w.driver.Create(context.Background(), spec)
	if err != nil {
		return nil, errors.Join(err, sockets.Close())
	}
	e := box.NewExecutor(sockets)
	err = z.Enter(context.Background(), c, begin)
	sockets.Started()
	if err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		err = e.AwaitReady(ctx)
	}
	if err != nil {
		e.Close()
		return nil, errors.Join(err, c.Destroy())
	}
	return &cell{c, e}, nil
}

func (w *ward) mustEnter(z *zygote.Zygote, begin zygote.Begin) *cell {
	w.t.Helper()
	c, err := w.enter(z, begin, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if err := c.end(); err != nil {
			w.t.Error(err)
		}
	})
	return c
}

func (c *cell) end() error {
	c.executor.Close()
	return c.Destroy()
}

// silent takes what an executor says of a call that nobody listens to.
type silent struct{}

func (silent) Log(string)                          {}
func (silent) Executed()                           {}
func (silent) Packages([]string) ([]string, error) { return nil, nil }

// ask begins a call of "def call(*args)" in a source.
func (c *cell) ask(source string, args ...any) (answer func() (any, error), err error) {
	if args == nil {
		args = []any{}
	}
	request, err := json.Marshal(map[string]any{"source": source, "entry": "call", "args": args})
	if err != nil {
		return nil, err
	}
	conn, err := c.executor.Dial(context.Background(), silent{})
	if err != nil {
		return nil, err
	}
	if err := frame.NewWriter(conn).Write(request); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return func() (any, error) {
		defer conn.Close()
		raw, err := frame.NewReader(conn, 0).Read()
		if err != nil {
			return nil, err
		}
		var told struct {
			OK        bool
			Value     any
			Traceback string
		}
		if err := json.Unmarshal(raw, &told); err != nil {
			return nil, err
		}
		if !told.OK {
			return nil, errors.New(told.Traceback)
		}
		return told.Value, nil
	}, nil
}

// run is ask and its answer.
func (c *cell) run(t testing.TB, source string, args ...any) any {
	t.Helper()
	answer, err := c.ask(source, args...)
	if err != nil {
		t.Fatal(err)
	}
	value, err := answer()
	if err != nil {
		t.Fatal(err)
	}
	return value
}
