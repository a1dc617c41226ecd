package gateway_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"

	"connectrpc.com/connect/v2"
	"go.uber.org/goleak"

	executorv1 "github.com/hearth-run/hearth/gen/executor/v1"
	"github.com/hearth-run/hearth/gen/executor/v1/executorv1connect"
	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/gen/hearth/v1/hearthv1connect"
	"github.com/hearth-run/hearth/internal/kit/dial"
	"github.com/hearth-run/hearth/internal/kit/edge"
	"github.com/hearth-run/hearth/internal/kit/hop"
	"github.com/hearth-run/hearth/internal/kit/serve"
	"github.com/hearth-run/hearth/services/gateway"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// control is a control plane of which the test says each event.
type control struct {
	hearthv1connect.UnimplementedRouteServiceHandler
	events chan *hearthv1.WatchRoutesResponse

	mu    sync.Mutex // guards what follows
	route *hearthv1.Route
	looks int
}

func (c *control) WatchRoutes(ctx context.Context, _ *hearthv1.WatchRoutesRequest, stream hearthv1connect.RouteServiceWatchRoutesServerStream) error {
	for {
		select {
		case event := <-c.events:
			if event == nil {
				return edge.New(connect.CodeUnavailable, "SHUTTING_DOWN", "gone", nil)
			}
			if err := stream.Send(event); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (c *control) GetRoute(context.Context, *hearthv1.GetRouteRequest) (*hearthv1.GetRouteResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.looks++
	if c.route == nil {
		return nil, edge.New(connect.CodeNotFound, "RUN_NOT_FOUND", "no such Run", nil)
	}
	return &hearthv1.GetRouteResponse{Route: c.route}, nil
}

func (c *control) say(route *hearthv1.Route) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.route, c.looks = route, 0
}

func (c *control) looked() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.looks
}

// node answers as the test says for each call.
type node struct {
	executorv1connect.UnimplementedFunctionRuntimeHandler
	mu     sync.Mutex // guards what follows
	answer func(context.Context, *executorv1.InvokeFunctionRequest) (*executorv1.InvokeFunctionResponse, error)
	calls  int
	fence  hop.Fence
	trace  string
	last   *executorv1.InvokeFunctionRequest
}

func (n *node) InvokeFunction(ctx context.Context, req *executorv1.InvokeFunctionRequest) (*executorv1.InvokeFunctionResponse, error) {
	info, _ := connect.CallInfoForServerContext(ctx)
	n.mu.Lock()
	n.calls++
	n.last = req
	n.fence, _ = hop.Read(info.RequestHeader())
	n.trace = info.RequestHeader().Get(hop.Traceparent)
	answer := n.answer
	n.mu.Unlock()
	return answer(ctx, req)
}

func (n *node) does(answer func(context.Context, *executorv1.InvokeFunctionRequest) (*executorv1.InvokeFunctionResponse, error)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.answer, n.calls = answer, 0
}

func (n *node) fails(err error) {
	n.does(func(context.Context, *executorv1.InvokeFunctionRequest) (*executorv1.InvokeFunctionResponse, error) {
		return nil, err
	})
}

func (n *node) seen() (calls int, fence hop.Fence, trace string, last *executorv1.InvokeFunctionRequest) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.calls, n.fence, n.trace, n.last
}

// echo answers with the payload.
func echo(_ context.Context, req *executorv1.InvokeFunctionRequest) (*executorv1.InvokeFunctionResponse, error) {
	return &executorv1.InvokeFunctionResponse{Output: req.GetInput(), ContentType: "application/json", Outputs: map[string]string{"k": "v"}}, nil
}

// house is a gateway on a real listener between a control plane and a node.
type house struct {
	control *control
	node    *node
	dialer  *dial.Dialer
	service *gateway.Service
	server  *serve.Server
	base    string
}

func open(t testing.TB, change func(*gateway.Config)) *house {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	h := &house{
		control: &control{events: make(chan *hearthv1.WatchRoutesResponse)},
		node:    &node{answer: echo},
		dialer:  dial.New(nil),
	}
	h.dialer.Add("control", dispatcher(t, func(s *connect.Server) { hearthv1connect.RegisterRouteServiceHandler(s, h.control) }))
	h.dialer.Add("node", dispatcher(t, func(s *connect.Server) { executorv1connect.RegisterFunctionRuntimeHandler(s, h.node) }))
	client, err := h.dialer.Client("inprocess:control")
	if err != nil {
		t.Fatal(err)
	}
	cfg := gateway.Default()
	if change != nil {
		change(&cfg)
	}
	if h.service, err = gateway.New(cfg, gateway.Deps{Log: log, Routes: hearthv1connect.NewRouteServiceClient(client), Nodes: h.dialer}); err != nil {
		t.Fatal(err)
	}
	if h.server, err = gateway.Serve(h.service, serve.Config{Listen: "127.0.0.1:0"}, log); err != nil {
		t.Fatal(err)
	}
	if err := h.server.Listen(); err != nil {
		t.Fatal(err)
	}
	h.base = h.server.Address()
	ctx, stop := context.WithCancel(context.Background())
	var children sync.WaitGroup
	children.Go(func() {
		if err := h.service.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	children.Go(func() {
		if err := h.server.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		h.dialer.Close()
		http.DefaultClient.CloseIdleConnections()
		stop()
		children.Wait()
	})
	return h
}

func dispatcher(t testing.TB, register func(*connect.Server)) *connect.Server {
	t.Helper()
	server, err := serve.NewConnect(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	register(server)
	return server
}

// tell sends an event and, since events are taken one after the other, a second
// empty one: when that is taken, the first was applied.
func (h *house) tell(event *hearthv1.WatchRoutesResponse) {
	h.control.events <- event
	h.control.events <- &hearthv1.WatchRoutesResponse{}
	h.control.events <- &hearthv1.WatchRoutesResponse{}
}

func ready(name, uid string) *hearthv1.Route {
	return &hearthv1.Route{
		Namespace: "default", Name: name, RunUid: uid, Attempt: 3, NodeUid: "node-a", Function: true,
		Address: "inprocess:node", Phase: hearthv1.RunPhase_RUN_PHASE_READY, Reason: hearthv1.RunReason_RUN_REASON_READY,
	}
}

func in(route *hearthv1.Route, phase hearthv1.RunPhase, reason hearthv1.RunReason) *hearthv1.Route {
	route.Phase, route.Reason, route.Address = phase, reason, ""
	return route
}

func snapshot(routes ...*hearthv1.Route) *hearthv1.WatchRoutesResponse {
	return &hearthv1.WatchRoutesResponse{Routes: routes, SnapshotComplete: true}
}

// answer is an HTTP response that was read.
type answer struct {
	status int
	header http.Header
	body   string
}

func (h *house) post(t *testing.T, path, body string, headers ...string) answer {
	t.Helper()
	return h.do(t, http.MethodPost, path, strings.NewReader(body), headers...)
}

func (h *house) do(t *testing.T, method, path string, body io.Reader, headers ...string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, h.base+path, body)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{res.StatusCode, res.Header, string(data)}
}

const helloPath = "/v1/namespaces/default/runs/hello:invoke"
