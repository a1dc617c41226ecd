package ledger

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/services/controlplane/internal/journal"
	"github.com/hearth-run/hearth/services/controlplane/internal/nodes"
	"github.com/hearth-run/hearth/services/controlplane/internal/placement"
	"github.com/hearth-run/hearth/services/controlplane/internal/record"
	"github.com/hearth-run/hearth/services/controlplane/internal/store"
)

// What a command may fail with, beside the errors of lifecycle and nodes.
var (
	ErrRunNotFound = errors.New("ledger: no such run")
	ErrRunExists   = errors.New("ledger: the name is taken")
	ErrNodeUnknown = errors.New("ledger: no such node")
	ErrNodeName    = errors.New("ledger: the node's uid belongs to another name")
	ErrPredecessor = errors.New("ledger: the predecessor has another name")
	ErrReport      = errors.New("ledger: the report does not fit the run's mode")
	ErrStoreFailed = errors.New("ledger: the store failed")
	ErrStopped     = errors.New("ledger: stopped")
)

// Config bounds the ledger.
type Config struct {
	Terms nodes.Terms
	// History is how many changes a watch may lag behind.
	History int
	// Jitter answers a number in [0, 1) for each backoff.
	Jitter func() float64
}

// Store is where the ledger's changes are made durable; store.Store in a service.
type Store interface {
	// Load reads what was committed.
	Load() (*store.Contents, error)
	// Commit writes all changes or none, durably.
	Commit(*store.Changes) error
	// Source returns the inline source of a Run, nil where there is none.
	Source(uid string) (*hearthv1.Source, error)
	// Streams returns what a task has written.
	Streams(uid string) (store.Streams, error)
}

// Ledger is safe for concurrent use.
type Ledger struct {
	cfg      Config
	log      *slog.Logger
	store    Store
	commands chan *command
	stopped  chan struct{}
	journal  *journal.Journal
	hub      hub

	mu   sync.RWMutex // guards view: written by the owner only, so the owner reads without it
	view view

	// Owner only.
	queue   *placement.Queue
	timers  *timers
	passing bool // the queue wants another pass
	paused  time.Time
}

// Open reads what the store holds. Leases are counted anew from now.
func Open(cfg Config, log *slog.Logger, st Store) (*Ledger, error) {
	contents, err := st.Load()
	if err != nil {
		return nil, err
	}
	l := &Ledger{
		cfg: cfg, log: log, store: st,
		commands: make(chan *command, turnCommands), stopped: make(chan struct{}),
		journal: journal.New(contents.Version, cfg.History), hub: newHub(),
		view: newView(contents.Version, contents.Seq), queue: placement.NewQueue(), timers: newTimers(),
	}
	l.restore(contents, time.Now())
	return l, nil
}

func (l *Ledger) restore(c *store.Contents, now time.Time) {
	for _, n := range c.Nodes {
		state, _, err := nodes.Apply(l.cfg.Terms, n.State, nodes.Recover, now)
		if err != nil {
			l.log.Warn("node not recovered", "node_uid", n.UID, "err", err)
		}
		n.State = state
		l.mergeNode(n.UID, n)
	}
	slices.SortFunc(c.Runs, func(a, b *record.Run) int { return cmp.Compare(a.Seq, b.Seq) })
	for _, r := range c.Runs {
		l.mergeRun(nil, r)
	}
	l.view.sort()
}

// command is one change that somebody wants; its fields but done belong to the
// owner until done is closed.
type command struct {
	do   func(*tx) error
	size int
	err  error
	done chan struct{}
}

// do has the owner apply a change and returns once it is durable. Where ctx ends
// before, the outcome is unknown.
// Errors: what apply returns, ErrStoreFailed, ErrStopped, ctx's.
func (l *Ledger) do(ctx context.Context, size int, apply func(*tx) error) error {
	c := &command{do: apply, size: size, done: make(chan struct{})}
	select {
	case l.commands <- c:
	case <-l.stopped:
		return ErrStopped
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-c.done:
		return c.err
	case <-l.stopped:
		select {
		case <-c.done:
			return c.err
		default:
			return ErrStopped
		}
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Run is the owner. It returns when ctx is done; commands that were not applied by
// then fail with ErrStopped.
func (l *Ledger) Run(ctx context.Context) error {
	defer close(l.stopped)
	clock := time.NewTimer(0)
	defer clock.Stop()
	l.passing = true
	l.turn([]*command{{do: orphans, done: make(chan struct{})}}, time.Now())
	for {
		batch, ok := l.gather(ctx, clock)
		if !ok {
			return nil
		}
		l.turn(batch, time.Now())
	}
}

// Stopped is closed once Run has returned.
func (l *Ledger) Stopped() <-chan struct{} { return l.stopped }

// gather waits for something to do and takes what has come in by then.
func (l *Ledger) gather(ctx context.Context, clock *time.Timer) (batch []*command, ok bool) {
	if ctx.Err() != nil {
		return nil, false
	}
	size := 0
	take := func(c *command) {
		batch = append(batch, c)
		size += c.size
	}
	if wait := l.idle(time.Now()); wait > 0 {
		clock.Reset(wait)
		select {
		case c := <-l.commands:
			take(c)
		case <-clock.C:
		case <-ctx.Done():
			return nil, false
		}
	}
	for len(batch) < turnCommands && size < turnBytes {
		select {
		case c := <-l.commands:
			take(c)
		default:
			return batch, true
		}
	}
	return batch, true
}

// idle is how long the owner has nothing to do by itself.
func (l *Ledger) idle(now time.Time) time.Duration {
	wait := time.Hour
	if at, ok := l.timers.next(); ok {
		wait = at.Sub(now)
	}
	if l.passing {
		wait = 0
	}
	return max(wait, l.paused.Sub(now))
}
