package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/hearth-run/hearth/gen/serverless"
	"github.com/hearth-run/hearth/gen/serverless/serverlessconnect"
	"github.com/hearth-run/hearth/internal/kit/edge"
	"github.com/hearth-run/hearth/pyrunner/frame"
	"github.com/hearth-run/hearth/services/worker/internal/box"
)

// pieceBytes is how much of an answer travels in one message.
const pieceBytes = 256 << 10

// call is one execution on its way through the worker.
type call struct {
	header *serverless.WorkerExecutionRequest
	body   *body
	stream serverlessconnect.ExecutionServiceRequestExecutionServerStream
	// begun says that part of the answer was sent: nothing is tried again.
	begun bool
	// steps are where the time went before its container was there.
	steps []box.Step
}

// attempt is one try of a call in one container. It takes what the executor says
// and hands it to the one goroutine that sends.
type attempt struct {
	call     *call
	worker   *Worker
	box      *box.Box
	ctx      context.Context
	items    chan item
	executed chan struct{}
	once     sync.Once
	watch    *stopwatch
}

// item is one thing to send, or the end.
type item struct {
	logs    string
	payload []byte
	end     bool
	err     error
}

// run hands the body to the box's executor and sends what comes back.
func (w *Worker) run(ctx context.Context, c *call, b *box.Box) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	a := &attempt{call: c, worker: w, box: b, ctx: ctx, items: make(chan item), executed: make(chan struct{}), watch: newStopwatch()}
	conn, err := b.Executor.Dial(ctx, a)
	if err != nil {
		return w.postMortem(b, err)
	}
	defer b.Executor.Detach()
	// A connection that is closed ends both of its goroutines.
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer func() { _ = conn.Close() }()
	defer stop()
	go a.sendBody(conn)
	go a.readAnswer(conn)
	return a.relay()
}

// sendBody passes the client's chunks on as they come.
func (a *attempt) sendBody(conn *net.UnixConn) {
	w := frame.NewChunkWriter(conn)
	err := a.call.body.copyTo(w)
	if err == nil {
		err = w.Close()
	}
	var gone *clientError
	if errors.As(err, &gone) {
		a.put(item{err: gone.err})
	}
	// A write that fails says nothing that the answer's end does not say better.
}

// readAnswer passes the answer on as it comes, after everything that was printed.
func (a *attempt) readAnswer(conn *net.UnixConn) {
	r := frame.NewChunkReader(conn)
	for {
		piece, err := r.Piece(pieceBytes)
		if len(piece) > 0 {
			select {
			case <-a.executed:
			case <-a.ctx.Done():
				return
			}
			a.put(item{payload: piece})
		}
		if errors.Is(err, io.EOF) {
			a.put(item{end: true})
			return
		}
		if err != nil {
			a.put(item{err: a.worker.postMortem(a.box, err)})
			return
		}
	}
}

// relay is the only sender of the call's stream.
func (a *attempt) relay() error {
	for {
		select {
		case i := <-a.items:
			switch {
			case i.err != nil:
				return i.err
			case i.end:
				return nil
			}
			if err := a.send(i); err != nil {
				return err
			}
		case <-a.ctx.Done():
			return context.Cause(a.ctx)
		}
	}
}

func (a *attempt) send(i item) error {
	h := a.call.header
	res := &serverless.WorkerExecutionResponse{
		RequestId: h.GetRequestId(), SessionId: h.GetSessionId(), WorkerId: a.worker.cfg.ID,
		ContainerId: a.box.ID, CheckpointId: a.box.Checkpoint, Success: true, Budgets: a.worker.budgets(a.box, h),
		Start: came(h, a.box),
	}
	if i.payload != nil {
		if !a.call.begun {
			a.watch.lap("call")
			res.Steps = steps(a.call.steps, a.watch.steps)
		}
		a.call.begun = true
		res.Data = &serverless.WorkerExecutionResponse_Payload{Payload: i.payload}
	} else {
		res.Data = &serverless.WorkerExecutionResponse_Logs{Logs: i.logs}
	}
	return a.call.stream.Send(res)
}

// came says how a call came to its container: what happened, not what was asked.
func came(h *serverless.WorkerExecutionRequest, b *box.Box) serverless.ContainerStart {
	switch {
	case h.GetContainerId() != "":
		return serverless.ContainerStart_CONTAINER_START_SESSION
	case b.Ahead:
		return serverless.ContainerStart_CONTAINER_START_POOLED
	case b.Checkpoint != "":
		return serverless.ContainerStart_CONTAINER_START_CHECKPOINT
	default:
		return serverless.ContainerStart_CONTAINER_START_COLD
	}
}

func (a *attempt) put(i item) {
	select {
	case a.items <- i:
	case <-a.ctx.Done():
	}
}

// Log implements box.Sink.
func (a *attempt) Log(text string) { a.put(item{logs: text}) }

// Executed implements box.Sink.
func (a *attempt) Executed() { a.once.Do(func() { close(a.executed) }) }

// Packages implements box.Sink: an old client names its packages in the payload.
func (a *attempt) Packages(requirements []string) ([]string, error) {
	modules, release, err := a.worker.install(a.ctx, requirements)
	if err != nil {
		return nil, err
	}
	defer release()
	if module := clash(a.box, modules); module != "" {
		err := conflict(module)
		a.put(item{err: err}) // the call begins anew, cold, if that can be
		return nil, err
	}
	return a.worker.fetch(a.ctx, a.box, requirements)
}

// steps are the parts of a call's way, for the answer.
func steps(lists ...[]box.Step) []*serverless.ExecutionStep {
	var out []*serverless.ExecutionStep
	for _, list := range lists {
		for _, step := range list {
			out = append(out, &serverless.ExecutionStep{Name: step.Name, Nanos: int64(step.Took)})
		}
	}
	return out
}

// postMortem says why an executor's connection broke, from how its container
// ended.
func (w *Worker) postMortem(b *box.Box, broke error) error {
	ctx, cancel := context.WithTimeout(context.Background(), w.cfg.Drain)
	defer cancel()
	exit, err := b.Exit(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", errExecutorDied, broke)
	case exit.OOMKills > 0:
		held := w.reserved(b.ID)
		return edge.Publicf(errOutOfMemory, "the container ran out of memory at %d bytes: raise the memory budget's alloc or max", held.Memory)
	case exit.Killed:
		return fmt.Errorf("%w: %w", errExecutorDied, broke)
	case exit.Signal != 0:
		return edge.Publicf(errExecutorDied, "the executor was ended by signal %d (%v) during the call", int(exit.Signal), exit.Signal)
	default:
		return edge.Publicf(errExecutorDied, "the executor exited with code %d during the call", exit.Code)
	}
}
