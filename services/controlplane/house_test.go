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
			h := open(t, settings(t), transport)
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

// node is a node that a test plays.
type node struct {
	*house
	uid   string
	watch hearthv1connect.NodeServiceWatchAssignmentsClientStream
	held  []*hearthv1.Assignment // received, not yet taken
	stop  context.CancelFunc
}

func (h *house) node(uid string, change ...func(*hearthv1.RegisterNodeRequest)) *node {
	h.t.Helper()
	req := &hearthv1.RegisterNodeRequest{Node: &hearthv1.Node{
		Uid: uid, Name: "one", Runtime: "python", Address: "http://" + uid, Capacity: 10, SupportsFunctions: true, SupportsTasks: true,
	}}
	for _, f := range change {
		f(req)
	}
	if _, err := h.nodes.RegisterNode(h.ctx, req); err != nil {
		h.t.Fatalf("register %s: %v", uid, err)
	}
	return h.watchNode(uid)
}

func (h *house) watchNode(uid string) *node {
	h.t.Helper()
	ctx, stop := context.WithCancel(h.ctx)
	watch, err := h.nodes.WatchAssignments(ctx, &hearthv1.WatchAssignmentsRequest{NodeUid: uid})
	if err != nil {
		h.t.Fatal(err)
	}
	n := &node{house: h, uid: uid, watch: watch, stop: stop}
	first, err := watch.Receive()
	if err != nil || !first.GetSnapshot() {
		h.t.Fatalf("the watch began with %v, %v", first, err)
	}
	n.held = first.GetAssignments()
	return n
}

func (n *node) end() {
	n.stop()
	n.watch.Close()
}

// next returns the next assignment that the node hears of.
func (n *node) next() *hearthv1.Assignment {
	n.t.Helper()
	for len(n.held) == 0 {
		e, err := n.watch.Receive()
		if err != nil {
			n.t.Fatalf("node %s: %v", n.uid, err)
		}
		n.held = e.GetAssignments()
	}
	a := n.held[0]
	n.held = n.held[1:]
	return a
}

func (n *node) serve() *hearthv1.Assignment {
	n.t.Helper()
	a := n.next()
	if a.GetAction() != hearthv1.AssignmentAction_ASSIGNMENT_ACTION_SERVE {
		n.t.Fatalf("node %s was told %v", n.uid, a)
	}
	return a
}

func (n *node) release() *hearthv1.Assignment {
	n.t.Helper()
	a := n.next()
	if a.GetAction() != hearthv1.AssignmentAction_ASSIGNMENT_ACTION_RELEASE {
		n.t.Fatalf("node %s was told %v", n.uid, a)
	}
	return a
}

func report(a *hearthv1.Assignment) *hearthv1.ReportAssignmentRequest {
	return &hearthv1.ReportAssignmentRequest{RunUid: a.GetRunUid(), Attempt: a.GetAttempt(), NodeUid: a.GetNodeUid()}
}

func started(a *hearthv1.Assignment) *hearthv1.ReportAssignmentRequest {
	r := report(a)
	r.Report = &hearthv1.ReportAssignmentRequest_Started{Started: &hearthv1.AssignmentStarted{}}
	return r
}

func ready(a *hearthv1.Assignment) *hearthv1.ReportAssignmentRequest {
	r := report(a)
	r.Report = &hearthv1.ReportAssignmentRequest_Ready{Ready: &hearthv1.AssignmentReady{SourceIdentity: "id"}}
	return r
}

func failed(a *hearthv1.Assignment, reason hearthv1.RunReason) *hearthv1.ReportAssignmentRequest {
	r := report(a)
	r.Report = &hearthv1.ReportAssignmentRequest_Failed{Failed: &hearthv1.AssignmentFailed{Reason: reason, Message: "told by the node"}}
	return r
}

func released(a *hearthv1.Assignment) *hearthv1.ReportAssignmentRequest {
	r := report(a)
	r.Report = &hearthv1.ReportAssignmentRequest_Released{Released: &hearthv1.AssignmentReleased{}}
	return r
}

func (h *house) report(req *hearthv1.ReportAssignmentRequest) {
	h.t.Helper()
	if _, err := h.nodes.ReportAssignment(h.ctx, req); err != nil {
		h.t.Fatalf("report %v: %v", req, err)
	}
}

// refused checks code and reason of an error.
func refused(t testing.TB, what string, err error, code connect.Code, reason string) {
	t.Helper()
	if connect.CodeOf(err) != code || edge.Reason(err) != reason {
		t.Errorf("%s: %v, reason %q; want %v, %s", what, err, edge.Reason(err), code, reason)
	}
}
