package bash_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect/v2"
	"go.uber.org/goleak"

	"github.com/hearth-run/hearth/adapters/bash"
	"github.com/hearth-run/hearth/adapters/runtimeserver"
	executorv1 "github.com/hearth-run/hearth/gen/executor/v1"
	"github.com/hearth-run/hearth/gen/executor/v1/executorv1connect"
	"github.com/hearth-run/hearth/internal/kit/dial"
	"github.com/hearth-run/hearth/internal/kit/edge"
	"github.com/hearth-run/hearth/internal/kit/serve"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// house is a Bash Runtime Server in this process with one client.
type house struct {
	t         testing.TB
	workspace string
	client    executorv1connect.FunctionRuntimeClient
	runtime   executorv1connect.RuntimeClient
	rpc       *connect.Server
	stop      func()
	runs      int
}

func open(t testing.TB, change ...func(*runtimeserver.Config)) *house {
	t.Helper()
	language, err := bash.New(bash.Config{})
	if err != nil {
		t.Fatal(err)
	}
	h := &house{t: t, workspace: t.TempDir()}
	cfg := runtimeserver.Default(h.workspace)
	for _, c := range change {
		c(&cfg)
	}
	log := slog.New(slog.NewTextHandler(logTo{t}, &slog.HandlerOptions{Level: slog.LevelWarn}))
	server, err := runtimeserver.New(cfg, runtimeserver.Deps{Log: log, Language: language})
	if err != nil {
		t.Fatal(err)
	}
	rpc, err := serve.NewConnect(log)
	if err != nil {
		t.Fatal(err)
	}
	server.Register(rpc)
	h.rpc = rpc
	dialer := dial.New(nil)
	dialer.Add("bash", rpc)
	client, err := dialer.Client("inprocess:bash")
	if err != nil {
		t.Fatal(err)
	}
	h.client = executorv1connect.NewFunctionRuntimeClient(client)
	h.runtime = executorv1connect.NewRuntimeClient(client)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Run(ctx) }()
	h.stop = sync.OnceFunc(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
	})
	t.Cleanup(h.stop)
	return h
}

type logTo struct{ t testing.TB }

func (l logTo) Write(p []byte) (int, error) {
	l.t.Helper()
	l.t.Log(strings.TrimSpace(string(p)))
	return len(p), nil
}

// function is a registered function.
type function struct {
	*house
	dir string
	uid string
	ref *executorv1.FunctionRegistration
}

// write makes a Run's folder with the file app.sh.
func (h *house) write(script string) (uid, dir string) {
	h.t.Helper()
	h.runs++
	uid = fmt.Sprintf("run-%d", h.runs)
	dir = filepath.Join(h.workspace, uid)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "app.sh"), []byte(script), 0o644); err != nil {
		h.t.Fatal(err)
	}
	return uid, dir
}

const digest = "sha256:0000000000000000000000000000000000000000000000000000000000000000"

// tryRegister registers app.handle of a script.
func (h *house) tryRegister(script string) (*function, *executorv1.RegisterFunctionResponse, error) {
	h.t.Helper()
	uid, dir := h.write(script)
	res, err := h.client.RegisterFunction(context.Background(), &executorv1.RegisterFunctionRequest{
		RunUid: uid, RegistrationAttempt: 1, WorkingDir: dir, Handler: "app.handle", RegistrationDigest: digest,
		Env: map[string]string{"GREETING": "hello world"},
	})
	return &function{h, dir, uid, res.GetRegistration()}, res, err
}

func (h *house) register(script string) *function {
	h.t.Helper()
	f, res, err := h.tryRegister(script)
	if err != nil {
		h.t.Fatal(err)
	}
	if res.GetState() != executorv1.FunctionRegistrationState_FUNCTION_REGISTRATION_STATE_READY {
		h.t.Fatalf("state %s: %s", res.GetState(), f.status().GetFatalError())
	}
	return f
}

func (f *function) status() *executorv1.FunctionStatusResponse {
	f.t.Helper()
	res, err := f.client.FunctionStatus(context.Background(), &executorv1.FunctionStatusRequest{Registration: f.ref})
	if err != nil {
		f.t.Fatal(err)
	}
	return res
}

func (f *function) invoke(ctx context.Context, timeout time.Duration, input string) (*executorv1.InvokeFunctionResponse, error) {
	return f.client.InvokeFunction(ctx, &executorv1.InvokeFunctionRequest{
		Registration: f.ref, Input: []byte(input), ContentType: "application/json", TimeoutMillis: timeout.Milliseconds(),
	})
}

// call invokes and wants an answer.
func (f *function) call(input string) string {
	f.t.Helper()
	res, err := f.invoke(context.Background(), 0, input)
	if err != nil {
		f.t.Fatalf("%v\n%s", err, edge.DebugText(err))
	}
	return string(res.GetOutput())
}

// fails invokes and wants an error.
func (f *function) fails(timeout time.Duration, input string, code connect.Code, reason string) error {
	f.t.Helper()
	_, err := f.invoke(context.Background(), timeout, input)
	if connect.CodeOf(err) != code || edge.Reason(err) != reason {
		f.t.Errorf("got %v, reason %q, want %s %s", err, edge.Reason(err), code, reason)
	}
	return err
}

func (f *function) unregister() {
	f.t.Helper()
	if _, err := f.client.UnregisterFunction(context.Background(), &executorv1.UnregisterFunctionRequest{Registration: f.ref, CancelInFlight: true}); err != nil {
		f.t.Error(err)
	}
}

// log returns the Run's log file.
func (f *function) log() string {
	f.t.Helper()
	data, err := os.ReadFile(filepath.Join(f.workspace, ".hearth", "logs", f.uid+".jsonl"))
	if err != nil {
		f.t.Fatal(err)
	}
	return string(data)
}
