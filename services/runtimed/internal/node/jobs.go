package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	executorv1 "github.com/hearth-run/hearth/gen/executor/v1"
	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/services/runtimed/internal/assignment"
	"github.com/hearth-run/hearth/services/runtimed/internal/digest"
	"github.com/hearth-run/hearth/services/runtimed/internal/ledger"
	"github.com/hearth-run/hearth/services/runtimed/internal/source"
	"github.com/hearth-run/hearth/services/runtimed/internal/upstream"
	"github.com/hearth-run/hearth/services/runtimed/internal/vigil"
)

// prepare makes the folder whole. What a former process prepared for the same
// attempt is kept: code that is still loaded may read from it.
func (o *owner) prepare(ctx context.Context) result {
	uid, attempt := o.a.GetRunUid(), o.a.GetAttempt()
	rec, had, err := o.record(ctx)
	if err != nil {
		return failed(ctx, err)
	}
	if had && rec.Attempt == attempt && o.whole(rec) {
		return o.ready(source.Prepared{Dir: o.sources.Dir(uid), Identity: cmp.Or(rec.SourceIdentity, o.a.GetSourceIdentity())})
	}
	if had {
		if rec, err = o.supersede(ctx, rec); err != nil {
			return failed(ctx, err)
		}
	}
	rec = ledger.Record{RunUID: uid, Attempt: attempt, Register: rec.Register, RegistrationID: rec.RegistrationID}
	if err := o.ledger.Put(rec); err != nil {
		return failed(ctx, err)
	}
	prepared, err := o.sources.Prepare(ctx, uid, o.source())
	if err != nil {
		return failed(ctx, err)
	}
	rec.SourceIdentity = prepared.Identity
	if err := o.ledger.Put(rec); err != nil {
		return failed(ctx, err)
	}
	return o.ready(prepared)
}

// whole says whether the folder of an attempt is as it shall be: it was prepared,
// or its task runs in it.
func (o *owner) whole(rec ledger.Record) bool {
	if rec.ExecutionID != "" {
		return true
	}
	_, missing := os.Stat(o.sources.Dir(rec.RunUID))
	return rec.SourceIdentity != "" && missing == nil
}

// supersede ends an earlier attempt, and returns what is left of it: a function's
// registration goes when the next one takes its place, or with this attempt if there
// is to be none.
// Errors: a task's that is not known to have ended.
func (o *owner) supersede(ctx context.Context, rec ledger.Record) (left ledger.Record, err error) {
	bounded, cancel := context.WithTimeout(ctx, o.cfg.Release)
	defer cancel()
	err = o.undo(bounded, rec, 0)
	switch {
	case err == nil:
		return ledger.Record{}, nil
	case rec.ExecutionID != "":
		return rec, &upstream.Failure{Reason: vigil.Unavailable, Message: "an earlier attempt could not be ended: " + upstream.Text(err)}
	}
	o.log.Info("an earlier attempt is left to be superseded", "cause", err)
	return rec, nil
}

// source is the Run's; one of git at the commit that it was resolved to first: a
// ref that has moved since is not this Run's.
func (o *owner) source() *hearthv1.Source {
	src := o.a.GetSpec().GetSource()
	commit, resolved := strings.CutPrefix(o.a.GetSourceIdentity(), "git:")
	if src.GetGit() == nil || !resolved {
		return src
	}
	src = proto.CloneOf(src)
	src.GetGit().Ref = commit
	return src
}

func (o *owner) ready(p source.Prepared) result {
	return result{event: assignment.Event{Kind: assignment.Prepared}, keep: func() {
		o.prepared = p
		if o.a.GetSpec().GetSource().GetInline() != nil {
			// Its files are on disk; a thousand Runs need not be in memory too.
			o.a.Spec.Source = nil
		}
	}}
}

// failed makes an event of an error: a Failure says its reason, a source's error
// its own, everything else is this node's trouble. A job that was called off says
// nothing.
func failed(ctx context.Context, err error) result {
	if ctx.Err() != nil {
		return result{}
	}
	ev := assignment.Event{Kind: assignment.Fail, Reason: "SOURCE_UNAVAILABLE", Message: upstream.Cut(err.Error())}
	var failure *upstream.Failure
	switch {
	case errors.As(err, &failure):
		ev.Reason, ev.Message = failure.Reason, failure.Message
	case errors.Is(err, source.ErrInvalid):
		ev.Reason = "SOURCE_INVALID"
	}
	return result{event: ev}
}

