package worker

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"

	"connectrpc.com/connect/v2"
	"github.com/oklog/ulid/v2"

	"github.com/hearth-run/hearth/gen/hearth/v1/hearthv1connect"
	"github.com/hearth-run/hearth/gen/serverless"
	"github.com/hearth-run/hearth/gen/serverless/serverlessconnect"
	"github.com/hearth-run/hearth/internal/kit/edge"
	"github.com/hearth-run/hearth/sandbox"
	"github.com/hearth-run/hearth/services/worker/internal/box"
	"github.com/hearth-run/hearth/services/worker/internal/container"
	"github.com/hearth-run/hearth/services/worker/internal/ledger"
	"github.com/hearth-run/hearth/services/worker/internal/packages"
	"github.com/hearth-run/hearth/services/worker/internal/reports"
	"github.com/hearth-run/hearth/services/worker/internal/zygotes"
)

// Worker runs executions in containers.
type Worker struct {
	cfg       Config
	life      string // new at every start, for the routers
	address   func() string
	log       *slog.Logger
	driver    sandbox.Driver
	reporters []*reports.Reporter
	load      *load
	stop      chan struct{} // closed when containers shall end
	ready     chan struct{} // closed once starter and cache are there

	starter *starter
	cache   *packages.Cache
	zygotes *zygotes.Zygotes // nil: every start is cold
	starts  starts

	owners sync.WaitGroup // the goroutines of boxes

	mu      sync.Mutex // guards what follows
	ledger  *ledger.Ledger
	boxes   map[string]*entry
	flights map[string]bool
	// freed is closed, and made anew, when a container has given its place back.
	freed    chan struct{}
	stopping bool
	// drained is made while the worker waits for its calls, closed by the last.
	drained chan struct{}
	// prepared says that ready is closed, or about to be.
	prepared bool
	broken   error // why the worker cannot start containers
}

// entry is a box and what ends with it.
type entry struct {
	box      *box.Box
	status   *serverless.ExecutorStatus
	releases []func()
	// leaving says that its call is over and it is being taken down.
	leaving bool
	// stuck says that it cannot be taken down.
	stuck bool
	// over says whether the call that holds it was given up; nil between calls.
	over func() error
	// reported says that routers are told of it.
	reported bool
}

// left says that the container is being taken down, or will be as soon as its call
// has seen that nobody waits for it.
func (e *entry) left() bool { return !e.stuck && (e.leaving || e.over != nil && e.over() != nil) }

// New checks the settings and starts nothing.
func New(cfg Config, deps Deps) (*Worker, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if deps.Driver == nil || deps.Log == nil {
		return nil, errors.New("worker: a driver and a logger are needed")
	}
	w := &Worker{
		cfg: cfg, life: ulid.Make().String(), address: deps.Address, log: deps.Log.With("worker_id", cfg.ID), driver: deps.Driver, load: newLoad(),
		stop: make(chan struct{}), ready: make(chan struct{}),
		ledger: ledger.New(ledger.Capacity{Memory: cfg.Memory, GPUMemory: cfg.GPUMemory, MaxContainers: cfg.MaxContainers}),
		boxes:  map[string]*entry{}, flights: map[string]bool{}, freed: make(chan struct{}),
	}
	if cfg.Address == "" && deps.Address == nil {
		return nil, errors.New("worker: an address is needed, in its settings or from its listener")
	}
	for _, router := range deps.Routers {
		w.reporters = append(w.reporters, reports.New(router, w, cfg.UtilizationInterval, w.log))
	}
	return w, nil
}

// Register adds ExecutionService and ZygoteService to a dispatcher.
func (w *Worker) Register(server *connect.Server) {
	hearthv1connect.RegisterZygoteServiceHandler(server, zygoteAdmin{w})
	serverlessconnect.RegisterExecutionServiceHandler(server, service{w})
}

// Prepared is closed once the worker has done what its first start needs, whether
// it can start containers now (Ready) or not.
func (w *Worker) Prepared() <-chan struct{} { return w.ready }

// Ready says why the worker cannot take calls yet, nil if it can.
func (w *Worker) Ready() error {
	select {
	case <-w.ready:
	default:
		return errNotReady
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopping {
		return errStopping
	}
	return w.broken
}

// enter admits a request; leave ends it.
func (w *Worker) enter(request string) (leave func(), err error) {
	if err := w.Ready(); err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.flights[request] {
		return nil, edge.Publicf(errInFlight, "request_id %q is in flight; choose another, or wait for its end", request)
	}
	w.flights[request] = true
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.flights, request)
		if w.drained != nil && len(w.flights) == 0 {
			close(w.drained)
			w.drained = nil
		}
	}, nil
}

func (w *Worker) grow(id string) (int64, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ledger.Grow(id)
}

func (w *Worker) twice(d ledger.Demand) (ledger.Demand, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ledger.Twice(d)
}

func (w *Worker) reserved(id string) ledger.Demand {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ledger.Held(id)
}

// install installs requirements and says which top-level modules they bring; they
// stay until release.
func (w *Worker) install(ctx context.Context, requirements []string) (modules []string, release func(), err error) {
	if len(requirements) == 0 {
		return nil, func() {}, nil
	}
	folder, release, err := w.cache.Acquire(ctx, requirements)
	if err != nil {
		return nil, nil, err
	}
	modules, err = packages.Modules(folder)
	if err != nil {
		release()
		return nil, nil, err
	}
	return modules, release, nil
}

// fetch installs requirements and keeps them for as long as the container lives,
// since a module may import more at any time. It returns where they are inside.
func (w *Worker) fetch(ctx context.Context, b *box.Box, requirements []string) ([]string, error) {
	folder, release, err := w.cache.Acquire(ctx, requirements)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	e := w.boxes[b.ID]
	if e == nil {
		release()
		return nil, box.ErrGone
	}
	e.releases = append(e.releases, release)
	return []string{filepath.Join(insidePackages, filepath.Base(folder))}, nil
}

// budgets are what a container runs with now, growth included.
func (w *Worker) budgets(b *box.Box, h *serverless.WorkerExecutionRequest) []*serverless.ResourceBudget {
	held := w.reserved(b.ID)
	out := []*serverless.ResourceBudget{{Kind: serverless.ResourceKind_RESOURCE_KIND_MEMORY, Alloc: held.Memory, Max: held.MaxMemory}}
	for _, budget := range h.GetBudgets() {
		if budget.GetKind() != serverless.ResourceKind_RESOURCE_KIND_MEMORY {
			out = append(out, budget)
		}
	}
	return out
}

var statuses = map[container.Effect]serverless.Status{
	container.ReportBusy:    serverless.Status_STATUS_BUSY,
	container.ReportReady:   serverless.Status_STATUS_READY,
	container.ReportRemoved: serverless.Status_STATUS_REMOVED,
	container.ReportError:   serverless.Status_STATUS_ERROR,
}

// report queues a container's state for every router.
func (w *Worker) report(id string, r box.Report) {
	w.mu.Lock()
	status := &serverless.ExecutorStatus{
		ContainerId: id, WorkerId: w.cfg.ID, RequestId: r.Request, SessionId: r.Session,
		CheckpointId: r.Checkpoint, Status: statuses[r.Effect],
	}
	if e := w.boxes[id]; e != nil {
		e.status, e.reported = status, true
	}
	w.mu.Unlock()
	for _, reporter := range w.reporters {
		reporter.Post(status)
	}
}
