package router

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"connectrpc.com/connect/v2"

	"github.com/hearth-run/hearth/gen/hearth/v1/hearthv1connect"
	"github.com/hearth-run/hearth/gen/serverless/serverlessconnect"
	"github.com/hearth-run/hearth/internal/kit/dial"
	"github.com/hearth-run/hearth/internal/kit/group"
	"github.com/hearth-run/hearth/services/router/internal/catalogue"
	"github.com/hearth-run/hearth/services/router/internal/cluster"
	"github.com/hearth-run/hearth/services/router/internal/placement"
	"github.com/hearth-run/hearth/services/router/internal/sessions"
	"github.com/hearth-run/hearth/services/router/internal/workers"
)

// Workers is how the router reaches workers, which it knows by uri only.
type Workers interface {
	// Client returns a client for executions. Errors: the uri is none.
	Client(uri string) (serverlessconnect.ExecutionServiceClient, error)
	// Zygotes returns a client for the zygotes of the worker at uri. Errors: as Client.
	Zygotes(uri string) (hearthv1connect.ZygoteServiceClient, error)
	// Check probes the worker. Errors: it does not answer, or says that it does not serve.
	Check(ctx context.Context, uri string) error
	// Forget releases what was kept for a worker that is gone.
	Forget(uri string)
}

// Deps are what the service needs from others.
type Deps struct {
	// Log takes what the service has to say; nil: nothing is said.
	Log *slog.Logger
	// Dialer reaches the workers, at the addresses that they report.
	Dialer *dial.Dialer
	// Workers takes the dialer's place; for tests.
	Workers Workers
}

// Service is a router. Any number can live in one process.
type Service struct {
	cfg        Config
	log        *slog.Logger
	workers    Workers
	cluster    *cluster.Cluster
	catalogues *catalogue.Store
	counters   counters
	life       context.Context // ends with Run
	end        context.CancelCauseFunc
	readers    sync.WaitGroup // of clients' bodies; Run waits for them
	gate       sync.Mutex     // guards closed
	closed     bool           // no reader is started any more
}

// New checks the settings, reads the catalogues and starts nothing. Errors: a
// field of cfg, a catalogue that is broken.
func New(cfg Config, deps Deps) (*Service, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if deps.Log == nil {
		deps.Log = slog.New(slog.DiscardHandler)
	}
	if deps.Workers == nil {
		if deps.Dialer == nil {
			deps.Dialer = dial.New(nil)
		}
		deps.Workers = workers.Dial(deps.Dialer)
	}
	store, err := catalogue.Open(cfg.CatalogueDir)
	if err != nil {
		return nil, err
	}
	s := &Service{cfg: cfg, log: deps.Log, workers: deps.Workers, catalogues: store}
	s.cluster = cluster.New(s.bounds(), deps.Workers.Forget, deps.Log)
	s.life, s.end = context.WithCancelCause(context.Background())
	return s, nil
}

func (s *Service) bounds() cluster.Config {
	return cluster.Config{
		SessionWait: s.cfg.SessionWait, QueueWait: s.cfg.QueueWait, PrepareWait: s.cfg.PrepareWait, GatherWait: s.cfg.GatherWait, QueueMax: s.cfg.QueueMax,
		Placement: placement.Config{Fill: s.cfg.Fill, Silence: s.cfg.Silence, Lease: 2 * s.cfg.ExecutionTimeout},
		Sessions:  sessions.Config{Tombstones: s.cfg.Tombstones, Age: s.cfg.TombstoneAge},
	}
}

// Register adds ProxyService, RegistryService, ExecutionAdminService and
// ZygoteService to a dispatcher.
func (s *Service) Register(rpc *connect.Server) {
	serverlessconnect.RegisterProxyServiceHandler(rpc, &proxy{s})
	serverlessconnect.RegisterRegistryServiceHandler(rpc, &registry{s})
	hearthv1connect.RegisterExecutionAdminServiceHandler(rpc, &admin{s})
	hearthv1connect.RegisterZygoteServiceHandler(rpc, &zygoteAdmin{s})
}

// Run watches over the workers until ctx is done; then it ends the calls that are
// left and returns when nothing of the service runs. It is called once.
func (s *Service) Run(ctx context.Context) error {
	prober := workers.Prober{
		Check: s.workers.Check, Targets: s.cluster.Targets, Evict: s.evict,
		Every: s.cfg.ProbeEvery, Timeout: s.cfg.ProbeTimeout, Failures: s.cfg.ProbeFailures, Log: s.log,
	}
	var g group.Group
	g.Add("calls", s.outlive)
	g.Add("catalogues", func(ctx context.Context) error { return s.catalogues.Run(ctx, s.reloaded) })
	g.Add("sweep", s.sweep)
	g.Add("probes", prober.Run)
	return g.Run(ctx)
}

// outlive ends every call when the service stops, and waits for their readers.
func (s *Service) outlive(ctx context.Context) error {
	<-ctx.Done()
	s.end(errStopping)
	s.gate.Lock()
	s.closed = true
	s.gate.Unlock()
	s.readers.Wait()
	return nil
}

func (s *Service) sweep(ctx context.Context) error {
	ticker := time.NewTicker(max(s.cfg.Silence/30, time.Millisecond))
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			s.cluster.Sweep()
		}
	}
}

func (s *Service) evict(worker, uri, cause string) {
	s.counters.evicted.Add(1)
	s.cluster.Evict(worker, uri, cause)
}

func (s *Service) reloaded(err error) {
	if err != nil {
		s.log.Error("catalogues not taken over; the earlier ones stand", "err", err)
		return
	}
	s.log.Info("catalogues read", "flavors", s.catalogues.Flavors())
}
