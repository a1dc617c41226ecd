// Package cluster owns a router's state while it runs: one lock around the
// placement and the session machine, the calls in flight, and who waits for
// what. Handlers and the watch over the workers meet here and nowhere else; what
// the machines decide is carried out here, and logged once.
package cluster

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/hearth-run/hearth/services/router/internal/placement"
	"github.com/hearth-run/hearth/services/router/internal/sessions"
	"github.com/hearth-run/hearth/services/router/internal/warmth"
)

// What a call can come to before a worker has answered.
var (
	// ErrInFlight: a call of this id is in flight.
	ErrInFlight = errors.New("request is in flight")
	// ErrSessionWait: the session's turn did not come in time.
	ErrSessionWait = errors.New("session wait is over")
	// ErrQueueFull: too many calls wait for room.
	ErrQueueFull = errors.New("queue is full")
	// ErrWorkerLost is the cause with which the calls of a lost worker end.
	ErrWorkerLost = errors.New("worker is lost")
)

// Config bounds the waits.
type Config struct {
	// SessionWait is how long a call waits for its session's turn.
	SessionWait time.Duration
	// QueueWait is how long a call waits for room; 0: not at all.
	QueueWait time.Duration
	// PrepareWait is how long a call waits for a worker that is being prepared, where
	// none is ready; 0: not at all.
	PrepareWait time.Duration
	// GatherWait is how long after the start calls wait for a first worker, which may
	// not have found this router yet; 0: not at all.
	GatherWait time.Duration
	// QueueMax is how many calls may wait for room.
	QueueMax  int
	Placement placement.Config
	Sessions  sessions.Config
}

// Cluster is the state. Safe for concurrent use.
type Cluster struct {
	cfg    Config
	forget func(uri string)
	log    *slog.Logger

	mu        sync.Mutex // guards all below
	placement *placement.Machine
	sessions  *sessions.Machine
	warmth    *warmth.Table
	starts    map[string]map[string]int64 // by worker, as it counts them
	calls     map[string]*Call
	holders   map[placement.Reservation]*Call
	queue     []*Call // for room, in order of arrival
	met       bool    // a worker has registered
	born      time.Time
}

// Call is one execution from its arrival to its end.
type Call struct {
	id, session string
	imports     []string
	cancel      context.CancelCauseFunc
	turn        chan sessions.Effect     // gets one, when the turn comes or never will
	room        chan placement.Placement // gets one, when a queued call was placed

	// Guarded by Cluster.mu.
	request placement.Request
	held    placement.Reservation
}

// New returns a cluster without workers. forget hears of every address that is
// not used any more; it must not call back.
func New(cfg Config, forget func(uri string), log *slog.Logger) *Cluster {
	return &Cluster{
		cfg: cfg, forget: forget, log: log,
		placement: placement.New(cfg.Placement), sessions: sessions.New(cfg.Sessions),
		warmth: warmth.New(), starts: map[string]map[string]int64{}, born: time.Now(),
		calls: map[string]*Call{}, holders: map[placement.Reservation]*Call{},
	}
}

// Enter makes a call known; Leave ends that. cancel ends the call from here when
// its worker is lost. Errors: ErrInFlight.
func (c *Cluster) Enter(id, session string, imports []string, cancel context.CancelCauseFunc) (*Call, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls[id] != nil {
		return nil, ErrInFlight
	}
	call := &Call{id: id, session: session, imports: imports, cancel: cancel, turn: make(chan sessions.Effect, 1), room: make(chan placement.Placement, 1)}
	c.calls[id] = call
	return call, nil
}

// Leave ends a call that holds nothing any more, and passes its session's turn on.
func (c *Cluster) Leave(call *Call, outcome sessions.Outcome) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.calls, call.id)
	if call.session != "" {
		c.tell(c.sessions.Done(time.Now(), call.session, call.id, outcome))
		if outcome == sessions.Failed {
			c.log.Info("session expired", "session_id", call.session, "request_id", call.id, "cause", "a call of it failed")
		}
	}
}

