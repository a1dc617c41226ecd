package serve_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connectinprocess"
	"go.uber.org/goleak"

	executorv1 "github.com/hearth-run/hearth/gen/executor/v1"
	"github.com/hearth-run/hearth/gen/executor/v1/executorv1connect"
	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/gen/hearth/v1/hearthv1connect"
	"github.com/hearth-run/hearth/internal/kit/dial"
	"github.com/hearth-run/hearth/internal/kit/edge"
	"github.com/hearth-run/hearth/internal/kit/serve"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// runtimeFake panics, fails and hangs on demand.
type runtimeFake struct {
	executorv1connect.UnimplementedRuntimeHandler
	entered, release chan struct{}
}

func (f *runtimeFake) Status(ctx context.Context, req *executorv1.StatusRequest) (*executorv1.StatusResponse, error) {
	switch req.GetId() {
	case "panic":
		panic("boom")
	case "plain":
		return nil, errors.New("a secret")
	case "slow":
		close(f.entered)
		<-f.release
	case "endless":
		close(f.entered)
		<-ctx.Done()
		return nil, ctx.Err()
	}
	_, bounded := ctx.Deadline()
	return &executorv1.StatusResponse{Id: req.GetId(), ErrorMessage: map[bool]string{true: "bounded"}[bounded]}, nil
}

type routesFake struct {
	hearthv1connect.UnimplementedRouteServiceHandler
}

func (f *routesFake) WatchRoutes(ctx context.Context, _ *hearthv1.WatchRoutesRequest, stream hearthv1connect.RouteServiceWatchRoutesServerStream) error {
	if err := stream.Send(&hearthv1.WatchRoutesResponse{SnapshotComplete: true}); err != nil {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
}

type house struct {
	fake   *runtimeFake
	server *serve.Server
	dialer *dial.Dialer
	stop   context.CancelFunc
	done   chan error
}

func open(t *testing.T, listen string, changes ...func(*serve.Config)) *house {
	t.Helper()
	h := &house{fake: &runtimeFake{entered: make(chan struct{}), release: make(chan struct{})}, dialer: dial.New(nil), done: make(chan error, 1)}
	rpc, err := serve.NewConnect(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	executorv1connect.RegisterRuntimeHandler(rpc, h.fake)
	hearthv1connect.RegisterRouteServiceHandler(rpc, &routesFake{})
	h.dialer.Add("fake", rpc)
	cfg := serve.Config{Listen: listen}
	for _, change := range changes {
		change(&cfg)
	}
	if h.server, err = serve.New(cfg, slog.New(slog.DiscardHandler), rpc); err != nil {
		t.Fatal(err)
	}
	if err := h.server.Listen(); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	h.stop = stop
	go func() { h.done <- h.server.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		h.dialer.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	return h
}

func (h *house) runtime(t *testing.T, address string) executorv1connect.RuntimeClient {
	t.Helper()
	client, err := h.dialer.Client(address)
	if err != nil {
		t.Fatal(err)
	}
	return executorv1connect.NewRuntimeClient(client)
}

func (h *house) close(t *testing.T) {
	t.Helper()
	h.stop()
	if err := <-h.done; err != nil {
		t.Error(err)
	}
}

func TestCallsAndErrors(t *testing.T) {
	socket := "unix:" + filepath.Join(t.TempDir(), "s")
	for _, listen := range []string{"127.0.0.1:0", socket, "inprocess"} {
		t.Run(strings.SplitN(listen, ":", 2)[0], func(t *testing.T) {
			bind, address := listen, "inprocess:fake"
			if listen == "inprocess" {
				bind = "127.0.0.1:0"
			}
			h := open(t, bind)
			defer h.close(t)
			if listen != "inprocess" {
				address = h.server.Address()
			}
			client := h.runtime(t, address)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			res, err := client.Status(ctx, &executorv1.StatusRequest{Id: "a"})
			if err != nil || res.GetErrorMessage() != "bounded" {
				t.Errorf("the deadline did not travel: %v %v", res, err)
			}
			for _, tc := range []struct {
				id     string
				code   connect.Code
				reason string
			}{
				{"panic", connect.CodeInternal, "INTERNAL"},
				{"plain", connect.CodeInternal, "INTERNAL"},
				{"", connect.CodeInvalidArgument, "INVALID_ARGUMENT"},
			} {
				_, err := client.Status(ctx, &executorv1.StatusRequest{Id: tc.id})
				if connect.CodeOf(err) != tc.code || edge.Reason(err) != tc.reason || strings.Contains(err.Error(), "secret") {
					t.Errorf("%q: %v, reason %q", tc.id, err, edge.Reason(err))
				}
			}
		})
	}
}

// A dispatcher inside one process takes over what its caller has checked; every
// other one checks the shape of a request itself.
func TestInside(t *testing.T) {
	for name, tc := range map[string]struct {
		options []serve.Option
		code    connect.Code
	}{
		"edge":   {nil, connect.CodeInvalidArgument},
		"inside": {[]serve.Option{serve.Inside()}, 0},
	} {
		rpc, err := serve.NewConnect(slog.New(slog.DiscardHandler), tc.options...)
		if err != nil {
			t.Fatal(err)
		}
		executorv1connect.RegisterRuntimeHandler(rpc, &runtimeFake{})
		client := executorv1connect.NewRuntimeClient(connect.NewClient(connectinprocess.New(rpc)))
		_, err = client.Status(t.Context(), &executorv1.StatusRequest{})
		if (err == nil) != (tc.code == 0) || err != nil && connect.CodeOf(err) != tc.code {
			t.Errorf("%s: an empty id is answered %v", name, err)
		}
	}
}

func TestPlainRoutes(t *testing.T) {
	h := open(t, "127.0.0.1:0")
	defer h.close(t)
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 200, "/nowhere": 404} {
		res, err := http.Get(h.server.Address() + path)
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, res.Body)
		res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("%s: %d, want %d", path, res.StatusCode, want)
		}
	}
	res, err := http.Post(h.server.Address()+"/grpc.health.v1.Health/Check", "application/json", bytes.NewBufferString(`{"service":"executor.v1.Runtime"}`))
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(res.Body)
	res.Body.Close()
	if !strings.Contains(string(body), "SERVING") {
		t.Errorf("health says %s", body)
	}
}

