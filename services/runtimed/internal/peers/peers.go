// Package peers owns what a node knows of the others: which of them serves a Run
// that this one does not hold.
package peers

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"connectrpc.com/connect/v2"

	"github.com/hearth-run/hearth/gen/executor/v1/executorv1connect"
	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/gen/hearth/v1/hearthv1connect"
	"github.com/hearth-run/hearth/internal/kit/hop"
	"github.com/hearth-run/hearth/services/runtimed/internal/desk"
	"github.com/hearth-run/hearth/services/runtimed/internal/upstream"
)

// Dialer makes clients of peers.
type Dialer interface {
	// Client returns a client for an address.
	// Errors: an address that is none.
	Client(address string) (*connect.Client, error)
}

// Book is what is known of Runs that are ready somewhere. Safe for concurrent
// use.
type Book struct {
	routes hearthv1connect.RouteServiceClient
	dialer Dialer
	log    *slog.Logger

	mu      sync.RWMutex // guards the maps
	ready   map[string]*hearthv1.Route
	clients map[string]executorv1connect.FunctionRuntimeClient
}

// New returns a book that knows nothing.
func New(routes hearthv1connect.RouteServiceClient, dialer Dialer, log *slog.Logger) *Book {
	return &Book{
		routes: routes, dialer: dialer, log: log,
		ready: map[string]*hearthv1.Route{}, clients: map[string]executorv1connect.FunctionRuntimeClient{},
	}
}

// Find returns the peer that serves a Run.
func (b *Book) Find(runUID string) (desk.Peer, bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	r := b.ready[runUID]
	if r == nil || b.clients[r.GetAddress()] == nil {
		return desk.Peer{}, false
	}
	return desk.Peer{Fence: hop.Fence{Attempt: r.GetAttempt(), NodeUID: r.GetNodeUid()}, Client: b.clients[r.GetAddress()]}, true
}

// Run follows the routes until ctx is done. A node works without it: it then
// knows no peers.
func (b *Book) Run(ctx context.Context) {
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		heard, err := b.follow(ctx)
		if ctx.Err() != nil {
			return
		}
		if heard {
			wait = 100 * time.Millisecond
		}
		b.log.Debug("watch routes", "cause", err)
		if upstream.Pause(ctx, wait) != nil {
			return
		}
	}
}

func (b *Book) follow(ctx context.Context) (heard bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := b.routes.WatchRoutes(ctx, &hearthv1.WatchRoutesRequest{ReadyOnly: true})
	if err != nil {
		return false, err
	}
	defer stream.Close()
	// What a snapshot does not name is gone.
	seen := map[string]bool{}
	for {
		ev, err := stream.Receive()
		if err != nil {
			return heard, err
		}
		heard = true
		b.learn(ev, seen)
		if ev.GetSnapshotComplete() && seen != nil {
			b.keep(seen)
			seen = nil
		}
	}
}

// learn takes over one event. seen, while a snapshot comes in, notes its Runs.
func (b *Book) learn(ev *hearthv1.WatchRoutesResponse, seen map[string]bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range ev.GetRoutes() {
		if seen != nil {
			seen[r.GetRunUid()] = true
		}
		if r.GetPhase() != hearthv1.RunPhase_RUN_PHASE_READY || !r.GetFunction() {
			delete(b.ready, r.GetRunUid())
			continue
		}
		if err := b.dial(r.GetAddress()); err != nil {
			b.log.Warn("peer cannot be called", "run_uid", r.GetRunUid(), "node_uid", r.GetNodeUid(), "cause", err)
			continue
		}
		b.ready[r.GetRunUid()] = r
	}
	for _, uid := range ev.GetRemovedRunUids() {
		delete(b.ready, uid)
	}
}

func (b *Book) dial(address string) error {
	if b.clients[address] != nil {
		return nil
	}
	client, err := b.dialer.Client(address)
	if err != nil {
		return err
	}
	b.clients[address] = executorv1connect.NewFunctionRuntimeClient(client)
	return nil
}

// keep forgets every Run but those, and the clients that none of them needs.
func (b *Book) keep(seen map[string]bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	used := map[string]bool{}
	for uid, r := range b.ready {
		if !seen[uid] {
			delete(b.ready, uid)
			continue
		}
		used[r.GetAddress()] = true
	}
	for address := range b.clients {
		if !used[address] {
			delete(b.clients, address)
		}
	}
}
