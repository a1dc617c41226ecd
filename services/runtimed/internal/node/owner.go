package node

import (
	"context"
	"log/slog"
	"sync"
	"time"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/services/runtimed/internal/assignment"
	"github.com/hearth-run/hearth/services/runtimed/internal/desk"
	"github.com/hearth-run/hearth/services/runtimed/internal/source"
	"github.com/hearth-run/hearth/services/runtimed/internal/vigil"
)

// owner drives one attempt of one Run. Its fields belong to its goroutine, but
// for a and session, which do not change, and what says otherwise.
type owner struct {
	*session
	a   *hearthv1.Assignment
	log *slog.Logger
	// sweeping: there is no assignment behind it, only traces.
	sweeping bool
	state    assignment.State
	// opening are the effects to begin with.
	opening []assignment.Effect

	inbox   chan assignment.Event
	results chan result
	// gone is closed when run returns.
	gone     chan struct{}
	children sync.WaitGroup

	// job is the present piece of work; the next one waits for its end.
	job *job
	// said is closed with the first report but that of the start. spoken is closed
	// when the latest report was heard; voice ends them all.
	said    chan struct{}
	spoken  chan struct{}
	voice   context.Context
	silence context.CancelFunc

	prepared source.Prepared
	// deadline is when the Run's lifetime ends; 0 is never.
	deadline time.Duration
	lifetime *time.Timer

	registrationID string
	finished       *hearthv1.TaskFinished
	cut            context.CancelCauseFunc
	vigil          *vigil.Vigil
	poll           *time.Timer
	asking         bool
	answers        chan vigil.Answer
	suspect        chan struct{}
	// leftover: the Runtime Server did not hear the release.
	leftover bool
}

// job is one piece of work outside the owner's goroutine.
type job struct {
	cancel context.CancelFunc
	done   chan struct{}
}

// result is what a job came to. keep, if set, stores it in the owner.
type result struct {
	job   *job
	event assignment.Event
	keep  func()
}

func newOwner(s *session, a *hearthv1.Assignment) *owner {
	o := bare(s, a)
	mode := assignment.Function
	if a.GetSpec().GetTask() != nil {
		mode = assignment.Task
	}
	if a.GetAction() == hearthv1.AssignmentAction_ASSIGNMENT_ACTION_RELEASE {
		o.state, o.opening = assignment.Leftover(mode, assignment.Released, reasonName(a.GetReason()))
		return o
	}
	o.state = assignment.Begin(mode)
	if a.GetLifetimeLeft() != nil {
		left := a.GetLifetimeLeft().AsDuration()
		o.deadline = s.clock() + max(left, 1)
		o.lifetime.Reset(left)
	}
	return o
}

// newSweeper cleans what the ledger says of a Run that nobody owns.
func newSweeper(s *session, runUID string) *owner {
	o := bare(s, &hearthv1.Assignment{RunUid: runUID})
	o.sweeping = true
	o.state, o.opening = assignment.Leftover(assignment.Function, assignment.Abandoned, "")
	return o
}

func bare(s *session, a *hearthv1.Assignment) *owner {
	o := &owner{
		session: s, a: a, log: s.log.With("run_uid", a.GetRunUid(), "attempt", a.GetAttempt()),
		inbox: make(chan assignment.Event, 4), results: make(chan result), gone: make(chan struct{}),
		lifetime: stopped(), poll: stopped(), answers: make(chan vigil.Answer), suspect: make(chan struct{}, 1), said: make(chan struct{}),
	}
	o.voice, o.silence = context.WithCancel(s.hard)
	return o
}

// stopped is a timer that has not been set.
func stopped() *time.Timer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}

// send gives the owner an event; one that is gone does not need it.
func (o *owner) send(ev assignment.Event) {
	select {
	case o.inbox <- ev:
	case <-o.gone:
	}
}

// run drives the attempt until it is gone. Nothing of it runs afterwards.
func (o *owner) run() {
	defer o.children.Wait()
	defer close(o.gone)
	defer o.silence()
	defer o.lifetime.Stop()
	defer o.poll.Stop()
	o.show(desk.Preparing)
	for _, effect := range o.opening {
		o.do(effect)
	}
	if o.state.Phase == assignment.New {
		o.apply(assignment.Event{Kind: assignment.Start})
	}
	for o.state.Phase != assignment.Gone {
		o.step()
	}
	o.desk.Remove(o.a.GetRunUid(), over(o.state))
}

func (o *owner) step() {
	select {
	case ev := <-o.inbox:
		o.apply(ev)
	case r := <-o.results:
		if r.job != nil && r.job != o.job {
			return
		}
		if r.keep != nil {
			r.keep()
		}
		if r.event.Kind != "" {
			o.apply(r.event)
		}
	case <-o.lifetime.C:
		o.apply(assignment.Event{Kind: assignment.Fail, Reason: "LIFETIME_EXCEEDED", Message: "the Run's timeout has passed"})
	case <-o.suspect:
		o.ask()
	case <-o.poll.C:
		o.ask()
	case a := <-o.answers:
		o.heed(a)
	}
}

func (o *owner) apply(ev assignment.Event) {
	next, effects, err := o.state.Apply(ev)
	if err != nil {
		o.log.Error("assignment", "cause", err)
		return
	}
	if next.Phase != o.state.Phase {
		o.log.Info("assignment", "from", o.state.Phase, "to", next.Phase, "on", ev.Kind, "reason", next.Reason, "cause", next.Message)
	}
	o.state = next
	if ev.Kind == assignment.Fence {
		// Who lost the lease has nothing to say any more.
		o.silence()
	}
	for _, effect := range effects {
		o.do(effect)
	}
}

func (o *owner) do(effect assignment.Effect) {
	switch effect {
	case assignment.Prepare:
		o.begin(o.prepare)
	case assignment.Register:
		o.begin(o.register)
	case assignment.Execute:
		o.begin(o.execute)
	case assignment.Clean:
		o.begin(o.clean(o.state))
	case assignment.Publish:
		o.publish()
	case assignment.Withdraw:
		o.withdraw()
	default:
		o.report(effect)
	}
}

// begin ends the job under way, and starts the next when that one has returned.
func (o *owner) begin(work func(context.Context) result) {
	previous := o.job
	if previous != nil {
		previous.cancel()
	}
	ctx, cancel := context.WithCancel(o.hard)
	j := &job{cancel, make(chan struct{})}
	o.job = j
	o.children.Go(func() {
		defer cancel()
		defer close(j.done)
		if previous != nil {
			<-previous.done
		}
		r := work(ctx)
		r.job = j
		o.deliver(r)
	})
}

func (o *owner) deliver(r result) {
	select {
	case o.results <- r:
	case <-o.gone:
	}
}
