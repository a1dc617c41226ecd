package worker

import (
	"context"
	"errors"
	"fmt"

	"github.com/hearth-run/hearth/gen/serverless"
	"github.com/hearth-run/hearth/gen/serverless/serverlessconnect"
	"github.com/hearth-run/hearth/internal/kit/edge"
	"github.com/hearth-run/hearth/services/worker/internal/box"
	"github.com/hearth-run/hearth/services/worker/internal/ledger"
	"github.com/hearth-run/hearth/services/worker/internal/zygotes"
)

// service is ExecutionService.
type service struct{ *Worker }

// RequestExecution runs one execution.
func (s service) RequestExecution(ctx context.Context, stream serverlessconnect.ExecutionServiceRequestExecutionServerStream) error {
	header, err := stream.Receive()
	switch {
	case err != nil && ctx.Err() != nil:
		return edgeTable.Error(ctx.Err(), nil) // the caller went away before its header came
	case err != nil:
		return edgeTable.Error(fmt.Errorf("%w: %w", errHeader, err), nil)
	}
	meta := map[string]string{"request_id": header.GetRequestId(), "session_id": header.GetSessionId(), "worker_id": s.cfg.ID}
	return edgeTable.Error(s.serve(ctx, header, stream), meta)
}

func (w *Worker) serve(ctx context.Context, header *serverless.WorkerExecutionRequest, stream serverlessconnect.ExecutionServiceRequestExecutionServerStream) error {
	if err := w.check(header); err != nil {
		return err
	}
	leave, err := w.enter(header.GetRequestId())
	if err != nil {
		return err
	}
	defer leave()
	c := &call{header: header, stream: stream, body: &body{receive: stream.Receive, limit: w.cfg.ReplayLimit}}
	return w.execute(ctx, c)
}

// check refuses what no container may see.
func (w *Worker) check(h *serverless.WorkerExecutionRequest) error {
	switch {
	case h.GetRequestId() == "":
		return edge.Publicf(errHeader, "request_id is empty: the first message must carry one")
	case len(h.GetPayload()) > 0:
		return edge.Publicf(errHeader, "the first message is a header and carries no payload: send the body in further messages")
	case h.GetWorkerId() != "" && h.GetWorkerId() != w.cfg.ID:
		return edge.Publicf(errHeader, "worker_id %q: this is worker %q", h.GetWorkerId(), w.cfg.ID)
	case h.GetContainerId() != "" && h.GetSessionId() == "":
		return edge.Publicf(errHeader, "container_id goes with a session_id: only a session's container is used again")
	}
	return nil
}

// execute acquires a container, runs the call in it and gives it back. A call
// that its container's memory was too small for is tried once more.
func (w *Worker) execute(ctx context.Context, c *call) error {
	demand, err := w.demand(c.header.GetBudgets())
	if err != nil {
		return err
	}
	err = w.once(ctx, c, demand, false)
	if errors.Is(err, errConflict) && c.header.GetContainerId() == "" && !c.begun && c.body.replayable() {
		w.log.Info("try again cold", "request_id", c.header.GetRequestId(), "cause", err)
		return w.once(ctx, c, demand, true)
	}
	if !errors.Is(err, errOutOfMemory) || c.header.GetSessionId() != "" || c.begun || !c.body.replayable() {
		return err
	}
	twice, ok := w.twice(demand)
	if !ok {
		return err
	}
	w.log.Info("try again with twice the memory", "request_id", c.header.GetRequestId(), "memory", twice.Memory)
	return w.once(ctx, c, twice, false)
}

// once is one try; cold: whatever the worker holds.
func (w *Worker) once(ctx context.Context, c *call, demand ledger.Demand, cold bool) error {
	watch := newStopwatch()
	modules, release, err := w.install(ctx, c.header.GetPackages())
	if err != nil {
		return err
	}
	defer release()
	if len(c.header.GetPackages()) > 0 {
		watch.lap("packages")
	}
	b, err := w.acquire(ctx, c.header, demand, func() zygotes.Start { return w.origin(c.header, modules, cold) })
	if err != nil {
		return err
	}
	w.count(c.header, b)
	c.steps = watch.steps
	if c.header.GetContainerId() == "" {
		c.steps = append(c.steps, b.Steps...)
	}
	if module := clash(b, modules); module != "" { // a session's container, since origin avoids it
		err = conflict(module)
	}
	if err == nil {
		err = w.furnish(ctx, c, b)
	}
	if err == nil {
		err = w.run(ctx, c, b)
	}
	w.finish(b, err == nil)
	return err
}

// furnish installs what the header names and shows it to the executor.
func (w *Worker) furnish(ctx context.Context, c *call, b *box.Box) error {
	if len(c.header.GetPackages()) == 0 {
		return nil
	}
	paths, err := w.fetch(ctx, b, c.header.GetPackages())
	if err != nil {
		return err
	}
	return b.Executor.UsePaths(paths)
}

// demand reads the budgets of a call; a kind that is not named gets its default.
func (w *Worker) demand(budgets []*serverless.ResourceBudget) (ledger.Demand, error) {
	d := ledger.Demand{Memory: w.cfg.DefaultMemory}
	for _, b := range budgets {
		switch b.GetKind() {
		case serverless.ResourceKind_RESOURCE_KIND_MEMORY:
			if b.GetAlloc() > 0 {
				d.Memory = b.GetAlloc()
			}
			d.MaxMemory = b.GetMax()
		case serverless.ResourceKind_RESOURCE_KIND_GPU_MEMORY:
			d.GPUMemory = b.GetAlloc()
		}
	}
	const least = 16 << 20
	if d.Memory < least {
		return d, edge.Publicf(errHeader, "memory budget of %d bytes: an interpreter needs at least %d", d.Memory, least)
	}
	return d, nil
}
