package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"connectrpc.com/connect/v2"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/gen/hearth/v1/hearthv1connect"
)

// goal says whether a Run is where it should be, or that it never will be.
type goal func(*hearthv1.Run) (reached bool, err error)

// toReady is the goal of a function.
func toReady(r *hearthv1.Run) (bool, error) {
	switch p := r.GetStatus().GetPhase(); {
	case p == hearthv1.RunPhase_RUN_PHASE_READY:
		return true, nil
	case p == hearthv1.RunPhase_RUN_PHASE_SUCCEEDED:
		return true, nil
	case ended(p):
		return false, fmt.Errorf("wait for Run %s", story(r))
	}
	return false, nil
}

// toEnd is the goal of somebody who waits for whatever end.
func toEnd(r *hearthv1.Run) (bool, error) {
	p := r.GetStatus().GetPhase()
	if ended(p) && p != hearthv1.RunPhase_RUN_PHASE_SUCCEEDED {
		return false, fmt.Errorf("wait for Run %s", story(r))
	}
	return ended(p), nil
}

// toAnyEnd is the goal of somebody who asked for the end.
func toAnyEnd(r *hearthv1.Run) (bool, error) { return ended(r.GetStatus().GetPhase()), nil }

// toRemoval is never reached: the wait ends with errRemoved.
func toRemoval(*hearthv1.Run) (bool, error) { return false, nil }

// errRemoved is a Run that is not there any more.
var errRemoved = errors.New("the Run was removed")

// progress returns a teller that writes each new state once.
func progress(w io.Writer) func(*hearthv1.Run) {
	last := ""
	return func(r *hearthv1.Run) {
		if text := story(r); text != last {
			last = text
			fmt.Fprintln(w, text)
		}
	}
}

// await follows a Run until it reaches its goal.
// Errors: errTimeout, the goal's own, the Run is removed, the control plane's.
func await(ctx context.Context, runs hearthv1connect.RunServiceClient, run *hearthv1.Run, limit time.Duration, to goal, tell func(*hearthv1.Run)) (*hearthv1.Run, error) {
	late := fmt.Errorf("%w after %v", errTimeout, limit)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, late)
	defer cancel()
	w := &waiter{runs: runs, run: run, to: to, tell: tell}
	err := w.follow(ctx)
	cause := context.Cause(ctx)
	if cause == nil && connect.CodeOf(err) == connect.CodeDeadlineExceeded {
		cause = late // the control plane noticed it first
	}
	if err != nil && cause != nil {
		return w.run, fmt.Errorf("wait for Run %s (%s, %s): %w", run.GetName(), phase(w.run), reason(w.run), cause)
	}
	return w.run, err
}

type waiter struct {
	runs hearthv1connect.RunServiceClient
	run  *hearthv1.Run
	to   goal
	tell func(*hearthv1.Run)
}

// follow looks once and then watches from the version of before the look, so
// that nothing falls between the two.
func (w *waiter) follow(ctx context.Context) error {
	filter := &hearthv1.RunFilter{Namespace: w.run.GetNamespace()}
	list, err := w.runs.ListRuns(ctx, &hearthv1.ListRunsRequest{Filter: filter, PageSize: 1})
	if err != nil {
		return err
	}
	got, err := w.runs.GetRun(ctx, &hearthv1.GetRunRequest{Namespace: w.run.GetNamespace(), Name: w.run.GetName(), Uid: w.run.GetUid()})
	if connect.CodeOf(err) == connect.CodeNotFound {
		return fmt.Errorf("wait for Run %s: %w", w.run.GetName(), errRemoved)
	}
	if err != nil {
		return fmt.Errorf("look at Run %s: %w", w.run.GetName(), err)
	}
	if done, err := w.see(got.GetRun()); done || err != nil {
		return err
	}
	stream, err := w.runs.WatchRuns(ctx, &hearthv1.WatchRunsRequest{Filter: filter, ResourceVersion: list.GetResourceVersion()})
	if err != nil {
		return err
	}
	defer stream.Close()
	for {
		event, err := stream.Receive()
		if connect.CodeOf(err) == connect.CodeOutOfRange {
			return w.follow(ctx)
		}
		if err != nil {
			return fmt.Errorf("watch Run %s: %w", w.run.GetName(), err)
		}
		if event.GetRun().GetUid() != w.run.GetUid() {
			continue
		}
		if event.GetType() == hearthv1.RunEventType_RUN_EVENT_TYPE_DELETED {
			return fmt.Errorf("wait for Run %s: %w", w.run.GetName(), errRemoved)
		}
		if done, err := w.see(event.GetRun()); done || err != nil {
			return err
		}
	}
}

func (w *waiter) see(run *hearthv1.Run) (bool, error) {
	w.run = run
	done, err := w.to(run)
	if err == nil { // else the error tells the story
		w.tell(run)
	}
	return done, err
}