// register registers the function. The ledger knows of it before the Runtime
// Server does.
func (o *owner) register(ctx context.Context) result {
	req := o.registration()
	encoded, err := proto.Marshal(req)
	if err != nil {
		return failed(ctx, fmt.Errorf("encode registration: %w", err))
	}
	rec := ledger.Record{RunUID: req.GetRunUid(), Attempt: req.GetRegistrationAttempt(), SourceIdentity: o.prepared.Identity, Register: encoded}
	if err := o.ledger.Put(rec); err != nil {
		return failed(ctx, err)
	}
	id, err := o.server.Register(ctx, req)
	if id != "" {
		rec.RegistrationID = id
		err = errors.Join(err, o.ledger.Put(rec))
	}
	if err != nil {
		return failed(ctx, err)
	}
	return result{event: assignment.Event{Kind: assignment.Registered}, keep: func() { o.registrationID = id }}
}

func (o *owner) registration() *executorv1.RegisterFunctionRequest {
	spec := o.a.GetSpec()
	idle := seconds(spec.GetFunction().GetIdleTimeout().AsDuration())
	return &executorv1.RegisterFunctionRequest{
		RunUid:              o.a.GetRunUid(),
		RegistrationAttempt: o.a.GetAttempt(),
		WorkingDir:          o.prepared.Dir,
		Handler:             spec.GetFunction().GetHandler(),
		Env:                 spec.GetEnv(),
		IdleTimeoutSeconds:  idle,
		RegistrationDigest: digest.Of(digest.Inputs{
			Source:             o.prepared.Identity,
			Subdirectory:       spec.GetSource().GetGit().GetSubdirectory(),
			Handler:            spec.GetFunction().GetHandler(),
			Env:                spec.GetEnv(),
			IdleTimeoutSeconds: idle,
		}),
	}
}

// seconds rounds up: a bound below a second is not "without bound".
func seconds(d time.Duration) int64 { return int64(math.Ceil(d.Seconds())) }

// clean undoes whatever the ledger says was begun, and removes the folder. What
// the Runtime Server does not hear in time is left to the sweep.
func (o *owner) clean(end assignment.State) func(context.Context) result {
	return func(ctx context.Context) result {
		var drain time.Duration
		if end.Drain {
			drain = o.cfg.Drain / 2
		}
		bounded, cancel := context.WithTimeout(ctx, o.cfg.Release)
		defer cancel()
		err := o.wipe(bounded, drain)
		if err != nil {
			o.log.Warn("release is left to the sweep", "cause", err)
		}
		return result{event: assignment.Event{Kind: assignment.Cleaned}, keep: func() { o.leftover = err != nil }}
	}
}

func (o *owner) wipe(ctx context.Context, drain time.Duration) error {
	uid := o.a.GetRunUid()
	rec, had, err := o.record(ctx)
	if err != nil {
		return err
	}
	if had {
		if err := o.undo(ctx, rec, drain); err != nil {
			return err
		}
	}
	if err := o.sources.Remove(uid); err != nil {
		return err
	}
	return o.ledger.Delete(uid)
}

// undo ends on the Runtime Server what a record says, repeated until it is heard
// or ctx is done.
func (o *owner) undo(ctx context.Context, rec ledger.Record, drain time.Duration) error {
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		err := o.undoOnce(ctx, rec, drain)
		if err == nil {
			return nil
		}
		if upstream.Pause(ctx, wait) != nil {
			return err
		}
	}
}

func (o *owner) undoOnce(ctx context.Context, rec ledger.Record, drain time.Duration) error {
	switch {
	case rec.RegistrationID != "":
		return o.server.Unregister(ctx, rec.RunUID, rec.RegistrationID, drain)
	case rec.Register != nil:
		var req executorv1.RegisterFunctionRequest
		if err := proto.Unmarshal(rec.Register, &req); err != nil {
			return fmt.Errorf("decode registration: %w", err)
		}
		return o.server.Withdraw(ctx, &req)
	case rec.ExecutionID != "":
		return o.server.Forget(ctx, rec.ExecutionID)
	}
	return nil
}
