package logs

import (
	"context"
	"errors"

	"connectrpc.com/connect/v2"

	"github.com/hearth-run/hearth/internal/kit/edge"
	"github.com/hearth-run/hearth/services/gateway/internal/invoke"
	"github.com/hearth-run/hearth/services/gateway/internal/route"
)

var (
	errNone        = errors.New("run has no log")
	errUnreachable = errors.New("node of the log cannot be reached")
)

// verdicts is what a gateway says of its own accord about logs. The rest is the
// node's verdict.
var verdicts = edge.Table{
	{Err: invoke.ErrNotFound, Code: connect.CodeNotFound, Reason: "RUN_NOT_FOUND", Text: "no Run of this name"},
	{Err: errNone, Code: connect.CodeNotFound, Reason: "LOG_NOT_FOUND", Text: "the Run has no log"},
	{Err: invoke.ErrNotReady, Code: connect.CodeFailedPrecondition, Reason: "RUN_NOT_READY", Text: "the Run was not placed on a node yet"},
	{Err: invoke.ErrStarting, Code: connect.CodeUnavailable, Reason: "GATEWAY_STARTING", Text: "the gateway has just started and does not know all Runs yet; look again in a moment"},
	{Err: errUnreachable, Code: connect.CodeUnavailable, Reason: "RUNTIME_UNAVAILABLE", Text: "the node that has the Run's log cannot be reached, or went away; resume behind the last sequence once it is back"},
}

// sendError is a caller who cannot be written to.
type sendError struct{ error }

func (e sendError) Unwrap() error { return e.error }

// judge says what the end of a node's stream means for the caller.
func judge(ctx context.Context, r *route.Route, err error) error {
	var peer *connect.Error
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, new(sendError)):
		return err
	case errors.As(err, &peer) && peer.IsRemote():
		return edge.Restate(err, map[string]string{edge.RunUID: r.RunUID})
	}
	return unreachable{err}
}

// unreachable keeps the cause for the log only: its words are not ours.
type unreachable struct{ cause error }

func (u unreachable) Error() string { return errUnreachable.Error() + ": " + u.cause.Error() }
func (u unreachable) Unwrap() error { return errUnreachable }
