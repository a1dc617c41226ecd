package runtimeserver

import (
	"context"
	"fmt"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/hearth-run/hearth/adapters/runtimeserver/internal/registration"
	executorv1 "github.com/hearth-run/hearth/gen/executor/v1"
	"github.com/hearth-run/hearth/internal/kit/edge"
)

// InvokeFunction runs one call and returns when nothing of it is left.
func (s *functions) InvokeFunction(ctx context.Context, req *executorv1.InvokeFunctionRequest) (*executorv1.InvokeFunctionResponse, error) {
	id := req.GetInvocationId()
	if id == "" {
		id = ulid.Make().String()
	}
	result, o, err := s.invoke(ctx, id, req)
	if err != nil {
		return nil, table.Error(err, map[string]string{edge.RunUID: req.GetRegistration().GetRunUid(), edge.InvocationID: stated(id)})
	}
	return &executorv1.InvokeFunctionResponse{
		Registration: o.reference(), InvocationId: id,
		Output: result.Output, ContentType: result.ContentType, Outputs: result.Outputs,
	}, nil
}

// stated is an invocation ID as far as it can be repeated in an error.
func stated(id string) string {
	if printable(id) != nil {
		return ""
	}
	return id
}

func (s *functions) invoke(ctx context.Context, id string, req *executorv1.InvokeFunctionRequest) (Result, *owner, error) {
	if err := s.admit(ctx); err != nil {
		return Result{}, nil, err
	}
	if err := printable(id); err != nil {
		return Result{}, nil, err
	}
	timeout, err := bounded("timeout_millis", req.GetTimeoutMillis(), defaultTimeout, maxTimeout)
	if err != nil {
		return Result{}, nil, err
	}
	if len(req.GetInput()) > MaxPayload {
		return Result{}, nil, edge.Publicf(ErrPayload, "input has %d bytes; at most %d", len(req.GetInput()), MaxPayload)
	}
	o, err := s.current(req.GetRegistration())
	if err != nil {
		return Result{}, nil, err
	}
	result, err := o.invoke(ctx, timeout, Call{InvocationID: id, Input: req.GetInput(), ContentType: req.GetContentType()})
	return result, o, err
}

// invoke asks the owner for the call and runs it to its end. The call's context
// ends with the caller's, at the timeout, or when the owner says so; the language
// then ends the call, so there is always an end to wait for.
func (o *owner) invoke(ctx context.Context, timeout time.Duration, call Call) (Result, error) {
	ctx, stop := context.WithTimeout(ctx, timeout)
	defer stop()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	call.Deadline, _ = ctx.Deadline()
	inv := &invocation{ctx: ctx, cancel: cancel, call: call}
	if err := o.hand(message{Event: registration.Event{Kind: registration.Invoke}, inv: inv}); err != nil {
		return Result{}, err
	}
	return o.call(inv)
}

// checked holds a result against the bounds of the contract, whatever the
// language did.
func checked(result Result, err error) (Result, error) {
	if err != nil {
		return Result{}, err
	}
	if len(result.Output) > MaxPayload {
		return Result{}, fmt.Errorf("%w: %d bytes", ErrResponseTooLarge, len(result.Output))
	}
	if err := CheckOutputs(result.Outputs); err != nil {
		return Result{}, err
	}
	return result, nil
}