// Turn waits until the call's session lets it run, and returns the container to
// go to, if the session has one. Errors: sessions.ErrExpired, ErrSessionWait,
// ctx's cause.
func (c *Cluster) Turn(ctx context.Context, call *Call) (sessions.Pin, error) {
	if call.session == "" {
		return sessions.Pin{}, nil
	}
	c.mu.Lock()
	effects, err := c.sessions.Call(time.Now(), call.session, call.id)
	c.tell(effects)
	c.mu.Unlock()
	if err != nil {
		return sessions.Pin{}, err
	}
	timer := time.NewTimer(c.cfg.SessionWait)
	defer timer.Stop()
	select {
	case e := <-call.turn:
		return e.Pin, e.Err
	case <-timer.C:
		err = ErrSessionWait
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	c.mu.Lock()
	waited := c.sessions.Leave(call.session, call.id)
	c.mu.Unlock()
	if !waited {
		// The turn came at the same moment. Leave passes it on.
		if e := <-call.turn; e.Err != nil {
			return sessions.Pin{}, e.Err
		}
	}
	return sessions.Pin{}, err
}

// tell hands turns and refusals to the calls that wait for them. c.mu is held.
func (c *Cluster) tell(effects []sessions.Effect) {
	for _, e := range effects {
		if call := c.calls[e.Call]; call != nil {
			call.turn <- e // one at most in a call's life
		}
	}
}

// Place chooses a worker and reserves it for the call; Vacate gives it back. When
// nobody has room, or a worker is being prepared, the call waits as long as the
// settings allow. Errors: those of
// placement.Machine.Place, ErrQueueFull, ctx's cause.
func (c *Cluster) Place(ctx context.Context, call *Call, r placement.Request) (placement.Placement, error) {
	c.mu.Lock()
	p, err := c.place(call, r)
	came := time.Now()
	wait := c.patience(err, came)
	if wait <= 0 {
		c.mu.Unlock()
		return p, err
	}
	if len(c.queue) >= c.cfg.QueueMax {
		c.mu.Unlock()
		return p, ErrQueueFull
	}
	// It is looked at again when something has changed, and so may be the minds of
	// those who have refused it.
	call.request, call.request.Without = r, nil
	c.queue = append(c.queue, call)
	c.mu.Unlock()
	return c.await(ctx, call, came, wait)
}

// patience is how much longer a call that waits since it came, and was refused so,
// waits for another answer.
func (c *Cluster) patience(refused error, came time.Time) time.Duration {
	switch {
	case errors.Is(refused, placement.ErrNoneFits):
		return c.cfg.QueueWait - time.Since(came)
	case errors.Is(refused, placement.ErrPreparing):
		return c.cfg.PrepareWait - time.Since(came)
	case errors.Is(refused, placement.ErrNoWorker) && !c.met:
		return c.cfg.GatherWait - time.Since(c.born)
	}
	return 0
}

func (c *Cluster) place(call *Call, r placement.Request) (placement.Placement, error) {
	if r.Container == "" && !r.Cold {
		r.Warm = c.warmth.Best(call.imports)
	}
	p, err := c.placement.Place(time.Now(), r)
	if err == nil {
		call.held = p.Reservation
		c.holders[p.Reservation] = call
	}
	return p, err
}

func (c *Cluster) await(ctx context.Context, call *Call, came time.Time, wait time.Duration) (placement.Placement, error) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		select {
		case p := <-call.room:
			return p, nil
		case <-timer.C:
			placed, more, err := c.again(call, came)
			if more <= 0 {
				return placed, err
			}
			timer.Reset(more)
		case <-ctx.Done():
			if c.leaveQueue(call) {
				return placement.Placement{}, context.Cause(ctx)
			}
			return <-call.room, nil // placed at the same moment
		}
	}
}

// again says at the end of a call's patience what it is to be told, or how much
// longer it waits: what it waits for may have become another thing meanwhile, as
// when the first worker has come and is being prepared.
func (c *Cluster) again(call *Call, came time.Time) (placement.Placement, time.Duration, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Contains(c.queue, call) {
		return <-call.room, 0, nil // placed at the same moment
	}
	p, err := c.place(call, call.request)
	more := c.patience(err, came)
	if err == nil || more <= 0 {
		c.queue = slices.DeleteFunc(c.queue, func(q *Call) bool { return q == call })
	}
	return p, more, err
}

// leaveQueue says whether the call was still waiting.
func (c *Cluster) leaveQueue(call *Call) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := len(c.queue)
	c.queue = slices.DeleteFunc(c.queue, func(q *Call) bool { return q == call })
	return len(c.queue) < before
}

// admit gives what has become free to those who wait, first come, first served;
// one that does not fit yet keeps its place and does not hold up the others.
// c.mu is held.
func (c *Cluster) admit() {
	if len(c.queue) == 0 {
		return
	}
	left := c.queue[:0]
	for _, call := range c.queue {
		p, err := c.place(call, call.request)
		if err != nil {
			left = append(left, call)
			continue
		}
		call.room <- p
	}
	clear(c.queue[len(left):])
	c.queue = left
}

// Vacate gives back what Place has reserved; a second time does nothing. keep
// says that the call's container lives on.
func (c *Cluster) Vacate(call *Call, keep bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.holders, call.held)
	if c.placement.Release(call.held, keep) {
		c.admit()
	}
}

// Answered learns from the first answer where the call runs. It comes before the
// worker's own report as often as after it.
func (c *Cluster) Answered(call *Call, worker, container, checkpoint string) {
	if container == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	said := placement.Container{ID: container, Worker: worker, Session: call.session, Checkpoint: checkpoint, State: placement.Busy}
	if _, err := c.placement.Container(time.Now(), said, call.held); err != nil {
		return // the worker was lost meanwhile; the call hears of it
	}
	if call.session != "" {
		c.tell(c.sessions.Pin(time.Now(), call.session, sessions.Pin{Worker: worker, Container: container, Checkpoint: checkpoint}))
	}
}

// Warm says whether any worker holds a zygote of this id.
func (c *Cluster) Warm(checkpoint string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.warmth.Known(checkpoint)
}

// Holds says whether a worker may be told to start from a checkpoint.
func (c *Cluster) Holds(worker string) func(checkpoint string) bool {
	return func(checkpoint string) bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.placement.Holds(worker, checkpoint)
	}
}
