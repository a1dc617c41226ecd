package invoke

import (
	"context"
	"errors"
	"net"
	"strings"

	"connectrpc.com/connect/v2"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/internal/kit/edge"
	"github.com/hearth-run/hearth/internal/kit/serve"
	"github.com/hearth-run/hearth/services/gateway/internal/route"
)

// What a gateway says of its own accord. Everything else is the node's verdict.
var (
	ErrNotFound    = errors.New("run is not there")
	ErrEnded       = errors.New("run has ended")
	ErrNotReady    = errors.New("run is not ready")
	ErrNotFunction = errors.New("run is no function")
	ErrTimeout     = errors.New("timeout is out of bounds")
	ErrStarting    = errors.New("route table was never whole")
	ErrOverloaded  = errors.New("too many calls at once")
	ErrUnreachable = errors.New("node cannot be reached")
	ErrLost        = errors.New("node went away during the call")
	ErrCut         = errors.New("call outlasted the gateway's drain")
)

// verdicts is the edge of the gateway.
var verdicts = edge.Table{
	{Err: ErrNotFound, Code: connect.CodeNotFound, Reason: "RUN_NOT_FOUND", Text: "no Run of this name"},
	{Err: ErrEnded, Code: connect.CodeNotFound, Reason: "RUN_ENDED", Text: "the Run has ended"},
	{Err: ErrNotReady, Code: connect.CodeFailedPrecondition, Reason: "RUN_NOT_READY", Text: "the Run is not ready; call again in a moment"},
	{Err: ErrNotFunction, Code: connect.CodeInvalidArgument, Reason: "RUN_NOT_FUNCTION", Text: "the Run is a task, which cannot be invoked; create a Run with a handler"},
	{Err: ErrTimeout, Code: connect.CodeInvalidArgument, Reason: "INVALID_ARGUMENT", Text: "timeout is out of bounds"},
	{Err: ErrStarting, Code: connect.CodeUnavailable, Reason: "GATEWAY_STARTING", Text: "the gateway has just started and does not know all Runs yet; call again in a moment"},
	{Err: ErrOverloaded, Code: connect.CodeUnavailable, Reason: "GATEWAY_OVERLOADED", Text: "the gateway has as many calls in flight as it takes; call again in a moment"},
	{Err: ErrUnreachable, Code: connect.CodeUnavailable, Reason: "RUNTIME_UNAVAILABLE", Text: "the Run's node cannot be reached; the function did not run"},
	{Err: ErrLost, Code: connect.CodeUnavailable, Reason: "RUNTIME_UNAVAILABLE", Text: "the Run's node went away during the call; whether the function ran is not known"},
	{Err: ErrCut, Code: connect.CodeUnavailable, Reason: "SHUTTING_DOWN", Text: "the gateway is shutting down and has ended the call; whether the function took effect is not known"},
}

// check says whether a call may be dispatched along a route.
func check(r *route.Route, call Call) error {
	switch {
	case r == nil:
		return edge.Publicf(ErrNotFound, "namespace %s has no Run %s that can be invoked; create it, or look at `hearth run list`", call.Namespace, call.Name)
	case call.RunUID != "" && call.RunUID != r.RunUID:
		return edge.Publicf(ErrNotFound, "Run %s/%s has another UID than %s: it was deleted and created anew", call.Namespace, call.Name, call.RunUID)
	case !r.Function:
		return ErrNotFunction
	case Ended(r.Phase):
		return edge.Publicf(ErrEnded, "Run %s/%s has ended: %s, %s", r.Namespace, r.Name, phase(r.Phase), reason(r.Reason))
	case r.Node == nil:
		return edge.Publicf(ErrNotReady, "Run %s/%s is not ready: %s, %s; call again in a moment", r.Namespace, r.Name, phase(r.Phase), reason(r.Reason))
	}
	return nil
}

