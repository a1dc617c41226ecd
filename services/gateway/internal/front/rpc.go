package front

import (
	"cmp"
	"context"
	"time"

	"connectrpc.com/connect/v2"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/internal/kit/edge"
	"github.com/hearth-run/hearth/internal/kit/hop"
	"github.com/hearth-run/hearth/services/gateway/internal/invoke"
)

// RPC serves hearth.v1.InvokeService with the codes and reasons of the plain
// route. The shape of a request was checked by its rules before it comes here.
type RPC struct {
	invoker Invoker
	gate    *invoke.Gate
}

// NewRPC returns the service; it shares gate with the plain routes.
func NewRPC(invoker Invoker, gate *invoke.Gate) *RPC { return &RPC{invoker, gate} }

// Invoke makes one invocation.
func (s *RPC) Invoke(ctx context.Context, req *hearthv1.InvokeRequest) (*hearthv1.InvokeResponse, error) {
	info, _ := connect.CallInfoForServerContext(ctx)
	if err := s.gate.Enter(); err != nil {
		return nil, retryable(info, err)
	}
	defer s.gate.Leave()
	answer, err := s.invoker.Do(ctx, invoke.Call{
		Namespace:    cmp.Or(req.GetNamespace(), "default"),
		Name:         req.GetName(),
		RunUID:       req.GetRunUid(),
		InvocationID: req.GetInvocationId(),
		Input:        req.GetInput(),
		ContentType:  cmp.Or(req.GetContentType(), jsonType),
		Timeout:      time.Duration(req.GetTimeoutMillis()) * time.Millisecond,
		Traceparent:  info.RequestHeader().Get(hop.Traceparent),
	})
	if err != nil {
		return nil, retryable(info, err)
	}
	return &hearthv1.InvokeResponse{
		RunUid: answer.RunUID, InvocationId: answer.InvocationID,
		Output: answer.Output, ContentType: answer.ContentType, Outputs: answer.Outputs,
	}, nil
}

// retryable sets Retry-After where the plain route would.
func retryable(info *connect.CallInfo, err error) error {
	if retry := RetryAfter(Status(connect.CodeOf(err), edge.Reason(err))); retry != "" {
		info.ResponseHeader().Set("Retry-After", retry)
	}
	return err
}
