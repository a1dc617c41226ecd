package box

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/hearth-run/hearth/sandbox"
	"github.com/hearth-run/hearth/services/worker/internal/container"
)

// ErrGone says that the container is not there any more, or not for this caller.
var ErrGone = errors.New("container is gone")

// Report is what is told of a container after a transition.
type Report struct {
	Effect container.Effect
	// Request is the call that holds or held it.
	Request string
	// Session and Checkpoint are as in Config and Running.
	Session, Checkpoint string
}

// Config says what a box is and whom it tells.
type Config struct {
	ID string
	// Session is the one that it serves; empty: one call.
	Session string
	// Start makes the container run and connects its executor. When it fails it has
	// left nothing behind.
	Start func(context.Context) (Running, error)
	// IdleTimeout ends it when its session does not call.
	IdleTimeout time.Duration
	// Grow is asked for a new memory limit when it is nearly out of memory; false:
	// there is none.
	Grow func() (int64, bool)
	// Report is told of each state; it must not block.
	Report func(Report)
	// Released is called once, when nothing of the container is left; Stuck instead
	// where something of it does not end.
	Released, Stuck func()
}

// Running is a container whose executor answers.
type Running struct {
	Walls    sandbox.Container
	Executor *Executor
	// Checkpoint is what it was started from in fact; "" is cold.
	Checkpoint string
	// Ahead says that it stood ready before the call came.
	Ahead bool
	// Loaded are the top-level modules that it began with; nil: none but the
	// executor's own.
	Loaded map[string]bool
	// Steps are where the time of its start went.
	Steps []Step
}

// Step is a part of a call's way.
type Step struct {
	Name string
	Took time.Duration
}

// Box is one container. Its owner is the goroutine of Own.
type Box struct {
	Config
	Running // written by Own before started is closed
	log     *slog.Logger
	events  chan happening
	started chan struct{} // closed once Start has returned, with failure
	failure error
	gone    chan struct{}

	mu      sync.Mutex // guards request
	request string
}

type happening struct {
	event container.Event
	reply chan error
}

// New returns a box that nothing runs in yet: Own comes next, in its goroutine.
func New(cfg Config, request string, log *slog.Logger) *Box {
	return &Box{
		Config: cfg, log: log.With("container_id", cfg.ID, "session_id", cfg.Session), request: request,
		events: make(chan happening), started: make(chan struct{}), gone: make(chan struct{}),
	}
}

// Own runs the container's life from its start on, which ctx bounds: it returns
// once the container is destroyed. stop asks for the end.
func (b *Box) Own(ctx context.Context, stop <-chan struct{}) {
	defer close(b.gone)
	o := owner{box: b, state: container.New(b.Session), idle: time.NewTimer(b.IdleTimeout)}
	o.idle.Stop()
	b.Running, b.failure = b.Start(ctx)
	if b.failure != nil {
		_ = o.step(container.Event{Kind: container.StartFailed})
		close(b.started)
		return
	}
	died := make(chan struct{})
	go b.watch(died)
	go b.Executor.listen(b.log)
	_ = o.step(container.Event{Kind: container.Started})
	close(b.started)
	o.live(died, stop)
	<-b.Executor.heard
	if !o.stuck {
		<-died
	}
}

// untilWatched is how long a container lives before its memory is watched: to begin
// takes the kernel longer than most calls last. What has passed 90 % by then is told
// at once.
const untilWatched = 20 * time.Millisecond

// live carries out what happens until the container is removed.
func (o *owner) live(died, stop <-chan struct{}) {
	b := o.box
	settled := time.NewTimer(untilWatched)
	defer settled.Stop()
	var pressure <-chan struct{}
	for o.state.Phase != container.Removed {
		select {
		case h := <-b.events:
			h.reply <- o.step(h.event)
		case <-o.idle.C:
			_ = o.step(container.Event{Kind: container.IdleExpired})
		case <-died:
			_ = o.step(container.Event{Kind: container.Died})
		case <-settled.C:
			pressure = b.Walls.Pressure()
		case <-pressure:
			b.grow()
		case <-stop:
			_ = o.step(container.Event{Kind: container.Stopped})
		}
	}
}

