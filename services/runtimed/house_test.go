package runtimed_test

import (
	"context"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connectinprocess"

	executorv1 "github.com/hearth-run/hearth/gen/executor/v1"
	"github.com/hearth-run/hearth/gen/executor/v1/executorv1connect"
	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/gen/hearth/v1/hearthv1connect"
	"github.com/hearth-run/hearth/internal/kit/dial"
	"github.com/hearth-run/hearth/internal/kit/hop"
	"github.com/hearth-run/hearth/internal/kit/serve"
	"github.com/hearth-run/hearth/services/runtimed"
	"github.com/hearth-run/hearth/services/runtimed/internal/ledger"
)

// house is a node between a control plane and a Runtime Server that are fakes.
type house struct {
	t       testing.TB
	control *controlFake
	runtime *runtimeFake
	cfg     runtimed.Config
	deps    runtimed.Deps
	gateway executorv1connect.FunctionRuntimeClient
	// serveAs, if set, is given the node's dispatcher.
	serveAs func(*connect.Server)
	service *runtimed.Service
	stop    context.CancelFunc
	done    chan error
	// began is the zero of the node's clock; paused is what a stop of the process
	// added to it.
	began  time.Time
	paused atomic.Int64
}

// open builds a house whose hops are in-process: it works inside synctest.
func open(t testing.TB) *house {
	h := &house{t: t, control: newControlFake(), runtime: newRuntimeFake(), began: time.Now(), cfg: config(t)}
	h.deps = runtimed.Deps{
		Log:       slog.New(slog.DiscardHandler),
		Nodes:     hearthv1connect.NewNodeServiceClient(inprocess(t, h.control)),
		Functions: executorv1connect.NewFunctionRuntimeClient(inprocess(t, h.runtime)),
		Runtime:   executorv1connect.NewRuntimeClient(inprocess(t, h.runtime)),
		Clock:     func() time.Duration { return time.Since(h.began) + time.Duration(h.paused.Load()) },
	}
	h.control.clock = h.deps.Clock
	if testing.Verbose() {
		h.deps.Log = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	return h
}

func config(t testing.TB) runtimed.Config {
	cfg := runtimed.Default()
	cfg.Name, cfg.Advertise = "node-a", "inprocess:node-a"
	cfg.Workspace, cfg.Data = filepath.Join(t.TempDir(), "workspace"), filepath.Join(t.TempDir(), "data")
	return cfg
}

// rpc puts a fake behind a dispatcher with the interceptors of every service.
func rpc(t testing.TB, service any) *connect.Server {
	server, err := serve.NewConnect(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if s, ok := service.(hearthv1connect.NodeServiceHandler); ok {
		hearthv1connect.RegisterNodeServiceHandler(server, s)
	}
	if s, ok := service.(hearthv1connect.RouteServiceHandler); ok {
		hearthv1connect.RegisterRouteServiceHandler(server, s)
	}
	if s, ok := service.(executorv1connect.RuntimeHandler); ok {
		executorv1connect.RegisterRuntimeHandler(server, s)
	}
	if s, ok := service.(executorv1connect.FunctionRuntimeHandler); ok {
		executorv1connect.RegisterFunctionRuntimeHandler(server, s)
	}
	return server
}

func inprocess(t testing.TB, service any) *connect.Client {
	return connect.NewClient(connectinprocess.New(rpc(t, service)))
}

// start runs a node until the test ends or stop is called.
func (h *house) start() {
	h.t.Helper()
	service, err := runtimed.New(h.cfg, h.deps)
	if err != nil {
		h.t.Fatal(err)
	}
	server, err := serve.NewConnect(slog.New(slog.DiscardHandler))
	if err != nil {
		h.t.Fatal(err)
	}
	service.Register(server)
	if h.serveAs != nil {
		h.serveAs(server)
	}
	h.gateway = executorv1connect.NewFunctionRuntimeClient(connect.NewClient(connectinprocess.New(server)))
	ctx, stop := context.WithCancel(context.Background())
	h.service, h.stop, h.done = service, stop, make(chan error, 1)
	go func() { h.done <- service.Run(ctx) }()
	h.await("registration", func() bool { return h.control.node != nil && !h.control.forgotten })
}

// try runs a node that is expected to end by itself.
func (h *house) try() error {
	service, err := runtimed.New(h.cfg, h.deps)
	if err != nil {
		return err
	}
	return service.Run(context.Background())
}

// close stops the node and checks that nothing of it is left.
func (h *house) close() {
	h.t.Helper()
	h.stop()
	if err := <-h.done; err != nil {
		h.t.Error(err)
	}
	h.nothingLeft()
}

// nothingLeft checks what a node leaves behind when it has drained.
func (h *house) nothingLeft() {
	h.t.Helper()
	if left := h.folders(); len(left) > 0 {
		h.t.Errorf("left in the workspace: %v", left)
	}
	if left := h.records(); len(left) > 0 {
		h.t.Errorf("left in the ledger: %v", left)
	}
	h.runtime.set(func(f *runtimeFake) {
		if len(f.registrations)+len(f.tasks) > 0 {
			h.t.Errorf("left on the Runtime Server: %v %v", f.registrations, f.tasks)
		}
	})
}

func (h *house) folders() []string { return list(h.t, h.cfg.Workspace) }

// records are the Runs of the ledger, which nobody holds any more.
func (h *house) records() []string {
	l, _, err := ledger.Open(h.cfg.Data)
	if err != nil {
		h.t.Fatal(err)
	}
	defer l.Close()
	return l.Runs()
}

func list(t testing.TB, dir string) (names []string) {
	entries, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func (h *house) await(what string, cond func() bool) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if err := h.control.await(ctx, what, cond); err != nil {
		h.t.Fatal(err)
	}
}

// hear waits for a report.
func (h *house) hear(report string) {
	h.t.Helper()
	h.await(report, func() bool {
		return slices.ContainsFunc(h.control.reports, func(r string) bool { return strings.HasPrefix(r, report) })
	})
}

func function() *hearthv1.RunSpec {
	return &hearthv1.RunSpec{
		Runtime: "python",
		Source: &hearthv1.Source{Kind: &hearthv1.Source_Inline{Inline: &hearthv1.InlineSource{Files: []*hearthv1.InlineFile{
			{Path: "app.py", Data: &hearthv1.InlineFile_Text{Text: "def hello(event): return event\n"}},
		}}}},
		Mode: &hearthv1.RunSpec_Function{Function: &hearthv1.FunctionMode{Handler: "app.hello"}},
		Env:  map[string]string{"A": "1"},
	}
}

// call is one invocation by a gateway that knows the route.
func (h *house) call(ctx context.Context, run string, fence hop.Fence, input string) (*executorv1.InvokeFunctionResponse, error) {
	ctx, info := connect.NewClientContext(ctx)
	fence.Write(info.RequestHeader())
	return h.gateway.InvokeFunction(ctx, invocation(run, input))
}

func invocation(run, input string) *executorv1.InvokeFunctionRequest {
	return &executorv1.InvokeFunctionRequest{
		Registration: &executorv1.FunctionRegistration{RunUid: run}, InvocationId: "inv", Input: []byte(input), ContentType: "text/plain",
	}
}

// fence is the present one.
func (h *house) fence(attempt int32) hop.Fence {
	h.control.mu.Lock()
	defer h.control.mu.Unlock()
	return hop.Fence{Attempt: attempt, NodeUID: h.control.node.GetUid()}
}

// overWire rebuilds the hops of a house over a real listener.
func (h *house) overWire(listen string) {
	dialer := dial.New(nil)
	h.t.Cleanup(dialer.Close)
	client := func(service any, name string) *connect.Client {
		where := listen
		if path, ok := strings.CutPrefix(listen, "unix:"); ok {
			where = "unix:" + filepath.Join(path, name)
		}
		c, err := dialer.Client(h.listen(where, service))
		if err != nil {
			h.t.Fatal(err)
		}
		return c
	}
	h.deps.Nodes = hearthv1connect.NewNodeServiceClient(client(h.control, "control"))
	runtime := client(h.runtime, "runtime")
	h.deps.Functions = executorv1connect.NewFunctionRuntimeClient(runtime)
	h.deps.Runtime = executorv1connect.NewRuntimeClient(runtime)
}

// listen serves a fake until the test ends, and returns its address.
func (h *house) listen(where string, service any) string {
	server, err := serve.New(serve.Config{Listen: where}, slog.New(slog.DiscardHandler), rpc(h.t, service))
	if err != nil {
		h.t.Fatal(err)
	}
	if err := server.Listen(); err != nil {
		h.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Run(ctx) }()
	h.t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			h.t.Error(err)
		}
	})
	return server.Address()
}

// exists says whether a file is there.
func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil || !os.IsNotExist(err) && err != fs.ErrNotExist
}

// awaitCall waits until the Runtime Server was asked something.
func (h *house) awaitCall(call string) {
	h.t.Helper()
	h.awaitRuntime(call, func(f *runtimeFake) bool { return slices.Contains(f.calls, call) })
}

// awaitForgotten waits until the Runtime Server knows nothing of an execution.
func (h *house) awaitForgotten(id string) {
	h.t.Helper()
	h.awaitRuntime("the end of "+id, func(f *runtimeFake) bool { return f.tasks[id] == nil })
}

func (h *house) awaitRuntime(what string, cond func(f *runtimeFake) bool) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		h.runtime.mu.Lock()
		ok, news := cond(h.runtime), h.runtime.news
		h.runtime.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-news:
		case <-ctx.Done():
			h.t.Fatalf("waiting for %s: %q", what, h.runtime.asked())
		}
	}
}

func mkfifo(path string) error { return syscall.Mkfifo(path, 0o600) }
