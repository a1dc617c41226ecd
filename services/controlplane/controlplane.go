// Package controlplane owns Runs, nodes and their leases: what shall run, where, and
// how it fared.
//
// The way of a change: api (what the wire says) → ledger (one owner, one
// transaction a turn) → lifecycle and nodes (pure machines that judge) → store (one
// bbolt file) → journal and subscriptions (what watches see).
package controlplane

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"connectrpc.com/connect/v2"

	"github.com/hearth-run/hearth/services/controlplane/internal/api"
	"github.com/hearth-run/hearth/services/controlplane/internal/archive"
	"github.com/hearth-run/hearth/services/controlplane/internal/ledger"
	"github.com/hearth-run/hearth/services/controlplane/internal/nodes"
	"github.com/hearth-run/hearth/services/controlplane/internal/store"
)

// Deps are what the service needs from others: it calls nobody.
type Deps struct {
	// Log takes what the service has to say; nil: nothing is said.
	Log *slog.Logger
}

// Service is the control plane. Any number can live in one process, each with a
// folder of its own.
type Service struct {
	cfg Config
	log *slog.Logger
	api *api.Server
}

// New checks the settings and starts nothing.
func New(cfg Config, deps Deps) (*Service, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if deps.Log == nil {
		deps.Log = slog.New(slog.DiscardHandler)
	}
	return &Service{cfg: cfg, log: deps.Log, api: api.New(api.Terms{Lease: cfg.Lease})}, nil
}

// Register adds RunService, NodeService and RouteService to a dispatcher. Calls
// that come before Run has read the store wait for it.
func (s *Service) Register(rpc *connect.Server) { s.api.Register(rpc) }

// Ready says why the service does not answer yet, nil if it does.
func (s *Service) Ready() error { return s.api.Ready() }

// Run opens the store and serves until ctx is done; once it has returned, nothing
// of the service runs and the store is closed. It is called once.
// Errors: the store cannot be opened or read.
func (s *Service) Run(ctx context.Context) error {
	h, err := s.open()
	if err != nil {
		s.api.Fail()
		return err
	}
	s.api.Open(h.book, h.shelf)
	collected := make(chan struct{})
	go func() {
		defer close(collected)
		s.collect(ctx, h)
	}()
	err = h.book.Run(ctx)
	<-collected
	return errors.Join(err, h.store.Close())
}

// holdings are what the service keeps on disk, and the ledger over it.
type holdings struct {
	store *store.Store
	shelf *archive.Shelf
	book  *ledger.Ledger
}

func (s *Service) open() (*holdings, error) {
	if err := os.MkdirAll(s.cfg.Data, 0o700); err != nil {
		return nil, fmt.Errorf("make data folder: %w", err)
	}
	st, err := store.Open(store.Options{Path: filepath.Join(s.cfg.Data, "runs.db"), NoSync: s.cfg.NoSync})
	if err != nil {
		return nil, err
	}
	// The store's lock is ours: the archives beside it are too.
	shelf, err := archive.Open(filepath.Join(s.cfg.Data, "archives"), s.cfg.KeepArchives, !s.cfg.NoSync)
	if err != nil {
		return nil, errors.Join(err, st.Close())
	}
	book, err := ledger.Open(ledger.Config{
		Terms:   nodes.Terms{Lease: s.cfg.Lease, Margin: s.cfg.LeaseMargin, Keep: s.cfg.KeepLostNodes},
		History: s.cfg.WatchHistory, Jitter: rand.Float64,
	}, s.log, st)
	if err != nil {
		return nil, errors.Join(err, st.Close())
	}
	return &holdings{store: st, shelf: shelf, book: book}, nil
}

// collect removes archives that nobody names, a few times in the span for which
// they are kept.
func (s *Service) collect(ctx context.Context, h *holdings) {
	clock := time.NewTicker(s.cfg.KeepArchives / 4)
	defer clock.Stop()
	for {
		select {
		case <-clock.C:
		case <-ctx.Done():
			return
		}
		removed, err := h.shelf.Collect(h.book.Names)
		if err != nil {
			s.log.Error("archives not collected", "err", err)
		}
		if removed > 0 {
			s.log.Info("archives collected", "removed", removed)
		}
	}
}
