package router

import (
	"context"
	"errors"
	"fmt"
	"io"

	"connectrpc.com/connect/v2"

	"github.com/hearth-run/hearth/gen/serverless"
	"github.com/hearth-run/hearth/internal/kit/edge"
	"github.com/hearth-run/hearth/services/router/internal/catalogue"
	"github.com/hearth-run/hearth/services/router/internal/cluster"
	"github.com/hearth-run/hearth/services/router/internal/placement"
	"github.com/hearth-run/hearth/services/router/internal/sessions"
	"github.com/hearth-run/hearth/services/router/internal/workers"
)

// dispatch is one call that has its turn: it tries workers until one takes it.
type dispatch struct {
	*Service
	way    *way
	call   *cluster.Call
	plan   *plan
	client clientStream
	body   *body
	meta   map[string]string // of the error, if it comes to one
}

// result is what came of one worker.
type result struct {
	outcome sessions.Outcome
	err     error
	// again: nothing ran, and the next worker may be tried.
	again bool
}

// run places the call and tries the chosen worker; one that refuses is left out of
// the next choice.
func (d *dispatch) run(ctx context.Context, pin sessions.Pin) (sessions.Outcome, error) {
	want := d.plan.want
	want.Worker, want.Container = pin.Worker, pin.Container
	var refusal error
	for range d.cfg.Attempts {
		to, err := d.cluster.Place(ctx, d.call, want)
		if err != nil {
			if refusal != nil && ctx.Err() == nil {
				err = refusal // says more than that nobody else is left
			}
			return sessions.Untouched, err
		}
		d.way.step("place")
		d.meta["worker_id"] = to.Worker
		r := d.try(ctx, to)
		d.cluster.Vacate(d.call, to.Container != "" && r.outcome == sessions.Untouched || d.plan.session != "" && r.outcome == sessions.Kept)
		if !r.again {
			return r.outcome, r.err
		}
		d.counters.refused.Add(1)
		d.log.Info("next worker", "request_id", d.plan.request, "worker_id", to.Worker, "cause", r.err)
		refusal = r.err
		want.Without = append(want.Without, to.Worker)
	}
	return sessions.Untouched, refusal
}

// try sends the call to one worker and relays until it ends.
func (d *dispatch) try(ctx context.Context, to placement.Placement) result {
	known := d.catalogues.Flavor(to.Flavor)
	checkpoint, err := d.checkpoint(to, known)
	if err != nil {
		return result{err: err}
	}
	client, err := d.workers.Client(to.URI)
	if err != nil {
		return result{err: fmt.Errorf("%w: %w", errUnreachable, err), again: to.Container == ""}
	}
	attempt, cancel := context.WithCancel(ctx)
	defer cancel()
	worker, err := client.RequestExecution(attempt)
	r := &relay{dispatch: d, to: to, worker: worker}
	if err == nil {
		err = r.run(attempt, cancel, d.plan.header(to, checkpoint, known.Base()))
	}
	return d.judge(ctx, r, err)
}

// checkpoint is where every start of a new container is chosen; "" is a cold one.
// Errors: errCheckpoint.
func (d *dispatch) checkpoint(to placement.Placement, known *catalogue.Catalogue) (string, error) {
	holds := d.cluster.Holds(to.Worker)
	switch wanted := d.plan.checkpoint; {
	case to.Container != "" || d.plan.cold:
		return "", nil
	case wanted == "":
		return known.Cheapest(d.plan.imports, holds), nil
	case !known.Has(wanted) && !d.cluster.Warm(wanted):
		return "", publicly(errCheckpoint, "the catalogue of flavor %s has no checkpoint %q: leave checkpoint_id empty, and the router chooses one", to.Flavor, wanted)
	case !holds(wanted):
		return "", nil // never one that the worker lacks
	default:
		return wanted, nil
	}
}

// count notes how a call came to its container, as its worker says; one that says
// nothing has done what it was asked.
func (d *dispatch) count(to placement.Placement, msg *serverless.WorkerExecutionResponse) {
	switch start := msg.GetStart(); {
	case start == serverless.ContainerStart_CONTAINER_START_SESSION, to.Container != "":
		d.counters.session.Add(1)
	case start == serverless.ContainerStart_CONTAINER_START_POOLED:
		d.counters.pooled.Add(1)
	case start == serverless.ContainerStart_CONTAINER_START_CHECKPOINT, msg.GetCheckpointId() != "":
		d.counters.checkpoint.Add(1)
	default:
		d.counters.cold.Add(1)
	}
}

// judge says what the end of an attempt means: for the caller, for the session,
// and whether another worker may be tried.
func (d *dispatch) judge(ctx context.Context, r *relay, err error) result {
	_, whole := d.body.again()
	free := whole && !r.answered && r.to.Container == ""
	switch {
	case errors.Is(err, io.EOF) && (r.success || !r.answered):
		return result{outcome: sessions.Kept}
	case errors.Is(err, io.EOF):
		return result{outcome: sessions.Failed}
	case workers.Verdict(err) && !r.answered && refused(err):
		return result{err: &verdict{err}, again: free}
	case ctx.Err() != nil: // says more than what the worker makes of a call that ends under it
		return result{outcome: sessions.Failed, err: context.Cause(ctx)}
	case workers.Verdict(err):
		return result{outcome: sessions.Failed, err: &verdict{err}}
	case errors.Is(err, errClientGone):
		return result{outcome: sessions.Failed, err: err}
	case workers.NotReached(err):
		return result{err: fmt.Errorf("%w: %w", errUnreachable, err), again: free}
	default:
		return result{outcome: sessions.Failed, err: fmt.Errorf("%w: %w", errBroken, err)}
	}
}

// refused says whether a worker's verdict is one of its admission, before
// anything ran.
func refused(err error) bool {
	switch edge.Reason(err) {
	case "WORKER_FULL", "WORKER_STOPPING", "ADMISSION_REFUSED":
		return true
	case "", edge.CodeReason(connect.CodeResourceExhausted):
		return connect.CodeOf(err) == connect.CodeResourceExhausted
	default:
		return false
	}
}