// Ended says whether a phase is terminal.
func Ended(p hearthv1.RunPhase) bool {
	switch p {
	case hearthv1.RunPhase_RUN_PHASE_SUCCEEDED, hearthv1.RunPhase_RUN_PHASE_FAILED,
		hearthv1.RunPhase_RUN_PHASE_TIMEOUT, hearthv1.RunPhase_RUN_PHASE_CANCELLED:
		return true
	}
	return false
}

// judge turns what a dispatched call failed with into the caller's error.
func (i *Invoker) judge(ctx context.Context, call Call, r *route.Route, err error) error {
	var peer *connect.Error
	spoke := errors.As(err, &peer) && peer.IsRemote()
	switch {
	case errors.Is(context.Cause(ctx), serve.ErrDraining):
		return verdicts.Error(because{ErrCut, err}, facts(call, r.RunUID))
	case ctx.Err() != nil:
		return verdicts.Error(because{ctx.Err(), err}, facts(call, r.RunUID))
	case spoke && peer.Code() == connect.CodeNotFound:
		return verdicts.Error(i.lookAgain(ctx, call, r), facts(call, r.RunUID))
	case spoke && released[edge.Reason(err)]:
		if again := i.lookAgain(ctx, call, r); errors.Is(again, ErrEnded) || errors.Is(again, ErrNotFound) {
			return verdicts.Error(again, facts(call, r.RunUID))
		}
		return edge.Restate(err, facts(call, r.RunUID))
	case spoke:
		return edge.Restate(err, facts(call, r.RunUID))
	default:
		return verdicts.Error(because{silence(err), err}, facts(call, r.RunUID))
	}
}

// released are the reasons with which a node refuses a call of a Run that it is
// giving up. Who was told by the control plane that the Run has ended can be here
// before the node and the table have heard of it.
var released = map[string]bool{"REGISTRATION_DRAINING": true, "NODE_FENCED": true}

// because is a verdict with the cause beside it for the log only: what a client
// library authored underneath must not be taken for our own words.
type because struct{ verdict, cause error }

func (b because) Error() string { return b.verdict.Error() + ": " + b.cause.Error() }
func (b because) Unwrap() error { return b.verdict }

// silence says what it means that a node did not answer at all.
func silence(err error) error {
	var op *net.OpError
	switch {
	case errors.As(err, &op) && op.Op == "dial":
		return ErrUnreachable
	case connect.CodeOf(err) == connect.CodeDeadlineExceeded, errors.Is(err, context.DeadlineExceeded):
		return context.DeadlineExceeded
	default:
		return ErrLost
	}
}

// lookAgain asks the control plane once about a Run that its node does not have or
// gives up: it ended or moved, and the table has not heard of it yet. Nothing is
// dispatched again.
func (i *Invoker) lookAgain(ctx context.Context, call Call, r *route.Route) error {
	ctx, cancel := context.WithTimeout(ctx, i.limits.Look)
	defer cancel()
	res, err := i.control.GetRoute(ctx, &hearthv1.GetRouteRequest{Namespace: call.Namespace, Name: call.Name})
	if connect.CodeOf(err) == connect.CodeNotFound {
		return check(nil, call)
	}
	if err != nil {
		return edge.Publicf(ErrNotReady, "the node of Run %s/%s does not have it, and the control plane cannot be asked where it is; call again in a moment", r.Namespace, r.Name)
	}
	now := res.GetRoute()
	if now.GetPhase() == hearthv1.RunPhase_RUN_PHASE_READY && (call.RunUID == "" || call.RunUID == now.GetRunUid()) {
		return edge.Publicf(ErrNotReady, "Run %s/%s is on its way to another node; call again in a moment", r.Namespace, r.Name)
	}
	return check(&route.Route{
		Namespace: call.Namespace, Name: call.Name, RunUID: now.GetRunUid(),
		Phase: now.GetPhase(), Reason: now.GetReason(), Function: now.GetFunction(),
	}, call)
}

func phase(p hearthv1.RunPhase) string { return strings.TrimPrefix(p.String(), "RUN_PHASE_") }

func reason(r hearthv1.RunReason) string { return strings.TrimPrefix(r.String(), "RUN_REASON_") }
