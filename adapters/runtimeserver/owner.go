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

// owner drives one registration: one goroutine (run) owns its state and does
// what the machine says; loads, invocations and closes run beside it and report
// to its inbox.
type owner struct {
	server   *Server
	identity registration.Identity
	function Function // what is known before an instance is made
	env      map[string]string
	before   *owner // whose end the load waits for; the load's alone
	log      *slog.Logger

	inbox    chan message
	state    atomic.Pointer[registration.State] // what callers see
	answered chan struct{}                      // closed when the load has ended
	released chan struct{}                      // closed when nothing is left

	registerErr error // set before answered is closed

	// The goroutine's own.
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
	reply chan error  // Invoke: nil once it is admitted
	body  *body       // Loaded
	err   error       // LoadInvalid; Ended and Lost: why
	spare bool        // no event of the machine: a replacement was loaded
}

// invocation is one admitted call. result and err are set before done is closed.
type invocation struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	call   Call
	done   chan struct{}
	result Result
	err    error
}

func newOwner(s *Server, identity registration.Identity, f Function, env map[string]string, before *owner) *owner {
	o := &owner{
		server: s, identity: identity, function: f, env: env, before: before,
		log:      s.log.With("run_uid", f.RunUID, "registration_id", f.RegistrationID, "attempt", identity.Attempt),
		inbox:    make(chan message),
		answered: make(chan struct{}),
		released: make(chan struct{}),
		drain:    time.NewTimer(time.Hour),
	}
	o.drain.Stop()
	state, _ := registration.Start()
	o.state.Store(&state)
	return o
}

func (o *owner) snapshot() registration.State { return *o.state.Load() }

func (o *owner) reference() *executorv1.FunctionRegistration {
	return &executorv1.FunctionRegistration{RunUid: o.function.RunUID, RegistrationId: o.function.RegistrationID}
}

// run is the owner's goroutine. It ends when the registration is gone.
func (o *owner) run() {
	defer o.aside.Wait()
	if o.before != nil {
		o.before.post(registration.Event{Kind: registration.Supersede})
	}
	_, effects := registration.Start()
	o.do(effects, message{})
	stopping := o.server.over
	for o.snapshot().Phase != registration.Gone {
		select {
		case m := <-o.inbox:
			o.take(m)
		case <-o.drain.C:
			o.take(message{Event: registration.Event{Kind: registration.DrainDeadline}})
		case <-stopping:
			stopping = nil
			o.take(message{Event: registration.Event{Kind: registration.Stop}})
		}
	}
}

// post hands an event of a caller to the owner; a registration that is gone
// needs none.
func (o *owner) post(e registration.Event) {
	select {
	case o.inbox <- message{Event: e}:
	case <-o.released:
	}
}

// start asks for an invocation.
func (o *owner) start(inv *invocation) error {
	m := message{Event: registration.Event{Kind: registration.Invoke}, inv: inv, reply: make(chan error, 1)}
	select {
	case o.inbox <- m:
		return <-m.reply
	case <-o.released:
		return errNoRun
	}
}

// take lets the machine judge one message and does what it says.
func (o *owner) take(m message) {
	if m.spare {
		o.takeSpare(m)
		return
	}
	before := o.snapshot()
	next, effects, err := registration.Step(before, m.Event, time.Now())
	if err != nil {
		o.refuse(m, err)
		return
	}
	if m.body != nil {
		o.body = m.body
	}
	o.state.Store(&next)
	o.note(before, next, m)
	o.do(effects, m)
	switch {
	case m.reply != nil:
		m.reply <- nil
	case m.Kind == registration.Ended || m.Kind == registration.Lost:
		o.end(m)
	}
	o.swap()
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

// refuse answers a caller whose event has no place, in the contract's words.
func (o *owner) refuse(m message, err error) {
	if m.reply == nil {
		o.log.Debug("event refused", "err", err)
		return
	}
	m.reply <- refusal(o.snapshot())
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
			go o.call(o.inv, o.body)
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

// call runs one invocation.
func (o *owner) call(inv *invocation, b *body) {
	result, err := checked(b.instance.Invoke(inv.ctx, inv.call))
	kind, text := registration.Ended, ""
	if lost, ok := errors.AsType[*LoadError](err); ok {
		kind, text = registration.Lost, clip(lost.Text, MaxFatalError)
		if e := b.group.Kill(); e != nil {
			o.log.Error("kill what a lost instance has left", "err", e)
		}
	}
	if err != nil && inv.ctx.Err() != nil {
		err = context.Cause(inv.ctx)
	} else if kind == registration.Lost {
		err = errFailed
	}
	inv.result = result
	o.inbox <- message{Event: registration.Event{Kind: kind, Text: text}, err: err}
}

// end tells the caller, after the state says that the function is idle again.
func (o *owner) end(m message) {
	inv := o.inv
	o.inv = nil
	inv.err = m.err
	o.body.calls++
	close(inv.done)
	o.consider()
}
