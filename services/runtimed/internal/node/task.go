package node

import (
	"context"
	"fmt"

	executorv1 "github.com/hearth-run/hearth/gen/executor/v1"
	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/services/runtimed/internal/assignment"
	"github.com/hearth-run/hearth/services/runtimed/internal/ledger"
	"github.com/hearth-run/hearth/services/runtimed/internal/outputs"
	"github.com/hearth-run/hearth/services/runtimed/internal/upstream"
)

// execute runs the task to its end, or finds the one that a former process began.
func (o *owner) execute(ctx context.Context) result {
	spec := o.a.GetSpec()
	req := &executorv1.ExecuteRequest{
		Id:         fmt.Sprintf("%s.%d", o.a.GetRunUid(), o.a.GetAttempt()),
		Args:       spec.GetTask().GetArgs(),
		Env:        spec.GetEnv(),
		WorkingDir: o.prepared.Dir,
		Entrypoint: spec.GetTask().GetEntrypoint(),
		// The node ends it by the lifetime that is left. This is for the case that
		// no node is left, and the same in every repeat.
		TimeoutSeconds: seconds(spec.GetTimeout().AsDuration()),
	}
	if err := o.start(ctx, req); err != nil {
		return failed(ctx, err)
	}
	res, err := o.server.Await(ctx, req.GetId())
	if err != nil {
		return failed(ctx, err)
	}
	finished := o.outcome(res)
	return result{event: assignment.Event{Kind: assignment.Ended}, keep: func() { o.finished = finished }}
}

// start starts the execution, unless the Runtime Server had accepted it already: one
// that it has forgotten since is lost, and to run it again is a next attempt.
func (o *owner) start(ctx context.Context, req *executorv1.ExecuteRequest) error {
	rec := ledger.Record{RunUID: o.a.GetRunUid(), Attempt: o.a.GetAttempt(), SourceIdentity: o.prepared.Identity, ExecutionID: req.GetId()}
	if before, had := o.ledger.Get(rec.RunUID); had && before.Executing && before.ExecutionID == rec.ExecutionID {
		return nil
	}
	if err := o.ledger.Put(rec); err != nil {
		return err
	}
	if err := o.server.Start(ctx, req); err != nil {
		return err
	}
	rec.Executing = true
	return o.ledger.Put(rec)
}

func (o *owner) outcome(res *executorv1.StatusResponse) *hearthv1.TaskFinished {
	out := &hearthv1.TaskFinished{
		ExitCode:       res.GetExitCode(),
		Stdout:         tail(res.GetStdout()),
		Stderr:         tail(res.GetStderr()),
		ErrorMessage:   upstream.Cut(res.GetErrorMessage()),
		SourceIdentity: o.prepared.Identity,
	}
	values, err := outputs.Read(o.prepared.Dir)
	if err != nil {
		if out.ErrorMessage == "" {
			out.ErrorMessage = upstream.Cut(err.Error())
		}
		return out
	}
	out.Outputs = values
	return out
}

// tail keeps the end of an output within the bound of a report.
func tail(s string) string {
	const most = 1 << 20
	if len(s) > most {
		s = s[len(s)-most:]
	}
	return validUTF8(s)
}