// Ready waits for the start and says how it went. When ctx is done first the
// start goes on; Finish ends what comes of it.
func (b *Box) Ready(ctx context.Context) error {
	select {
	case <-b.started:
		return b.failure
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// watch waits for the container's own end.
func (b *Box) watch(died chan<- struct{}) {
	defer close(died)
	if _, err := b.Walls.Wait(context.Background()); err != nil {
		b.log.Warn("wait for container", "err", err)
	}
}

func (b *Box) grow() {
	limit, ok := b.Grow()
	if !ok {
		return
	}
	if err := b.Walls.Grow(limit); err != nil {
		b.log.Warn("grow memory", "limit", limit, "err", err)
		return
	}
	b.log.Info("grew memory", "limit", limit)
}

// owner is what only the owning goroutine touches.
type owner struct {
	box   *Box
	state container.State
	idle  *time.Timer
	// stuck says that something of the container does not end: it is not waited
	// for, and its reservation stays.
	stuck bool
}

func (o *owner) step(event container.Event) error {
	from := o.state.Phase
	next, effects, err := container.Step(o.state, event)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrGone, err)
	}
	o.state = next
	o.box.log.Debug("container", "from", from, "to", next.Phase, "cause", event.Kind)
	for _, effect := range effects {
		o.carry(effect)
	}
	return nil
}

func (o *owner) carry(effect container.Effect) {
	switch effect {
	case container.ArmIdle:
		o.idle.Reset(o.box.IdleTimeout)
	case container.DisarmIdle:
		o.idle.Stop()
	case container.Destroy:
		o.destroy()
	default:
		o.box.Report(Report{Effect: effect, Request: o.box.Request(), Session: o.box.Session, Checkpoint: o.box.Checkpoint})
	}
}

// destroy ends the container and gives back what it held; what cannot be
// destroyed keeps its reservation, since its memory is not free.
func (o *owner) destroy() {
	o.idle.Stop()
	if o.box.failure == nil {
		o.box.Executor.Close()
	}
	if err := o.remove(); err != nil {
		o.box.log.Error("destroy container", "err", err)
		o.stuck = true
		_ = o.step(container.Event{Kind: container.DestroyFailed})
		o.box.Stuck()
		return
	}
	o.box.Released()
}

func (o *owner) remove() error {
	if o.box.failure != nil {
		return nil // the start has left nothing behind
	}
	return o.box.Walls.Destroy()
}

// Acquire takes an idle container for a further call of its session.
// Errors: ErrGone.
func (b *Box) Acquire(ctx context.Context, session, request string) error {
	if err := b.tell(ctx, container.Event{Kind: container.Acquired, Session: session}); err != nil {
		return err
	}
	b.setRequest(request)
	return nil
}

// Finish gives the container back after a call; it does not wait for what that
// leads to. It may be repeated.
func (b *Box) Finish(success bool) {
	if err := b.tell(context.Background(), container.Event{Kind: container.Finished, Success: success}); err != nil && !errors.Is(err, ErrGone) {
		b.log.Warn("finish call", "err", err)
	}
}

// tell hands an event to the owner. For an event that destroys, the owner answers
// only after the container is gone, which nobody waits for.
func (b *Box) tell(ctx context.Context, event container.Event) error {
	reply := make(chan error, 1)
	select {
	case b.events <- happening{event, reply}:
	case <-b.gone:
		return ErrGone
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if event.Kind == container.Finished {
		return nil
	}
	select {
	case err := <-reply:
		return err
	case <-b.gone:
		return ErrGone
	}
}

// Gone is closed once nothing of the container is left.
func (b *Box) Gone() <-chan struct{} { return b.gone }

// Stats reads the kernel's counters. Errors: ErrGone while it starts.
func (b *Box) Stats() (sandbox.Stats, error) {
	select {
	case <-b.started:
	default:
		return sandbox.Stats{}, ErrGone
	}
	if b.failure != nil {
		return sandbox.Stats{}, ErrGone
	}
	return b.Walls.Stats()
}

// Exit waits for the container's own end and says how it came. Call it after the
// executor's connection broke. Errors: ctx's.
func (b *Box) Exit(ctx context.Context) (sandbox.Exit, error) {
	return b.Walls.Wait(ctx)
}

// Request is the call that holds the container, or held it last.
func (b *Box) Request() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.request
}

func (b *Box) setRequest(request string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.request = request
}
