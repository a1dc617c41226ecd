package runtimeserver

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hearth-run/hearth/adapters/runtimeserver/internal/registration"
	"github.com/hearth-run/hearth/adapters/runtimeserver/internal/runlog"
	executorv1 "github.com/hearth-run/hearth/gen/executor/v1"
)

// owner drives one registration. One mutex guards its state: whoever has an event
// hands it in, and does what the machine says before the next event is taken. A
// call pays for no change of goroutine: its caller hands in both its start and
// its end, and runs it between the two. Loads and closes run beside it.
type owner struct {
	server   *Server
	identity registration.Identity
	function Function // what is known before an instance is made
	env      map[string]string
	before   *owner // whose end the load waits for; the load's alone
	log      *slog.Logger

	state    atomic.Pointer[registration.State] // what callers see
	answered chan struct{}                      // closed when the load has ended
	released chan struct{}                      // closed when nothing is left

	registerErr error // set before answered is closed

	mu         sync.Mutex // guards the fields below and every change of state
	cancelLoad context.CancelCauseFunc
	body       *body
	inv        *invocation
	drain      *time.Timer
	spare      spare

	runlog *runlog.Log    // set by the load, before the body is
	aside  sync.WaitGroup // closes of replaced bodies
}

// message is an event with what belongs to it.
type message struct {
	registration.Event
	inv   *invocation // Invoke: the call
	body  *body       // Loaded
	err   error       // LoadInvalid; Ended and Lost: why
	spare bool        // no event of the machine: a replacement was loaded
}

// invocation is one admitted call.
type invocation struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	call   Call
	body   *body // which runs it, set when it is admitted
}

func newOwner(s *Server, identity registration.Identity, f Function, env map[string]string, before *owner) *owner {
	o := &owner{
		server: s, identity: identity, function: f, env: env, before: before,
		log:      s.log.With("run_uid", f.RunUID, "registration_id", f.RegistrationID, "attempt", identity.Attempt),
		answered: make(chan struct{}),
		released: make(chan struct{}),
	}
	o.drain = time.AfterFunc(time.Hour, func() { o.post(registration.Event{Kind: registration.DrainDeadline}) })
	o.drain.Stop()
	state, _ := registration.Start()
	o.state.Store(&state)
	return o
}

func (o *owner) snapshot() registration.State { return *o.state.Load() }

func (o *owner) reference() *executorv1.FunctionRegistration {
	return &executorv1.FunctionRegistration{RunUid: o.function.RunUID, RegistrationId: o.function.RegistrationID}
}

// run begins the registration and lasts until it is gone.
func (o *owner) run() {
	defer o.aside.Wait()
	if o.before != nil {
		o.before.post(registration.Event{Kind: registration.Supersede})
	}
	_, effects := registration.Start()
	o.mu.Lock()
	o.do(effects, message{})
	o.mu.Unlock()
	select {
	case <-o.released:
	case <-o.server.over:
		o.post(registration.Event{Kind: registration.Stop})
		<-o.released
	}
}

// hand takes one message. A registration that is gone takes none.
// Errors: why the event has no place, in the contract's words.
func (o *owner) hand(m message) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.snapshot().Phase == registration.Gone {
		return errNoRun
	}
	return o.take(m)
}

// post hands in an event that nobody waits for.
func (o *owner) post(e registration.Event) { _ = o.hand(message{Event: e}) }

// take lets the machine judge one message and does what it says.
func (o *owner) take(m message) error {
	if m.spare {
		o.takeSpare(m)
		return nil
	}
	before := o.snapshot()
	next, effects, err := registration.Step(before, m.Event, time.Now())
	if err != nil {
		o.log.Debug("event refused", "err", err)
		return refusal(before)
	}
	if m.body != nil {
		o.body = m.body
	}
	o.state.Store(&next)
	o.note(before, next, m)
	o.do(effects, m)
	if m.Kind == registration.Ended || m.Kind == registration.Lost {
		o.inv = nil
		o.body.calls++
		o.consider()
	}
	o.swap()
	return nil
}

