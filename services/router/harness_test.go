package router_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"testing"

	"go.uber.org/goleak"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/gen/hearth/v1/hearthv1connect"
	"github.com/hearth-run/hearth/gen/serverless"
	"github.com/hearth-run/hearth/gen/serverless/serverlessconnect"
	"github.com/hearth-run/hearth/internal/kit/dial"
	"github.com/hearth-run/hearth/internal/kit/edge"
	"github.com/hearth-run/hearth/internal/kit/serve"
	"github.com/hearth-run/hearth/services/router"

	"connectrpc.com/connect/v2"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var quiet = slog.New(slog.DiscardHandler)

// overBoth runs a contract test inside the process and over h2c.
func overBoth(t *testing.T, test func(t *testing.T, open func(change ...func(*router.Config)) *house)) {
	for _, wire := range []bool{false, true} {
		t.Run(map[bool]string{false: "inprocess", true: "h2c"}[wire], func(t *testing.T) {
			test(t, func(change ...func(*router.Config)) *house { return open(t, wire, change...) })
		})
	}
}

// house is one router with its clients, and the fake workers that it knows.
type house struct {
	t        testing.TB
	wire     bool
	dialer   *dial.Dialer
	service  *router.Service
	rpc      *connect.Client
	proxy    serverlessconnect.ProxyServiceClient
	registry serverlessconnect.RegistryServiceClient
	admin    hearthv1connect.ExecutionAdminServiceClient
	stop     func()
}

func open(t testing.TB, wire bool, change ...func(*router.Config)) *house {
	t.Helper()
	dialer := dial.New(nil)
	t.Cleanup(dialer.Close)
	return openWith(t, wire, router.Deps{Log: quiet, Dialer: dialer}, change...)
}

func openWith(t testing.TB, wire bool, deps router.Deps, change ...func(*router.Config)) *house {
	t.Helper()
	cfg := router.Default()
	cfg.GatherWait = 0 // every worker that comes is there before the first call
	for _, c := range change {
		c(&cfg)
	}
	h := &house{t: t, wire: wire, dialer: deps.Dialer}
	var err error
	if h.service, err = router.New(cfg, deps); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- h.service.Run(ctx) }()
	h.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(h.stop)
	client := h.connect(h.dialer, h.mount("router", wire, h.service.Register))
	h.rpc = client
	h.proxy = serverlessconnect.NewProxyServiceClient(client)
	h.registry = serverlessconnect.NewRegistryServiceClient(client)
	h.admin = hearthv1connect.NewExecutionAdminServiceClient(client)
	return h
}

func (h *house) connect(dialer *dial.Dialer, address string) *connect.Client {
	client, err := dialer.GRPC(address)
	if err != nil {
		h.t.Fatal(err)
	}
	return client
}

// mount serves what register adds and returns its address.
func (h *house) mount(name string, wire bool, register func(*connect.Server)) string {
	address, _ := h.mounted(name, wire, register)
	return address
}

// mounted returns, beside the address, what cuts the server off.
func (h *house) mounted(name string, wire bool, register func(*connect.Server)) (string, func()) {
	h.t.Helper()
	rpc, err := serve.NewConnect(quiet)
	if err != nil {
		h.t.Fatal(err)
	}
	register(rpc)
	if !wire {
		h.dialer.Add(name, rpc)
		return "inprocess:" + name, func() {}
	}
	server, err := serve.New(serve.Config{Listen: "127.0.0.1:0", MaxMessage: router.MaxMessage, Drain: 1}, quiet, rpc)
	if err == nil {
		err = server.Listen()
	}
	if err != nil {
		h.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Run(ctx) }()
	stop := sync.OnceFunc(func() { cancel(); <-done })
	h.t.Cleanup(stop)
	return server.Address(), stop
}

// fakeWorker is a worker by name, which does what do says.
type fakeWorker struct {
	id, uri string
	cut     func()

	mu    sync.Mutex
	do    behaviour
	heard []*serverless.WorkerExecutionRequest // headers
}

type (
	workerSide = serverlessconnect.ExecutionServiceRequestExecutionServerStream
	behaviour  func(ctx context.Context, header *serverless.WorkerExecutionRequest, s workerSide) error
)

func (w *fakeWorker) RequestExecution(ctx context.Context, s workerSide) error {
	header, err := s.Receive()
	if err != nil {
		return err
	}
	w.mu.Lock()
	w.heard = append(w.heard, header)
	do := w.do
	w.mu.Unlock()
	return do(ctx, header, s)
}

func (w *fakeWorker) set(do behaviour) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.do = do
}

func (w *fakeWorker) headers() []*serverless.WorkerExecutionRequest {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.heard
}

// worker serves a fake worker and registers it with 16 GiB.
func (h *house) worker(id string, change ...func(*serverless.WorkerStatus)) *fakeWorker {
	h.t.Helper()
	w := &fakeWorker{id: id, do: echo}
	w.uri, w.cut = h.mounted(id, h.wire, func(rpc *connect.Server) { serverlessconnect.RegisterExecutionServiceHandler(rpc, w) })
	h.register(w, change...)
	return w
}

