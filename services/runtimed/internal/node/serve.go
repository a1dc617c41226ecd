package node

import (
	"context"
	"math/rand/v2"
	"strings"
	"time"

	"connectrpc.com/connect/v2"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/services/runtimed/internal/assignment"
	"github.com/hearth-run/hearth/services/runtimed/internal/desk"
	"github.com/hearth-run/hearth/services/runtimed/internal/upstream"
	"github.com/hearth-run/hearth/services/runtimed/internal/vigil"
)

// show lets calls see how far the attempt has come.
func (o *owner) show(standing desk.Standing) {
	if o.sweeping {
		return
	}
	if o.state.Phase == assignment.Releasing {
		standing = desk.Draining
	}
	o.desk.Put(o.entry(standing, context.Background()))
}

func (o *owner) entry(standing desk.Standing, work context.Context) *desk.Entry {
	return &desk.Entry{
		RunUID: o.a.GetRunUid(), Attempt: o.a.GetAttempt(), Gate: o.gate, Standing: standing,
		RegistrationID: o.registrationID, Deadline: o.deadline, Work: work,
		Suspect: func() { token(o.suspect) },
	}
}

// publish takes calls from now on and watches the registration.
func (o *owner) publish() {
	work, cut := context.WithCancelCause(context.Background())
	o.cut = cut
	o.desk.Put(o.entry(desk.Ready, work))
	idle := o.a.GetSpec().GetFunction().GetIdleTimeout().AsDuration()
	o.vigil = vigil.New(o.clock(), idle, o.cfg.Patience)
	o.rest()
}

// withdraw takes no more calls, and cuts off the one that runs unless it may end
// by itself.
func (o *owner) withdraw() {
	o.show(desk.Draining)
	o.poll.Stop()
	switch {
	case o.state.Outcome == assignment.Abandoned:
		o.cut(desk.ErrFenced)
	case !o.state.Drain:
		o.cut(desk.ErrDraining)
	}
}

// rest sets the time of the next poll, spread by a fifth.
func (o *owner) rest() {
	cadence := vigil.Cadence(o.cfg.StatusInterval, int(o.holding.Load()))
	d := o.vigil.Next(o.clock(), cadence)
	o.poll.Reset(d*4/5 + rand.N(d*2/5+1))
}

// ask polls once, outside the owner's goroutine. The timer stands still until the
// answer is there.
func (o *owner) ask() {
	if o.state.Phase != assignment.Ready || o.asking {
		return
	}
	o.asking = true
	o.poll.Stop()
	id := o.registrationID
	o.children.Go(func() {
		a := o.server.Status(o.hard, o.a.GetRunUid(), id)
		select {
		case o.answers <- a:
		case <-o.gone:
		}
	})
}

// heed judges one answer.
func (o *owner) heed(a vigil.Answer) {
	o.asking = false
	if o.state.Phase != assignment.Ready {
		return
	}
	v := o.vigil.Observe(o.clock(), a)
	if v.Reason == "" {
		o.rest()
		return
	}
	o.apply(assignment.Event{Kind: assignment.Fail, Reason: v.Reason, Message: upstream.Cut(v.Message), Drain: v.Reason == vigil.IdleTimeout})
}

// startQuiet is how long it is not worth saying that a function is being loaded:
// the usual one is ready by then, and that says it too.
const startQuiet = 500 * time.Millisecond

// reportStarted holds nothing up: it may be heard late, or not at all.
func (o *owner) reportStarted() {
	req, _ := o.message(assignment.ReportStarted)
	quiet := startQuiet
	if o.a.GetSpec().GetTask() != nil {
		quiet = 0
	}
	o.children.Go(func() {
		timer := time.NewTimer(quiet)
		defer timer.Stop()
		select {
		case <-timer.C:
			if !o.tell(req) {
				o.deliver(result{event: assignment.Event{Kind: assignment.Refused}})
			}
		case <-o.said:
		case <-o.gone:
		}
	})
}

// report says one thing to the control plane, after what was said before.
func (o *owner) report(effect assignment.Effect) {
	if effect == assignment.ReportStarted {
		o.reportStarted()
		return
	}
	req, last := o.message(effect)
	previous, spoken := o.spoken, make(chan struct{})
	if previous == nil {
		close(o.said)
	}
	o.spoken = spoken
	o.children.Go(func() {
		defer close(spoken)
		if previous != nil {
			<-previous
		}
		switch heard := o.tell(req); {
		case !heard:
			o.deliver(result{event: assignment.Event{Kind: assignment.Refused}})
		case last:
			o.deliver(result{event: assignment.Event{Kind: assignment.Reported}})
		}
	})
}

// message is the report of an effect; last: it ends the attempt.
func (o *owner) message(effect assignment.Effect) (req *hearthv1.ReportAssignmentRequest, last bool) {
	req = &hearthv1.ReportAssignmentRequest{RunUid: o.a.GetRunUid(), Attempt: o.a.GetAttempt(), NodeUid: o.uid}
	switch effect {
	case assignment.ReportStarted:
		req.Report = &hearthv1.ReportAssignmentRequest_Started{Started: &hearthv1.AssignmentStarted{}}
	case assignment.ReportReady:
		req.Report = &hearthv1.ReportAssignmentRequest_Ready{Ready: &hearthv1.AssignmentReady{SourceIdentity: o.prepared.Identity}}
	case assignment.ReportFailed:
		req.Report = &hearthv1.ReportAssignmentRequest_Failed{Failed: &hearthv1.AssignmentFailed{
			Reason: reasonValue(o.state.Reason), Message: validUTF8(o.state.Message),
		}}
		last = true
	case assignment.ReportFinished:
		req.Report = &hearthv1.ReportAssignmentRequest_Finished{Finished: o.finished}
		last = true
	default:
		req.Report = &hearthv1.ReportAssignmentRequest_Released{Released: &hearthv1.AssignmentReleased{}}
		last = true
	}
	return req, last
}

// tell repeats a report until it was heard. false: the control plane does not
// want it, or the lease is lost.
func (o *owner) tell(req *hearthv1.ReportAssignmentRequest) bool {
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		ctx, cancel := context.WithTimeout(o.voice, o.cfg.Call)
		_, err := o.control.ReportAssignment(ctx, req)
		cancel()
		switch {
		case err == nil:
			return true
		case unwanted(err), connect.CodeOf(err) == connect.CodeInvalidArgument:
			o.log.Info("report refused", "report", reportName(req), "cause", err)
			return false
		}
		o.log.Debug("report", "report", reportName(req), "cause", err)
		if upstream.Pause(o.voice, wait) != nil {
			return false
		}
	}
}

func reportName(req *hearthv1.ReportAssignmentRequest) string {
	return string(req.ProtoReflect().WhichOneof(req.ProtoReflect().Descriptor().Oneofs().Get(0)).Name())
}

func validUTF8(s string) string { return strings.ToValidUTF8(s, "�") }
