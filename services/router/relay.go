package router

import (
	"context"
	"fmt"

	"github.com/hearth-run/hearth/gen/serverless"
	"github.com/hearth-run/hearth/gen/serverless/serverlessconnect"
	"github.com/hearth-run/hearth/services/router/internal/placement"
)

type workerStream = serverlessconnect.ExecutionServiceRequestExecutionClientStream

// relay is one attempt: the client's body to the worker, the worker's answer back.
type relay struct {
	*dispatch
	to     placement.Placement
	worker workerStream

	// Of the worker's messages so far.
	answered, success bool
	container         string
}

// run ends when the worker's answer has, and returns how: io.EOF is a good end.
// When it returns, nothing is sent any more.
func (r *relay) run(ctx context.Context, cancel context.CancelFunc, header *serverless.WorkerExecutionRequest) error {
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		r.send(ctx, header)
	}()
	err := r.receive()
	cancel()
	<-sent
	r.worker.Close()
	return err
}

// send ends early when the worker does not take more; what it says in its answer
// tells why.
func (r *relay) send(ctx context.Context, header *serverless.WorkerExecutionRequest) {
	kept, _ := r.body.again()
	if r.worker.Send(header) != nil {
		return
	}
	for _, chunk := range kept {
		if r.worker.Send(r.part(chunk)) != nil {
			return
		}
	}
	for {
		select {
		case <-ctx.Done():
			return
		case chunk, more := <-r.body.chunks:
			if !more {
				r.worker.CloseSend()
				return
			}
			r.body.keep(chunk)
			if r.worker.Send(r.part(chunk)) != nil {
				return
			}
		}
	}
}

// part is a message of its own: what was sent is not touched again.
func (r *relay) part(chunk []byte) *serverless.WorkerExecutionRequest {
	return &serverless.WorkerExecutionRequest{
		RequestId: r.plan.request, SessionId: r.plan.session, WorkerId: r.to.Worker, Payload: chunk,
	}
}

// receive passes each message on before it takes the next.
func (r *relay) receive() error {
	for {
		msg, err := r.worker.Receive()
		if err != nil {
			return err
		}
		r.learn(msg)
		if out := r.translate(msg); out != nil {
			if err := r.client.Send(out); err != nil {
				return fmt.Errorf("%w: %w", errClientGone, err)
			}
		}
	}
}

// learn keeps what a message says of the call. The first one settles where it runs.
func (r *relay) learn(msg *serverless.WorkerExecutionResponse) {
	if !r.answered {
		r.body.settle()
		r.count(r.to, msg)
	}
	r.answered, r.success = true, msg.GetSuccess()
	if id := msg.GetContainerId(); id != "" && id != r.container {
		r.container = id
		r.cluster.Answered(r.call, r.to.Worker, id, msg.GetCheckpointId())
	}
}

// translate returns nil for a message that carries nothing for the client.
func (r *relay) translate(msg *serverless.WorkerExecutionResponse) *serverless.ClientExecutionResponse {
	out := &serverless.ClientExecutionResponse{
		RequestId: r.plan.request, SessionId: r.plan.session, Success: msg.GetSuccess(),
		WorkerId: r.to.Worker, ContainerId: msg.GetContainerId(), CheckpointId: msg.GetCheckpointId(),
		Start: msg.GetStart(), Budgets: msg.GetBudgets(),
	}
	if len(msg.GetSteps()) > 0 {
		out.Steps = r.way.with(msg.GetSteps())
	}
	switch data := msg.GetData().(type) {
	case *serverless.WorkerExecutionResponse_Logs:
		out.Data = &serverless.ClientExecutionResponse_Logs{Logs: data.Logs}
	case *serverless.WorkerExecutionResponse_Payload:
		out.Data = &serverless.ClientExecutionResponse_Payload{Payload: data.Payload}
	default:
		if msg.GetSuccess() {
			return nil
		}
	}
	return out
}
