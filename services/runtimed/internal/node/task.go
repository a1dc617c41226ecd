package node

import (
	"context"

	executorv1 "github.com/hearth-run/hearth/gen/executor/v1"
	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/services/runtimed/internal/assignment"
	"github.com/hearth-run/hearth/services/runtimed/internal/ledger"
	"github.com/hearth-run/hearth/services/runtimed/internal/outputs"
	"github.com/hearth-run/hearth/services/runtimed/internal/upstream"
)

// execute runs the task to its end, or finds the one that a former process began.
func (o *owner) execute(ctx context.Context) result {
	id, err := o.start(ctx)
	if err != nil {
		return failed(ctx, err)
	}
	res, err := o.server.Await(ctx, id)
	if err != nil {
		return failed(ctx, err)
	}
	finished := o.outcome(res)
	return result{event: assignment.Event{Kind: assignment.Ended}, keep: func() { o.finished = finished }}
}

// start starts the execution, unless that was begun before. Nobody can tell what
// has become of a beginning that was cut off: the execution is looked for, and where
// the Runtime Server does not know it, it is lost. To run it again is a next attempt.
func (o *owner) start(ctx context.Context) (id string, err error) {
	run, attempt := o.a.GetRunUid(), o.a.GetAttempt()
	if before, had := o.ledger.Get(run); had && before.Attempt == attempt && before.ExecutionID != "" {
		return before.ExecutionID, nil
	}
	req := o.execution()
	rec := ledger.Record{RunUID: run, Attempt: attempt, SourceIdentity: o.prepared.Identity, ExecutionID: req.GetId()}
	if err := o.ledger.Put(rec); err != nil {
		return "", err
	}
	return req.GetId(), o.server.Start(ctx, req)
}

func (o *owner) execution() *executorv1.ExecuteRequest {
	spec := o.a.GetSpec()
	return &executorv1.ExecuteRequest{
		Id:         o.executionID(o.a.GetRunUid(), o.a.GetAttempt()),
		Args:       spec.GetTask().GetArgs(),
		Env:        spec.GetEnv(),
		WorkingDir: o.prepared.Dir,
		Entrypoint: spec.GetTask().GetEntrypoint(),
		// The node ends it by the lifetime that is left. This is for the case that
		// no node is left, and the same in every repeat.
		TimeoutSeconds: seconds(spec.GetTimeout().AsDuration()),
	}
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
