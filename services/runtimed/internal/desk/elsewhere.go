package desk

import (
	"context"
	"errors"
	"fmt"

	"connectrpc.com/connect/v2"

	executorv1 "github.com/hearth-run/hearth/gen/executor/v1"
	"github.com/hearth-run/hearth/internal/kit/edge"
	"github.com/hearth-run/hearth/internal/kit/hop"
)

// elsewhere answers for a Run that this node does not hold: it passes the call on
// once, to the peer that serves it, or says that it is not here.
func (d *Desk) elsewhere(ctx context.Context, req *executorv1.InvokeFunctionRequest, fence hop.Fence, in *connect.Header) (*executorv1.InvokeFunctionResponse, error) {
	uid, gate := req.GetRegistration().GetRunUid(), d.gate.Load()
	if d.ended.has(uid) {
		return nil, ErrEnded
	}
	if d.peers == nil || in.Has(hop.Forwarded) {
		return nil, d.unknown(fence)
	}
	peer, ok := d.peers.Find(uid)
	if !ok || peer.Fence.NodeUID == gate.UID || !agrees(fence, peer.Fence, gate.UID) {
		return nil, d.unknown(fence)
	}
	ctx, out := connect.NewClientContext(ctx)
	peer.Fence.Write(out.RequestHeader())
	out.RequestHeader().Set(hop.Forwarded, gate.UID)
	if parent := in.Get(hop.Traceparent); parent != "" {
		out.RequestHeader().Set(hop.Traceparent, parent)
	}
	res, err := peer.Client.InvokeFunction(ctx, &executorv1.InvokeFunctionRequest{
		Registration:  &executorv1.FunctionRegistration{RunUid: uid},
		InvocationId:  req.GetInvocationId(),
		Input:         req.GetInput(),
		ContentType:   req.GetContentType(),
		TimeoutMillis: req.GetTimeoutMillis(),
	})
	if err != nil {
		return nil, passed(ctx, uid, req.GetInvocationId(), err)
	}
	return res, nil
}

// agrees says whether a call that was meant for this node, or for the peer, may go
// on to the peer: the attempt must be the one that the peer serves.
func agrees(call, peer hop.Fence, self string) bool {
	return (call.Attempt == 0 || call.Attempt == peer.Attempt) &&
		(call.NodeUID == "" || call.NodeUID == peer.NodeUID || call.NodeUID == self)
}

// unknown is the answer for a Run that is not here: a call that names another
// node is fenced off, one that is meant for this node is told to look again.
func (d *Desk) unknown(fence hop.Fence) error {
	gate := d.gate.Load()
	if !gate.opened(d.clock()) || (fence.NodeUID != "" && fence.NodeUID != gate.UID) {
		return ErrFenced
	}
	return ErrNotFound
}

func passed(ctx context.Context, runUID, invocationID string, err error) error {
	var peer *connect.Error
	if errors.As(err, &peer) && peer.IsRemote() {
		return edge.Restate(err, map[string]string{edge.RunUID: runUID, edge.InvocationID: invocationID})
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("%w: %w", ErrPeer, err)
}

// RegisterFunction is not for gateways.
func (d *Desk) RegisterFunction(context.Context, *executorv1.RegisterFunctionRequest) (*executorv1.RegisterFunctionResponse, error) {
	return nil, Edge.Error(ErrMethod, nil)
}

// FunctionStatus is not for gateways.
func (d *Desk) FunctionStatus(context.Context, *executorv1.FunctionStatusRequest) (*executorv1.FunctionStatusResponse, error) {
	return nil, Edge.Error(ErrMethod, nil)
}

// UnregisterFunction is not for gateways.
func (d *Desk) UnregisterFunction(context.Context, *executorv1.UnregisterFunctionRequest) (*executorv1.UnregisterFunctionResponse, error) {
	return nil, Edge.Error(ErrMethod, nil)
}
