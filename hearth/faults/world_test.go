package faults

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect/v2"

	"github.com/hearth-run/hearth/adapters/runtimeserver"
	"github.com/hearth-run/hearth/gen/executor/v1/executorv1connect"
	"github.com/hearth-run/hearth/gen/hearth/v1/hearthv1connect"
	"github.com/hearth-run/hearth/internal/kit/serve"
	"github.com/hearth-run/hearth/services/controlplane"
	"github.com/hearth-run/hearth/services/gateway"
	"github.com/hearth-run/hearth/services/runtimed"
)

// nodeNames are the two nodes; each has a Runtime Server of its own.
var nodeNames = []string{"a", "b"}

// world is one control plane, one gateway, two nodes, two Runtime Servers and the
// links between them.
type world struct {
	t       *testing.T
	log     *slog.Logger
	folder  string
	random  *rand.Rand
	net     *network
	witness *witness
	model   *model
	procs   map[string]*process
	// stops end a process's present life and wait for it.
	stops map[string]func()
	// user is where the calls of the test come from; it never dies.
	user *process
	runs hearthv1connect.RunServiceClient
	node hearthv1connect.NodeServiceClient
	gate hearthv1connect.InvokeServiceClient

	calls sync.WaitGroup // the test's own calls under way
	queue chan struct{}  // bounds them
}

func newWorld(t *testing.T, seed uint64, plant *plant) *world {
	random := rand.New(rand.NewPCG(seed, 1))
	locked := &lockedRand{rand: rand.New(rand.NewPCG(seed, 2))}
	w := &world{
		t: t, log: slog.New(slog.DiscardHandler), folder: t.TempDir(), random: random,
		net:     &network{cut: map[string]bool{}, lossy: map[string]bool{}, draw: locked.IntN, plant: plant, live: map[*stream]string{}},
		witness: newWitness(rand.New(rand.NewPCG(seed, 3))),
		procs:   map[string]*process{}, stops: map[string]func(){}, queue: make(chan struct{}, 8),
	}
	w.net.witness = w.witness
	w.model = newModel(w.witness)
	for _, name := range []string{"user", "control", "gateway", "node-a", "node-b", "runtime-a", "runtime-b"} {
		w.procs[name] = &process{name: name}
	}
	w.user = w.procs["user"]
	w.user.begin()
	w.user.open(connect.NewServer())
	w.runs = hearthv1connect.NewRunServiceClient(w.client("user", "control"))
	w.node = hearthv1connect.NewNodeServiceClient(w.client("user", "control"))
	w.gate = hearthv1connect.NewInvokeServiceClient(w.client("user", "gateway"))
	w.start("control")
	for _, n := range nodeNames {
		w.start("runtime-" + n)
		w.start("node-" + n)
	}
	w.start("gateway")
	return w
}

type lockedRand struct {
	mu   sync.Mutex
	rand *rand.Rand
}

func (l *lockedRand) IntN(n int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rand.IntN(n)
}

// client returns a client for the present life of from.
func (w *world) client(from, to string) *connect.Client {
	_, owner, _ := w.procs[from].now()
	if owner == nil {
		owner = context.Background()
	}
	return (&link{from: w.procs[from], to: w.procs[to], owner: owner, net: w.net}).client()
}

// dialer makes clients of nodes for one life of a process.
type dialer struct {
	world *world
	from  string
	owner context.Context
}

func (d dialer) Client(address string) (*connect.Client, error) {
	to, ok := d.world.procs[strings.TrimPrefix(address, "inprocess:")]
	if !ok {
		return nil, fmt.Errorf("no process at %s", address)
	}
	return (&link{from: d.world.procs[d.from], to: to, owner: d.owner, net: d.world.net}).client(), nil
}

func (dialer) Forget(string) {}

// service is what every part of the world is.
type service interface {
	Register(*connect.Server)
	Run(context.Context) error
}

// start begins a life of a process that is dead.
func (w *world) start(name string) {
	if server, _, _ := w.procs[name].now(); server != nil {
		return
	}
	rpc, err := serve.NewConnect(w.log)
	if err != nil {
		w.t.Fatal(err)
	}
	// The life begins before the service is made: its clients belong to it.
	w.procs[name].begin()
	s := w.build(name)
	s.Register(rpc)
	w.procs[name].open(rpc)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	w.stops[name] = func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Errorf("%s: %v", name, err)
		}
	}
}

func (w *world) build(name string) service {
	var s service
	var err error
	kind, which, _ := strings.Cut(name, "-")
	switch kind {
	case "control":
		cfg := controlplane.Default()
		cfg.Data, cfg.NoSync, cfg.WatchHistory = filepath.Join(w.folder, "control"), true, 64
		s, err = controlplane.New(cfg, controlplane.Deps{Log: w.log})
	case "runtime":
		cfg := runtimeserver.Default(filepath.Join(w.folder, "workspace-"+which))
		cfg.NoCgroup = true
		s, err = runtimeserver.New(cfg, runtimeserver.Deps{Log: w.log, Language: language{w.witness, fmt.Sprintf("%s#%d", name, w.procs[name].life)}})
	case "node":
		s, err = w.buildNode(name, which)
	case "gateway":
		_, owner, _ := w.procs[name].now()
		s, err = gateway.New(gateway.Default(), gateway.Deps{
			Log: w.log, Routes: hearthv1connect.NewRouteServiceClient(w.client(name, "control")), Nodes: dialer{w, name, owner},
		})
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

func (w *world) buildNode(name, which string) (service, error) {
	_, owner, _ := w.procs[name].now()
	cfg := runtimed.Default()
	cfg.Name, cfg.Runtime, cfg.Advertise, cfg.Capacity = name, "fake", "inprocess:"+name, 8
	cfg.Workspace, cfg.Data = filepath.Join(w.folder, "workspace-"+which), filepath.Join(w.folder, "data-"+which)
	runtime := w.client(name, "runtime-"+which)
	control := w.client(name, "control")
	began := time.Now()
	return runtimed.New(cfg, runtimed.Deps{
		Log: w.log, Nodes: hearthv1connect.NewNodeServiceClient(control),
		Functions: executorv1connect.NewFunctionRuntimeClient(runtime), Runtime: executorv1connect.NewRuntimeClient(runtime),
		Routes: hearthv1connect.NewRouteServiceClient(control), Peers: dialer{w, name, owner},
		Clock: func() time.Duration { return time.Since(began) },
	})
}

// kill ends a process at once; nothing that it still does is seen by anybody.
func (w *world) kill(name string) {
	if server, _, _ := w.procs[name].now(); server == nil {
		return
	}
	w.procs[name].kill()
	w.stops[name]()
	delete(w.stops, name)
}

// close ends the world.
func (w *world) close() {
	w.calls.Wait()
	for _, name := range []string{"gateway", "node-a", "node-b", "runtime-a", "runtime-b", "control"} {
		w.kill(name)
	}
	w.user.kill()
}
