package violator

import (
	"context"

	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/proto"

	executorv1 "github.com/hearth-run/hearth/gen/executor/v1"
)

// base is the fake's base service.
type base struct{ *Runtime }

func (b base) Health(context.Context, *executorv1.HealthRequest) (*executorv1.HealthResponse, error) {
	return &executorv1.HealthResponse{Healthy: !b.is("unhealthy")}, nil
}

func (b base) Execute(ctx context.Context, req *executorv1.ExecuteRequest) (*executorv1.ExecuteResponse, error) {
	r := b.Runtime
	if err := r.validate(req); err != nil {
		return nil, err
	}
	e, err := r.accept(req)
	if err != nil {
		return nil, err
	}
	if r.is("execute-waits") {
		select {
		case <-e.done:
		case <-ctx.Done():
		}
	}
	return &executorv1.ExecuteResponse{Id: req.GetId()}, nil
}

func (r *Runtime) accept(req *executorv1.ExecuteRequest) (*execution, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	id := req.GetId()
	if e := r.executions[id]; e != nil && !r.is("runs-again") {
		if proto.Equal(e.req, req) || r.is("ignores-other-request") {
			return e, nil
		}
		return nil, r.refuse(connect.CodeAlreadyExists, "ALREADY_EXISTS", "", "", "this id has another request")
	}
	if r.forgotten[id] && r.is("id-only-once") {
		return nil, r.refuse(connect.CodeAlreadyExists, "ALREADY_EXISTS", "", "", "this id was used")
	}
	program, err := r.program(req)
	if err != nil {
		return nil, err
	}
	e := newExecution(r, req)
	r.executions[id] = e
	r.background(func() { e.run(program) })
	return e, nil
}

// named returns the execution with this id; the caller holds mu.
func (r *Runtime) named(id string) (*execution, error) {
	if e := r.executions[id]; e != nil {
		return e, nil
	}
	return nil, r.refuse(connect.CodeNotFound, "NOT_FOUND", "", "", "no such execution")
}

func (b base) Status(_ context.Context, req *executorv1.StatusRequest) (*executorv1.StatusResponse, error) {
	r := b.Runtime
	if err := r.validate(req); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	e, err := r.named(req.GetId())
	if err != nil {
		return nil, err
	}
	res := e.status()
	if r.is("output-once") && res.GetState() == succeeded {
		e.stdout = nil
	}
	return res, nil
}

func (b base) List(context.Context, *executorv1.ListRequest) (*executorv1.ListResponse, error) {
	r := b.Runtime
	r.mu.Lock()
	defer r.mu.Unlock()
	var res executorv1.ListResponse
	for _, e := range r.executions {
		if s := e.status(); s.GetState() == running || !r.is("lists-running-only") {
			res.Entries = append(res.Entries, s)
		}
	}
	return &res, nil
}

func (b base) Cancel(_ context.Context, req *executorv1.CancelRequest) (*executorv1.CancelResponse, error) {
	r := b.Runtime
	if err := r.validate(req); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	e, err := r.named(req.GetId())
	if r.is("unknown-execution-is-fine") && err != nil {
		return &executorv1.CancelResponse{}, nil
	}
	if err != nil {
		return nil, err
	}
	if e.cancelled && r.is("cancel-once") {
		return nil, r.refuse(connect.CodeFailedPrecondition, "FAILED_PRECONDITION", "", "", "cancelled before")
	}
	e.stop("cancelled")
	return &executorv1.CancelResponse{}, nil
}

func (b base) Forget(_ context.Context, req *executorv1.ForgetRequest) (*executorv1.ForgetResponse, error) {
	r := b.Runtime
	if err := r.validate(req); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	e, err := r.named(req.GetId())
	if err != nil {
		return nil, err
	}
	if e.state == running && !r.is("forgets-running") {
		return nil, r.refuse(connect.CodeFailedPrecondition, "FAILED_PRECONDITION", "", "", "it is running: cancel it first")
	}
	if !r.is("forget-keeps") {
		delete(r.executions, req.GetId())
		r.forgotten[req.GetId()] = true
	}
	return &executorv1.ForgetResponse{}, nil
}
