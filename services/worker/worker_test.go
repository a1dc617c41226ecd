package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"strings"
	"testing"

	"connectrpc.com/connect/v2"
	"go.uber.org/goleak"

	"github.com/hearth-run/hearth/gen/hearth/v1/hearthv1connect"
	"github.com/hearth-run/hearth/gen/serverless"
	"github.com/hearth-run/hearth/gen/serverless/serverlessconnect"
	"github.com/hearth-run/hearth/internal/kit/dial"
	"github.com/hearth-run/hearth/internal/kit/serve"
	"github.com/hearth-run/hearth/sandbox/process"
	"github.com/hearth-run/hearth/services/worker"
	"github.com/hearth-run/hearth/services/worker/internal/pyenv"
)

// interpreter is one environment for the whole run, made as a worker makes it.
var interpreter string

func TestMain(m *testing.M) {
	if folder := os.Getenv("TEST_WORKER"); folder != "" {
		alone(folder, os.Getenv("TEST_PYTHON"))
		os.Exit(0)
	}
	folder, err := os.MkdirTemp("", "hearth-worker-")
	if err != nil {
		panic(err)
	}
	env, err := pyenv.Prepare(context.Background(), pyenv.Config{Folder: folder, Packages: []string{"six==1.16.0"}}, slog.New(slog.DiscardHandler))
	if err != nil {
		panic(err)
	}
	interpreter = env.Python
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(folder)
		os.Exit(code)
	}))
}

// house is a worker that runs.
type house struct {
	worker  *worker.Worker
	client  serverlessconnect.ExecutionServiceClient
	zygotes hearthv1connect.ZygoteServiceClient
	stop    func()
}

// open starts a worker on a folder of the test's own.
func open(t *testing.T, change func(*worker.Config)) *house {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	if testing.Verbose() {
		log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	driverConfig := process.Default()
	driverConfig.Root, driverConfig.Log = t.TempDir(), log
	driver, err := process.Open(driverConfig)
	if err != nil {
		t.Fatal(err)
	}
	cfg := worker.Default()
	cfg.ID, cfg.Address, cfg.DataDir = "w1", "inprocess:worker", t.TempDir()
	cfg.DefaultMemory, cfg.ScratchBytes = 256<<20, 64<<20
	cfg.Python = interpreter
	if change != nil {
		change(&cfg)
	}
	w, err := worker.New(cfg, worker.Deps{Log: log, Driver: driver})
	if err != nil {
		t.Fatal(err)
	}
	rpc, err := serve.NewConnect(log)
	if err != nil {
		t.Fatal(err)
	}
	w.Register(rpc)
	dialer := dial.New(nil)
	dialer.Add("worker", rpc)
	client, err := dialer.Streams("inprocess:worker")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	<-w.Prepared()
	h := &house{worker: w, zygotes: hearthv1connect.NewZygoteServiceClient(client), client: serverlessconnect.NewExecutionServiceClient(client), stop: func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
	}}
	t.Cleanup(func() { dialer.Close() })
	return h
}

// answer is what came back of one execution.
type answer struct {
	logs       string
	payload    []byte
	container  string
	checkpoint string
	start      serverless.ContainerStart
	envelope   struct {
		OK        bool
		Value     any
		ExcType   string `json:"exc_type"`
		Message   string
		Traceback string
		Output    []string
	}
}

// execute sends one JSON call.
func (h *house) execute(ctx context.Context, header *serverless.WorkerExecutionRequest, source, entry string, args ...any) (*answer, error) {
	if args == nil {
		args = []any{}
	}
	body, err := json.Marshal(map[string]any{"source": source, "entry": entry, "args": args})
	if err != nil {
		return nil, err
	}
	a, err := h.send(ctx, header, body)
	if err != nil {
		return a, err
	}
	return a, json.Unmarshal(a.payload, &a.envelope)
}

func (h *house) send(ctx context.Context, header *serverless.WorkerExecutionRequest, chunks ...[]byte) (*answer, error) {
	stream, err := h.client.RequestExecution(ctx)
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	a := &answer{}
	if err := stream.Send(header); err != nil && !errors.Is(err, io.EOF) {
		return a, err
	}
	for _, chunk := range chunks {
		if err := stream.Send(&serverless.WorkerExecutionRequest{Payload: chunk}); err != nil {
			break
		}
	}
	if err := stream.CloseSend(); err != nil {
		return a, err
	}
	for {
		res, err := stream.Receive()
		if errors.Is(err, io.EOF) {
			return a, nil
		}
		if err != nil {
			return a, err
		}
		a.container, a.checkpoint, a.start = res.GetContainerId(), res.GetCheckpointId(), res.GetStart()
		a.logs += res.GetLogs()
		a.payload = append(a.payload, res.GetPayload()...)
	}
}

func TestOneCall(t *testing.T) {
	h := open(t, nil)
	defer h.stop()
	a, err := h.execute(t.Context(), &serverless.WorkerExecutionRequest{RequestId: "r1"},
		"def add(a, b):\n    print('adding')\n    return a + b\n", "add", 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	if !a.envelope.OK || a.envelope.Value != 3.0 || strings.Join(a.envelope.Output, "") != "adding\n" || a.logs != "adding\n" {
		t.Errorf("answer %+v", a)
	}
}

func TestSessionKeepsState(t *testing.T) {
	h := open(t, nil)
	defer h.stop()
	const source = "n = 0\ndef count():\n    global n\n    n += 1\n    return n\n"
	first, err := h.execute(t.Context(), &serverless.WorkerExecutionRequest{RequestId: "r1", SessionId: "s"}, source, "count")
	if err != nil {
		t.Fatal(err)
	}
	second, err := h.execute(t.Context(), &serverless.WorkerExecutionRequest{RequestId: "r2", SessionId: "s", ContainerId: &first.container}, source, "count")
	if err != nil {
		t.Fatal(err)
	}
	if first.start != serverless.ContainerStart_CONTAINER_START_COLD || second.start != serverless.ContainerStart_CONTAINER_START_SESSION {
		t.Errorf("started %v, then %v", first.start, second.start)
	}
	if second.envelope.Value != 2.0 || second.container != first.container {
		t.Errorf("second call: %+v", second)
	}
	_, err = h.execute(t.Context(), &serverless.WorkerExecutionRequest{RequestId: "r3", SessionId: "other", ContainerId: &first.container}, source, "count")
	if connect.CodeOf(err) != connect.CodeNotFound {
		t.Errorf("another session in the container: %v", err)
	}
}
