package runtimeserver_test

import (
	"context"
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

	"connectrpc.com/connect/v2"
	"go.uber.org/goleak"

	"github.com/hearth-run/hearth/adapters/runtimeserver"
	executorv1 "github.com/hearth-run/hearth/gen/executor/v1"
	"github.com/hearth-run/hearth/gen/executor/v1/executorv1connect"
	"github.com/hearth-run/hearth/internal/kit/dial"
	"github.com/hearth-run/hearth/internal/kit/edge"
	"github.com/hearth-run/hearth/internal/kit/serve"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a language whose loads and calls do what the test says.
type fake struct {
	load   func(ctx context.Context, f runtimeserver.Function) error
	invoke func(ctx context.Context, call runtimeserver.Call) (runtimeserver.Result, error)

	loads, live, running atomic.Int32
	mu                   sync.Mutex
	last                 runtimeserver.Function
}

func (*fake) Name() string { return "fake" }

func (*fake) Resolve(dir, handler string) error {
	if handler == "bad" {
		return edge.Publicf(runtimeserver.ErrHandlerInvalid, "bad is no handler")
	}
	return nil
}

func (l *fake) Load(ctx context.Context, f runtimeserver.Function) (runtimeserver.Instance, error) {
	l.loads.Add(1)
	l.mu.Lock()
	l.last = f
	l.mu.Unlock()
	if l.load != nil {
		if err := l.load(ctx, f); err != nil {
			return nil, err
		}
	}
	// A process that only the group's end can end.
	if _, err := f.Processes.Start(exec.Command("sleep", "1000")); err != nil {
		return nil, err
	}
	l.live.Add(1)
	return &instance{l: l}, nil
}

type instance struct {
	l    *fake
	once sync.Once
}

func (i *instance) Invoke(ctx context.Context, call runtimeserver.Call) (runtimeserver.Result, error) {
	if i.l.running.Add(1) > 1 {
		return runtimeserver.Result{}, fmt.Errorf("two calls at once")
	}
	defer i.l.running.Add(-1)
	if i.l.invoke == nil {
		return runtimeserver.Result{Output: call.Input, ContentType: call.ContentType}, nil
	}
	return i.l.invoke(ctx, call)
}

func (i *instance) Close() error {
	i.once.Do(func() { i.l.live.Add(-1) })
	return nil
}

// house is a server for the fake, and a client.
type house struct {
	t         testing.TB
	language  *fake
	workspace string
	client    executorv1connect.FunctionRuntimeClient
	base      executorv1connect.RuntimeClient
	stop      func()
}

func open(t testing.TB, language *fake, change ...func(*runtimeserver.Config)) *house {
	t.Helper()
	h := &house{t: t, language: language, workspace: t.TempDir()}
	cfg := runtimeserver.Default(h.workspace)
	for _, c := range change {
		c(&cfg)
	}
	log := slog.New(slog.DiscardHandler)
	server, err := runtimeserver.New(cfg, runtimeserver.Deps{Log: log, Language: language})
	if err != nil {
		t.Fatal(err)
	}
	rpc, err := serve.NewConnect(log)
	if err != nil {
		t.Fatal(err)
	}
	server.Register(rpc)
	dialer := dial.New(nil)
	dialer.Add("fake", rpc)
	client, err := dialer.Client("inprocess:fake")
	if err != nil {
		t.Fatal(err)
	}
	h.client = executorv1connect.NewFunctionRuntimeClient(client)
	h.base = executorv1connect.NewRuntimeClient(client)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Run(ctx) }()
	h.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
		if n := language.live.Load(); n != 0 {
			t.Errorf("%d instances were not closed", n)
		}
	})
	t.Cleanup(h.stop)
	return h
}

func (h *house) dir(run string) string {
	dir := filepath.Join(h.workspace, run)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		h.t.Fatal(err)
	}
	return dir
}

// digest makes a digest of one letter.
func digest(letter string) string { return "sha256:" + strings.Repeat(letter, 64) }

func (h *house) request(run string, attempt int32, letter string) *executorv1.RegisterFunctionRequest {
	return &executorv1.RegisterFunctionRequest{
		RunUid: run, RegistrationAttempt: attempt, WorkingDir: h.dir(run), Handler: "good", RegistrationDigest: digest(letter),
	}
}

func (h *house) register(run string, attempt int32, letter string) (*executorv1.RegisterFunctionResponse, error) {
	return h.client.RegisterFunction(context.Background(), h.request(run, attempt, letter))
}

func (h *house) ready(run string, attempt int32) *executorv1.FunctionRegistration {
	h.t.Helper()
	res, err := h.register(run, attempt, "a")
	if err != nil {
		h.t.Fatal(err)
	}
	if res.GetState() != executorv1.FunctionRegistrationState_FUNCTION_REGISTRATION_STATE_READY {
		h.t.Fatalf("state %s", res.GetState())
	}
	return res.GetRegistration()
}

func (h *house) status(ref *executorv1.FunctionRegistration) (*executorv1.FunctionStatusResponse, error) {
	return h.client.FunctionStatus(context.Background(), &executorv1.FunctionStatusRequest{Registration: ref})
}

func (h *house) invoke(ref *executorv1.FunctionRegistration) (*executorv1.InvokeFunctionResponse, error) {
	return h.client.InvokeFunction(context.Background(), &executorv1.InvokeFunctionRequest{Registration: ref, Input: []byte("x"), ContentType: "text/x"})
}

func (h *house) unregister(ref *executorv1.FunctionRegistration, now bool, drain time.Duration) error {
	_, err := h.client.UnregisterFunction(context.Background(), &executorv1.UnregisterFunctionRequest{Registration: ref, CancelInFlight: now, DrainTimeoutMillis: drain.Milliseconds()})
	return err
}

// wants checks an error's code and reason.
func wants(t testing.TB, what string, err error, code connect.Code, reason string) {
	t.Helper()
	if connect.CodeOf(err) != code || edge.Reason(err) != reason || err == nil {
		t.Errorf("%s: %v, reason %q; want %s %s", what, err, edge.Reason(err), code, reason)
	}
}
