package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/hearth-run/hearth/gen/hearth/v1/hearthv1connect"
	"github.com/hearth-run/hearth/services/runtimed/internal/clock"
	"github.com/hearth-run/hearth/services/runtimed/internal/desk"
	"github.com/hearth-run/hearth/services/runtimed/internal/ledger"
	"github.com/hearth-run/hearth/services/runtimed/internal/source"
	"github.com/hearth-run/hearth/services/runtimed/internal/upstream"
)

// Config says who the node is and how patient.
type Config struct {
	Name, Runtime, Version string
	// Address is asked at each registration: a listener may have chosen its port.
	Address  func() string
	Capacity int32
	// Data is the ledger's folder.
	Data string
	// StatusInterval is between two polls of one registration, HealthInterval
	// between two handshakes.
	StatusInterval, HealthInterval time.Duration
	// Patience: see upstream.Server.
	Patience time.Duration
	// Call bounds one call of the control plane, Release one cleaning of an
	// attempt, Drain the end of the whole node.
	Call, Release, Drain time.Duration
}

// Node is one runtimed.
type Node struct {
	cfg     Config
	control hearthv1connect.NodeServiceClient
	server  *upstream.Server
	sources *source.Preparer
	desk    *desk.Desk
	clock   clock.Clock
	log     *slog.Logger

	// ledger is set by Run before anything else starts.
	ledger *ledger.Ledger
	// holding counts attempts, for the cadence of polls.
	holding atomic.Int64

	support atomic.Pointer[upstream.Support]
	// told is what the control plane knows of it.
	told atomic.Pointer[upstream.Support]
	// shaken is closed after the first handshake that was answered: from then on the
	// ledger knows everything that is executed for this node. changed holds
	// one token when the support has changed, back when the Runtime Server came back.
	shaken        chan struct{}
	changed, back chan struct{}
}

// New returns a node that has not started.
func New(cfg Config, control hearthv1connect.NodeServiceClient, server *upstream.Server, sources *source.Preparer, d *desk.Desk, c clock.Clock, log *slog.Logger) *Node {
	n := &Node{
		cfg: cfg, control: control, server: server, sources: sources, desk: d, clock: c, log: log,
		shaken: make(chan struct{}), changed: make(chan struct{}, 1), back: make(chan struct{}, 1),
	}
	n.support.Store(&upstream.Support{})
	n.told.Store(&upstream.Support{})
	return n
}

// Able says whether the control plane knows of anything that the node's Runtime
// Server supports, and so places Runs on it.
func (n *Node) Able() bool { return *n.told.Load() != upstream.Support{} }

// Run serves until ctx is done, then drains in bounded time.
// Errors: the ledger's (another process holds it), and a registration that the
// control plane refuses for good.
func (n *Node) Run(ctx context.Context) (err error) {
	l, predecessor, err := ledger.Open(n.cfg.Data)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	n.ledger = l
	if err := n.sources.Sweep(); err != nil {
		n.log.Warn("sweep workspace", "cause", err)
	}
	watch, stop := context.WithCancel(context.WithoutCancel(ctx))
	var children sync.WaitGroup
	children.Go(func() { n.monitor(watch) })
	defer children.Wait()
	defer stop()
	for ctx.Err() == nil {
		s := newSession(n, ulid.Make().String(), predecessor)
		if err := s.run(ctx); err != nil {
			return fmt.Errorf("node %s: %w", n.cfg.Name, err)
		}
		if s.registered {
			predecessor = s.uid
		}
	}
	return nil
}

// How soon a handshake that was not answered is repeated: at once while both are
// starting, later while the Runtime Server is away.
const (
	firstRepeat = 10 * time.Millisecond
	lastRepeat  = 500 * time.Millisecond
)

// monitor shakes hands with the Runtime Server, again and again.
func (n *Node) monitor(ctx context.Context) {
	var first sync.Once
	var endings sync.WaitGroup
	defer endings.Wait()
	down, again := true, firstRepeat
	for ctx.Err() == nil {
		support, err := n.greet(ctx, down, &endings)
		if ctx.Err() != nil {
			return
		}
		wait := n.cfg.HealthInterval
		n.heard(support, err, &down)
		if err != nil {
			wait = min(wait, again)
			again = min(2*again, lastRepeat)
		} else {
			again = firstRepeat
			first.Do(func() { close(n.shaken) })
		}
		if upstream.Pause(ctx, wait) != nil {
			return
		}
	}
}

// greet shakes hands, and recovers what there is where the Runtime Server was away.
func (n *Node) greet(ctx context.Context, away bool, endings *sync.WaitGroup) (upstream.Support, error) {
	support, err := n.server.Handshake(ctx)
	if err == nil && away {
		err = n.recover(ctx, endings)
	}
	if err != nil {
		return upstream.Support{}, err
	}
	return support, nil
}

// heard takes over what a handshake found.
func (n *Node) heard(support upstream.Support, err error, down *bool) {
	if err == nil && *down {
		token(n.back)
	}
	*down = err != nil
	if before := n.support.Swap(&support); *before != support {
		n.log.Info("runtime server", "functions", support.Functions, "tasks", support.Tasks, "cause", err)
		token(n.changed)
	}
}

// token leaves one token in a channel that may have one already.
func token(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
