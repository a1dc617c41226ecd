package desk

import (
	"errors"

	"connectrpc.com/connect/v2"

	"github.com/hearth-run/hearth/internal/kit/edge"
	"github.com/hearth-run/hearth/services/runtimed/internal/outputs"
)

// What a call can meet on this node, beside the Runtime Server's own verdict.
var (
	ErrRegistrationID = errors.New("registration id on the gateway's hop")
	ErrHeader         = errors.New("header is invalid")
	ErrInput          = errors.New("input is too large")
	ErrFenced         = errors.New("node is fenced")
	ErrNotFound       = errors.New("run is not here")
	ErrEnded          = errors.New("run has ended")
	ErrNotReady       = errors.New("run is not ready")
	ErrDraining       = errors.New("run is being released")
	ErrLifetime       = errors.New("run's lifetime has passed")
	ErrCut            = errors.New("call was cut off")
	ErrRuntime        = errors.New("runtime server is unreachable")
	ErrPeer           = errors.New("peer is unreachable")
	ErrResponse       = errors.New("response is too large")
	ErrAnswer         = errors.New("runtime server broke the contract")
	ErrMethod         = errors.New("method is not for gateways")
)

// Edge is every domain error of this node on the wire.
var Edge = edge.Table{
	{Err: ErrRegistrationID, Code: connect.CodeInvalidArgument, Reason: "INVALID_ARGUMENT", Text: "registration.registration_id must be empty on this hop: the node fills it in"},
	{Err: ErrHeader, Code: connect.CodeInvalidArgument, Reason: "INVALID_ARGUMENT", Text: "a header is invalid"},
	{Err: ErrInput, Code: connect.CodeInvalidArgument, Reason: "INVALID_ARGUMENT", Text: "input has more than 1048576 bytes"},
	// Before ErrFenced: a call that was cut off had been dispatched, whatever for.
	{Err: ErrCut, Code: connect.CodeUnavailable, Reason: "INVOCATION_LOST", Text: "this node gave the Run up while the call ran; whether it took effect is unknown"},
	{Err: ErrFenced, Code: connect.CodeFailedPrecondition, Reason: "NODE_FENCED", Text: "this node does not serve that attempt of the Run: look up its route again"},
	{Err: ErrNotFound, Code: connect.CodeNotFound, Reason: "RUN_NOT_FOUND", Text: "this node does not hold the Run"},
	{Err: ErrEnded, Code: connect.CodeNotFound, Reason: "RUN_ENDED", Text: "the Run has ended"},
	{Err: ErrNotReady, Code: connect.CodeFailedPrecondition, Reason: "RUN_NOT_READY", Text: "the Run is not ready yet: try again"},
	{Err: ErrDraining, Code: connect.CodeFailedPrecondition, Reason: "REGISTRATION_DRAINING", Text: "the Run is being released from this node"},
	{Err: ErrLifetime, Code: connect.CodeDeadlineExceeded, Reason: "LIFETIME_EXCEEDED", Text: "the Run's lifetime has passed"},
	{Err: ErrRuntime, Code: connect.CodeUnavailable, Reason: "RUNTIME_UNAVAILABLE", Text: "the Runtime Server cannot be reached; whether the call took effect is unknown"},
	{Err: ErrPeer, Code: connect.CodeUnavailable, Reason: "RUNTIME_UNAVAILABLE", Text: "the node that serves the Run cannot be reached; whether the call took effect is unknown"},
	{Err: ErrResponse, Code: connect.CodeResourceExhausted, Reason: "RESPONSE_TOO_LARGE", Text: "the handler answered more than 1048576 bytes"},
	{Err: outputs.ErrTooLarge, Code: connect.CodeResourceExhausted, Reason: "OUTPUTS_TOO_LARGE", Text: "the handler's outputs exceed 64 keys, 128 bytes a key, 8 KiB a value or 64 KiB in all"},
	{Err: outputs.ErrInvalid, Code: connect.CodeInternal, Reason: "OUTPUTS_INVALID", Text: "the handler's outputs have an empty key or are not UTF-8"},
	{Err: ErrAnswer, Code: connect.CodeInternal, Reason: "INTERNAL", Text: "the Runtime Server's answer breaks the contract"},
	{Err: ErrMethod, Code: connect.CodePermissionDenied, Reason: "METHOD_NOT_FOR_GATEWAYS", Text: "a node serves InvokeFunction only: registrations belong to the control plane"},
}