// A stop ends watches at once, lets a call finish, and refuses new ones.
func TestDrain(t *testing.T) {
	h := open(t, "127.0.0.1:0")
	client := h.runtime(t, h.server.Address())
	rc, err := h.dialer.Client(h.server.Address())
	if err != nil {
		t.Fatal(err)
	}
	watch, err := hearthv1connect.NewRouteServiceClient(rc).WatchRoutes(t.Context(), &hearthv1.WatchRoutesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := watch.Receive(); err != nil {
		t.Fatal(err)
	}
	answered := make(chan error, 1)
	go func() {
		_, err := client.Status(context.WithoutCancel(t.Context()), &executorv1.StatusRequest{Id: "slow"})
		answered <- err
	}()
	<-h.fake.entered
	h.stop()
	if _, err := watch.Receive(); edge.Reason(err) != "SHUTTING_DOWN" {
		t.Errorf("the watch ended with %v", err)
	}
	close(h.fake.release)
	if err := <-answered; err != nil {
		t.Errorf("a call in flight was cut: %v", err)
	}
	if err := <-h.done; err != nil {
		t.Error(err)
	}
}

// A call that outlasts the drain is told so; its connection does not just break.
func TestDrainCutShort(t *testing.T) {
	h := open(t, "127.0.0.1:0", func(c *serve.Config) { c.Drain = time.Millisecond })
	client := h.runtime(t, h.server.Address())
	answered := make(chan error, 1)
	go func() {
		_, err := client.Status(context.WithoutCancel(t.Context()), &executorv1.StatusRequest{Id: "endless"})
		answered <- err
	}()
	<-h.fake.entered
	h.close(t)
	if err := <-answered; connect.CodeOf(err) != connect.CodeUnavailable || edge.Reason(err) != "SHUTTING_DOWN" {
		t.Errorf("the call was answered with %v", err)
	}
}

func TestSocketInUse(t *testing.T) {
	listen := "unix:" + filepath.Join(t.TempDir(), "s")
	h := open(t, listen)
	defer h.close(t)
	rpc, err := serve.NewConnect(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	second, err := serve.New(serve.Config{Listen: listen}, slog.New(slog.DiscardHandler), rpc)
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Listen(); err == nil {
		t.Error("two servers on one socket")
	}
}
