package controlplane_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"connectrpc.com/connect/v2"
	"go.uber.org/goleak"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/gen/hearth/v1/hearthv1connect"
	"github.com/hearth-run/hearth/internal/kit/dial"
	"github.com/hearth-run/hearth/internal/kit/edge"
	"github.com/hearth-run/hearth/internal/kit/serve"
	"github.com/hearth-run/hearth/services/controlplane"
)

// house is a control plane and clients of it.
type house struct {
	t      testing.TB
	runs   hearthv1connect.RunServiceClient
	nodes  hearthv1connect.NodeServiceClient
	routes hearthv1connect.RouteServiceClient
	ctx    context.Context
	close  func()
}

// settings are for tests: a folder of the test, and no fsync.
func settings(t testing.TB) controlplane.Config {
	cfg := controlplane.Default()
	cfg.Data, cfg.NoSync = t.TempDir(), true
	return cfg
}

// twice runs a contract in-process and over HTTP.
func twice(t *testing.T, contract func(*testing.T, *house)) {
	for _, transport := range []string{"inprocess", "http"} {
		t.Run(transport, func(t *testing.T) {
			// Nodes here renew nothing, and a loaded machine may be slow.
			cfg := settings(t)
			cfg.Lease = time.Hour
			h := open(t, cfg, transport)
			defer h.close()
			contract(t, h)
		})
	}
}

// open starts a control plane; close stops it and checks that nothing is left.
func open(t testing.TB, cfg controlplane.Config, transport string) *house {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	service, err := controlplane.New(cfg, controlplane.Deps{Log: log})
	if err != nil {
		t.Fatal(err)
	}
	rpc, err := serve.NewConnect(log)
	if err != nil {
		t.Fatal(err)
	}
	service.Register(rpc)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	run := func(f func(context.Context) error) { go func() { ended <- f(ctx) }() }
	run(service.Run)
	dialer, address, parts := dial.New(nil), "inprocess:controlplane", 1
	dialer.Add("controlplane", rpc)
	if transport == "http" {
		server, err := serve.New(serve.Config{Listen: "127.0.0.1:0"}, log, rpc)
		if err != nil {
			t.Fatal(err)
		}
		if err := server.Listen(); err != nil {
			t.Fatal(err)
		}
		run(server.Run)
		address, parts = server.Address(), 2
	}
	client, err := dialer.Client(address)
	if err != nil {
		t.Fatal(err)
	}
	h := &house{t: t, ctx: context.Background(),
		runs: hearthv1connect.NewRunServiceClient(client), nodes: hearthv1connect.NewNodeServiceClient(client),
		routes: hearthv1connect.NewRouteServiceClient(client)}
	h.close = func() {
		dialer.Close()
		stop()
		for range parts {
			if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("ended with %v", err)
			}
		}
		dialer.Close()
	}
	return h
}

func TestMain(m *testing.M) {
	if data := os.Getenv(childData); data != "" {
		if err := child(data); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// function is a spec that is in order.
func function() *hearthv1.RunSpec {
	return &hearthv1.RunSpec{
		Runtime: "python",
		Source:  inline("handler.py", "def handle(event): return event"),
		Mode:    &hearthv1.RunSpec_Function{Function: &hearthv1.FunctionMode{Handler: "handler.handle"}},
	}
}

func task() *hearthv1.RunSpec {
	return &hearthv1.RunSpec{
		Runtime: "python",
		Mode:    &hearthv1.RunSpec_Task{Task: &hearthv1.TaskMode{Args: []string{"-c", "print(1)"}}},
	}
}

func inline(path, text string) *hearthv1.Source {
	return &hearthv1.Source{Kind: &hearthv1.Source_Inline{Inline: &hearthv1.InlineSource{Files: []*hearthv1.InlineFile{
		{Path: path, Data: &hearthv1.InlineFile_Text{Text: text}},
	}}}}
}

func (h *house) create(name string, spec *hearthv1.RunSpec) *hearthv1.Run {
	h.t.Helper()
	res, err := h.runs.CreateRun(h.ctx, &hearthv1.CreateRunRequest{Name: name, Spec: spec})
	if err != nil {
		h.t.Fatalf("create %s: %v", name, err)
	}
	return res.GetRun()
}

func (h *house) get(name string) *hearthv1.Run {
	h.t.Helper()
	res, err := h.runs.GetRun(h.ctx, &hearthv1.GetRunRequest{Name: name})
	if err != nil {
		h.t.Fatalf("get %s: %v", name, err)
	}
	return res.GetRun()
}

// until watches a Run from its beginning until it satisfies the condition.
func (h *house) until(name, what string, holds func(*hearthv1.Run) bool) *hearthv1.Run {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.ctx, time.Minute)
	defer cancel()
	watch, err := h.runs.WatchRuns(ctx, &hearthv1.WatchRunsRequest{})
	if err != nil {
		h.t.Fatal(err)
	}
	defer watch.Close()
	for {
		e, err := watch.Receive()
		if err != nil {
			h.t.Fatalf("waiting for %s to be %s: %v", name, what, err)
		}
		if e.GetRun().GetName() == name && holds(e.GetRun()) {
			return e.GetRun()
		}
	}
}

func (h *house) phase(name string, phase hearthv1.RunPhase, reason hearthv1.RunReason) *hearthv1.Run {
	h.t.Helper()
	return h.until(name, fmt.Sprint(phase, reason), func(r *hearthv1.Run) bool {
		return r.GetStatus().GetPhase() == phase && r.GetStatus().GetReason() == reason
	})
}

// refused checks code and reason of an error.
func refused(t testing.TB, what string, err error, code connect.Code, reason string) {
	t.Helper()
	if connect.CodeOf(err) != code || edge.Reason(err) != reason {
		t.Errorf("%s: %v, reason %q; want %v, %s", what, err, edge.Reason(err), code, reason)
	}
}
