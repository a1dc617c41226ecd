package zygote_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
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

// pythonEnv names an interpreter with cloudpickle for these tests; without it an
// environment is made as a worker makes it.
const pythonEnv = "HEARTH_TEST_PYTHON"

var folder string // of the tests' environment

var environment = sync.OnceValues(func() (pyenv.Environment, error) {
	return pyenv.Prepare(context.Background(), pyenv.Config{Folder: folder, Python: os.Getenv(pythonEnv)}, slog.New(slog.DiscardHandler))
})

// ward is a driver and a tree of zygotes.
type ward struct {
	t      testing.TB
	driver *process.Driver
	root   *zygote.Zygote
	env    pyenv.Environment
	runner pyrunner.Package
	run    string // folder of sockets
}

func open(t testing.TB, change func(*zygote.Config)) *ward {
	t.Helper()
	if b, ok := t.(*testing.T); ok {
		b.Cleanup(func() { goleak.VerifyNone(b) })
	}
	env, err := environment()
	if err != nil {
		t.Fatal(err)
	}
	w := &ward{t: t, env: env, run: t.TempDir()}
	if w.runner, err = pyrunner.Install(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	config := process.Default()
	config.Root = t.TempDir()
	if w.driver, err = process.Open(config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.driver.Close(); err != nil {
			t.Error(err)
		}
	})
	w.root, err = zygote.Start(t.Context(), w.config(change))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.close(w.root) })
	return w
}

func (w *ward) config(change func(*zygote.Config)) zygote.Config {
	cfg := zygote.Config{
		Driver: w.driver, Name: "zygote", Interpreter: w.env.Python, Runner: w.runner, OutputLimit: 1 << 20,
		MemoryLimit: 512 << 20, ImportTimeout: 30 * time.Second, Log: slog.New(slog.NewTextHandler(testWriter{w.t}, nil)),
	}
	if change != nil {
		change(&cfg)
	}
	return cfg
}

// testWriter shows what zygotes print in the test's own log, while it runs.
type testWriter struct{ t testing.TB }

func (w testWriter) Write(p []byte) (int, error) {
	_, err := os.Stderr.Write(p)
	return len(p), err
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

func (w *ward) spec(sockets *box.Sockets, id string) sandbox.Spec {
	spec := sandbox.Spec{
		ID: id, Argv: []string{w.env.Python}, Dir: "/tmp", Env: []string{"PATH=/usr/bin:/bin", "HOME=/tmp", "LANG=C.UTF-8"},
		Binds:   append(sandbox.SystemBinds(), sandbox.Bind{Source: w.runner.Dir}),
		Scratch: []sandbox.Scratch{{Target: "/tmp", Bytes: 8 << 20}, {Target: "/dev/shm", Bytes: 8 << 20}},
		Limits:  sandbox.Limits{Memory: 256 << 20, Pids: 64},
		Files:   sockets.Files,
	}
	for _, path := range w.env.Binds {
		if rel, err := filepath.Rel("/usr", path); err != nil || rel == ".." || len(rel) > 2 && rel[:3] == "../" {
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
func (w *ward) enter(z *zygote.Zygote, begin zygote.Begin) (*cell, error) {
	id := fmt.Sprintf("c%d", boxes.Add(1))
	sockets, err := box.NewSockets(w.run, id)
	if err != nil {
		return nil, err
	}
	c, err := w.driver.Create(context.Background(), w.spec(sockets, id))
	if err != nil {
		return nil, err
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
		_ = c.Destroy()
		return nil, err
	}
	return &cell{c, e}, nil
}

func (w *ward) mustEnter(z *zygote.Zygote) *cell {
	w.t.Helper()
	c, err := w.enter(z, zygote.Begin{})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(c.end)
	return c
}

func (c *cell) end() {
	c.executor.Close()
	_ = c.Destroy()
}

// silent takes what an executor says of a call that nobody listens to.
type silent struct{}

func (silent) Log(string)                          {}
func (silent) Executed()                           {}
func (silent) Packages([]string) ([]string, error) { return nil, nil }

// run has the executor run "def call(*args)" of a source, and returns its value.
func (c *cell) run(t testing.TB, source string, args ...any) (value any) {
	t.Helper()
	if args == nil {
		args = []any{}
	}
	request, err := json.Marshal(map[string]any{"source": source, "entry": "call", "args": args})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := c.executor.Dial(t.Context(), silent{})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := frame.NewWriter(conn).Write(request); err != nil {
		t.Fatal(err)
	}
	raw, err := frame.NewReader(conn, 0).Read()
	if err != nil {
		t.Fatalf("read the answer: %v", err)
	}
	var answer struct {
		OK                 bool
		Value              any
		Message, Traceback string
	}
	if err := json.Unmarshal(raw, &answer); err != nil || !answer.OK {
		t.Fatalf("%s %s, %v", answer.Message, answer.Traceback, err)
	}
	return answer.Value
}

func TestMain(m *testing.M) {
	var err error
	if folder, err = os.MkdirTemp("", "hearth-zygote-"); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(folder)
	os.Exit(code)
}

func TestContainerFromZygote(t *testing.T) {
	w := open(t, nil)
	z := w.grow(w.root, "decimal", "xml.dom.minidom")
	facts := z.Facts()
	t.Logf("%+v", facts)
	c := w.mustEnter(z)
	t.Log(c.run(t, "import sys, os\ndef call(): return [os.getpid(), sorted(os.environ), 'decimal' in sys.modules, os.getcwd(), os.getuid(), os.listdir('/proc/self/fd')]"))
	_, _ = io.Discard.Write(nil)
}
