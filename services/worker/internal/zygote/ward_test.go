package zygote_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/hearth-run/hearth/pyrunner/frame"
	"github.com/hearth-run/hearth/sandbox"
	"github.com/hearth-run/hearth/sandbox/process"
	"github.com/hearth-run/hearth/services/worker/internal/box"
	"github.com/hearth-run/hearth/services/worker/internal/zygote"
)

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