func (h *house) register(w *fakeWorker, change ...func(*serverless.WorkerStatus)) {
	h.t.Helper()
	status := &serverless.WorkerStatus{WorkerId: w.id, WorkerUri: w.uri, Status: serverless.Status_STATUS_READY, MemTotal: 16 << 30, Flavor: "cpu"}
	for _, c := range change {
		c(status)
	}
	if res, err := h.registry.PostWorkerStatus(h.t.Context(), status); err != nil || !res.GetUpdated() {
		h.t.Fatalf("register %s: %v, %v", w.id, res, err)
	}
}

// report posts a container's state.
func (h *house) report(worker, container, session, request string, status serverless.Status) bool {
	h.t.Helper()
	res, err := h.registry.PostExecutorStatus(h.t.Context(), &serverless.ExecutorStatus{
		WorkerId: worker, ContainerId: container, SessionId: session, RequestId: request, Status: status,
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return res.GetUpdated()
}

// answer is one message of a worker.
func answer(header *serverless.WorkerExecutionRequest, payload []byte) *serverless.WorkerExecutionResponse {
	container := header.GetContainerId()
	if container == "" {
		container = "k-" + header.GetRequestId()
	}
	return &serverless.WorkerExecutionResponse{
		RequestId: header.GetRequestId(), SessionId: header.GetSessionId(), WorkerId: header.GetWorkerId(), ContainerId: container,
		CheckpointId: header.GetCheckpointId(), Start: serverless.ContainerStart_CONTAINER_START_COLD, Success: true, Budgets: header.GetBudgets(),
		Data: &serverless.WorkerExecutionResponse_Payload{Payload: payload},
	}
}

// echo sends each chunk back as it comes.
func echo(_ context.Context, header *serverless.WorkerExecutionRequest, s workerSide) error {
	for {
		chunk, err := s.Receive()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := s.Send(answer(header, chunk.GetPayload())); err != nil {
			return err
		}
	}
}

// whole reads the body and answers "worker:body".
func whole(_ context.Context, header *serverless.WorkerExecutionRequest, s workerSide) error {
	var body []byte
	for {
		chunk, err := s.Receive()
		if errors.Is(err, io.EOF) {
			return s.Send(answer(header, fmt.Appendf(nil, "%s:%s", header.GetWorkerId(), body)))
		}
		if err != nil {
			return err
		}
		body = append(body, chunk.GetPayload()...)
	}
}

// refuse is a worker's admission.
func refuse(_ context.Context, _ *serverless.WorkerExecutionRequest, s workerSide) error {
	if _, err := s.Receive(); err != nil {
		return err
	}
	return edge.New(connect.CodeResourceExhausted, "WORKER_FULL", "the worker has no room for this call", nil)
}

type clientSide = serverlessconnect.ProxyServiceRequestExecutionClientStream

// start opens a call and sends its first message.
func (h *house) start(ctx context.Context, request, session string, cfg *serverless.ExecutionConfig) clientSide {
	h.t.Helper()
	stream, err := h.proxy.RequestExecution(ctx)
	if err != nil {
		h.t.Fatal(err)
	}
	if cfg == nil {
		cfg = &serverless.ExecutionConfig{}
	}
	stream.Send(&serverless.ClientExecutionRequest{RequestId: request, SessionId: session, Data: &serverless.ClientExecutionRequest_Config{Config: cfg}})
	return stream
}

func send(stream clientSide, chunks ...string) {
	for _, chunk := range chunks {
		stream.Send(&serverless.ClientExecutionRequest{Data: &serverless.ClientExecutionRequest_Payload{Payload: []byte(chunk)}})
	}
}

// finish half-closes and reads to the end.
func finish(stream clientSide) (answer string, last *serverless.ClientExecutionResponse, err error) {
	defer stream.Close()
	stream.CloseSend()
	for {
		msg, err := stream.Receive()
		if errors.Is(err, io.EOF) {
			return answer, last, nil
		}
		if err != nil {
			return answer, last, err
		}
		last = msg
		answer += string(msg.GetPayload())
	}
}

// call is a whole call.
func (h *house) call(request, session string, cfg *serverless.ExecutionConfig, chunks ...string) (string, *serverless.ClientExecutionResponse, error) {
	h.t.Helper()
	stream := h.start(h.t.Context(), request, session, cfg)
	send(stream, chunks...)
	return finish(stream)
}

// wants checks an error's code and reason.
func wants(t *testing.T, what string, err error, code connect.Code, reason string) {
	t.Helper()
	if err == nil || connect.CodeOf(err) != code || edge.Reason(err) != reason {
		t.Errorf("%s: %v (reason %q), want %s %s", what, err, edge.Reason(err), code, reason)
	}
}

// idle checks that nothing is left of any call.
func (h *house) idle() {
	h.t.Helper()
	counters := h.service.Counters()
	for _, name := range []string{"executions_in_flight", "reservations", "executions_queued"} {
		if counters[name] != 0 {
			h.t.Errorf("%s is %d at the end", name, counters[name])
		}
	}
	res, err := h.admin.ListWorkers(context.Background(), &hearthv1.ListWorkersRequest{})
	if err != nil {
		h.t.Fatal(err)
	}
	for _, w := range res.GetWorkers() {
		if w.GetInFlight() != 0 {
			h.t.Errorf("%s has %d calls at the end", w.GetWorkerId(), w.GetInFlight())
		}
	}
}