// note logs a transition, once.
func (o *owner) note(before, next registration.State, m message) {
	if before.Phase == next.Phase {
		return
	}
	level := slog.LevelInfo
	if before.Phase == registration.Busy && next.Phase == registration.Ready || next.Phase == registration.Busy {
		level = slog.LevelDebug
	}
	attrs := []any{"from", string(before.Phase), "to", string(next.Phase), "cause", string(m.Kind)}
	if m.Text != "" {
		attrs = append(attrs, "fatal_error", m.Text)
	}
	if m.err != nil {
		attrs = append(attrs, "err", m.err)
	}
	o.log.Log(context.Background(), level, "registration", attrs...)
}

// refusal says why a registration takes no invocation.
func refusal(s registration.State) error {
	switch {
	case s.Phase == registration.Registering:
		return errNotReady
	case s.Phase == registration.Busy:
		return errActive
	case s.Phase == registration.Failed:
		return errFailed
	case s.Cause == registration.Supersede:
		return errStale
	case s.Phase == registration.Gone:
		return errNoRun
	default:
		return errDraining
	}
}

// do carries out effects, in their order.
func (o *owner) do(effects []registration.Effect, m message) {
	for _, effect := range effects {
		switch effect {
		case registration.StartLoad:
			ctx, cancel := context.WithCancelCause(context.Background())
			o.cancelLoad = cancel
			go o.load(ctx)
		case registration.CancelLoad:
			o.cancelLoad(o.cause())
		case registration.AnswerRegister:
			o.answer(m)
		case registration.StartInvocation:
			o.inv = m.inv
			o.inv.body = o.body
		case registration.CancelInvocation:
			o.inv.cancel(o.cause())
		case registration.StartDrain:
			o.drain.Reset(time.Until(o.snapshot().DrainUntil))
		case registration.StopDrain:
			o.drain.Stop()
		case registration.Close:
			go o.close()
		case registration.Release:
			o.cancelLoad(nil)
			o.server.release(o)
			close(o.released)
		}
	}
}

// answer tells the callers of RegisterFunction how the load has ended.
func (o *owner) answer(m message) {
	switch o.snapshot().Phase {
	case registration.Gone:
		o.registerErr = m.err
	case registration.Closing:
		o.registerErr = refusal(o.snapshot())
		if errors.Is(o.cause(), errStopping) {
			o.registerErr = errStopping
		}
	}
	close(o.answered)
}

// cause is what an invocation or a load that is cut short is told.
func (o *owner) cause() error {
	switch o.snapshot().Cause {
	case registration.Supersede:
		return errSuperseded
	case registration.Stop:
		return errStopping
	default:
		return errUnregistered
	}
}

// call runs one admitted invocation and hands in its end: when it returns, the
// state says already that the function is idle again.
func (o *owner) call(inv *invocation) (Result, error) {
	ended := false
	defer func() {
		if !ended { // the language panicked: whoever recovers finds no function that is busy for ever
			o.post(registration.Event{Kind: registration.Lost, Text: "the Runtime Server has failed: its log says why"})
		}
	}()
	result, err := checked(inv.body.instance.Invoke(inv.ctx, inv.call))
	kind, text := registration.Ended, ""
	if lost, ok := errors.AsType[*LoadError](err); ok {
		kind, text = registration.Lost, clip(lost.Text, MaxFatalError)
		if e := inv.body.group.Kill(); e != nil {
			o.log.Error("kill what a lost instance has left", "err", e)
		}
	}
	if err != nil && inv.ctx.Err() != nil {
		err = context.Cause(inv.ctx)
	} else if kind == registration.Lost {
		err = errFailed
	}
	ended = true
	_ = o.hand(message{Event: registration.Event{Kind: kind, Text: text}, err: err})
	return result, err
}
