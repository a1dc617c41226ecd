package worker

import (
	"context"
	"errors"

	"github.com/hearth-run/hearth/gen/serverless"
	"github.com/hearth-run/hearth/internal/kit/edge"
	"github.com/hearth-run/hearth/services/worker/internal/box"
	"github.com/hearth-run/hearth/services/worker/internal/ledger"
	"github.com/hearth-run/hearth/services/worker/internal/zygotes"
)

// acquire returns the container of a call: its session's, or a new one that starts
// from what origin says.
func (w *Worker) acquire(ctx context.Context, h *serverless.WorkerExecutionRequest, demand ledger.Demand, origin func() zygotes.Start) (*box.Box, error) {
	if id := h.GetContainerId(); id != "" {
		return w.reuse(ctx, id, h)
	}
	from := origin()
	b, err := w.admit(ctx, h, demand, from)
	if err != nil {
		if from.Ready != nil {
			w.zygotes.Discard(from.Ready)
		}
		return nil, err
	}
	// The start belongs to the container; this call waits for it no longer than it
	// lives itself.
	w.owners.Go(func() { b.Own(context.WithoutCancel(ctx), w.stop) })
	if err := b.Ready(ctx); err != nil {
		w.settle(b.ID, true)
		w.owners.Go(func() { b.Finish(false) }) // the start has to come to its end first
		return nil, err
	}
	return b, nil
}

func (w *Worker) reuse(ctx context.Context, id string, h *serverless.WorkerExecutionRequest) (*box.Box, error) {
	w.mu.Lock()
	e := w.boxes[id]
	w.mu.Unlock()
	if e == nil {
		return nil, edge.Publicf(box.ErrGone, "container %s is gone, and session %q with it: start a new session", id, h.GetSessionId())
	}
	if err := e.box.Acquire(ctx, h.GetSessionId(), h.GetRequestId()); err != nil {
		return nil, err
	}
	w.mu.Lock()
	e.over = ctx.Err
	w.mu.Unlock()
	return e.box, nil
}

// admit makes a container as soon as there is room: what is being taken down does
// not count against a call, it is waited for. Nothing else is.
// Errors: errFull, errStopping, ctx's cause.
func (w *Worker) admit(ctx context.Context, h *serverless.WorkerExecutionRequest, demand ledger.Demand, from zygotes.Start) (*box.Box, error) {
	for {
		w.mu.Lock()
		b, err := w.create(h, demand, from)
		if err == nil {
			w.boxes[b.ID].over = ctx.Err
		}
		freed, leaving := w.freed, w.leaving()
		w.mu.Unlock()
		if !errors.Is(err, errFull) || !leaving {
			return b, err
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// leaving says that a container is being taken down; the caller holds mu.
func (w *Worker) leaving() bool {
	for _, e := range w.boxes {
		if e.left() {
			return true
		}
	}
	return false
}

// create reserves what a container needs and returns its box, which nothing runs
// in yet; the caller holds mu.
func (w *Worker) create(h *serverless.WorkerExecutionRequest, demand ledger.Demand, from zygotes.Start) (*box.Box, error) {
	id := newContainer()
	if from.Ready != nil {
		id = from.Ready.ID
	}
	if w.stopping {
		return nil, errStopping
	}
	if err := w.ledger.Reserve(id, demand); err != nil {
		return nil, edge.Publicf(errFull, "the worker has no room: %v", err)
	}
	b := box.New(box.Config{
		ID: id, Session: h.GetSessionId(), IdleTimeout: w.cfg.IdleTimeout,
		Start:    func(ctx context.Context) (box.Running, error) { return w.starter.start(ctx, id, demand, from) },
		Grow:     func() (int64, bool) { return w.grow(id) },
		Report:   func(r box.Report) { w.report(id, r) },
		Released: func() { w.released(id) },
		Stuck:    func() { w.stuck(id) },
	}, h.GetRequestId(), w.log)
	w.boxes[id] = &entry{box: b, status: &serverless.ExecutorStatus{
		ContainerId: id, WorkerId: w.cfg.ID, RequestId: h.GetRequestId(), SessionId: h.GetSessionId(), Status: serverless.Status_STATUS_BUSY,
	}}
	return b, nil
}

// finish gives a container back after its call.
func (w *Worker) finish(b *box.Box, success bool) {
	w.settle(b.ID, !success || b.Session == "")
	b.Finish(success)
}

// settle notes that a container's call is over; leaving: its place comes free
// without anybody's doing.
func (w *Worker) settle(id string, leaving bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e := w.boxes[id]; e != nil {
		e.over, e.leaving = nil, leaving
	}
}

// released forgets a container of which nothing is left.
func (w *Worker) released(id string) {
	w.mu.Lock()
	e := w.boxes[id]
	delete(w.boxes, id)
	w.ledger.Release(id)
	w.wake()
	w.mu.Unlock()
	if e != nil {
		for _, release := range e.releases {
			release()
		}
	}
}

// stuck keeps the place of a container that cannot be destroyed, since its memory is
// not free; nobody waits for it any more.
func (w *Worker) stuck(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e := w.boxes[id]; e != nil {
		e.stuck = true
	}
	w.wake()
}

// wake lets the calls that wait for room look again; the caller holds mu.
func (w *Worker) wake() {
	close(w.freed)
	w.freed = make(chan struct{})
}
