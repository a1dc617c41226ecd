package router

import (
	"errors"
	"fmt"

	"connectrpc.com/connect/v2"

	"github.com/hearth-run/hearth/internal/kit/edge"
	"github.com/hearth-run/hearth/services/router/internal/cluster"
	"github.com/hearth-run/hearth/services/router/internal/placement"
	"github.com/hearth-run/hearth/services/router/internal/sessions"
)

// What a call can come to in this file's package; the machines have errors of
// their own.
var (
	errFirst        = errors.New("first message is invalid")
	errSecondConfig = errors.New("second config")
	errBudget       = errors.New("budget is invalid")
	errPackage      = errors.New("package is invalid")
	errCheckpoint   = errors.New("checkpoint is unknown")
	errUnreachable  = errors.New("worker is unreachable")
	errBroken       = errors.New("worker ended in the middle")
	errStopping     = errors.New("router is stopping")
	errClientGone   = errors.New("client takes no more")
	errToken        = errors.New("token is missing or wrong")
	errStatus       = errors.New("status is invalid")

	errUnknownWorker = errors.New("worker is unknown")
)

var edgeTable = edge.Table{
	{Err: errFirst, Code: connect.CodeInvalidArgument, Reason: "FIRST_MESSAGE_INVALID", Text: "the first message must carry a config and a request_id, and no payload"},
	{Err: errSecondConfig, Code: connect.CodeInvalidArgument, Reason: "SECOND_CONFIG", Text: "only the first message may carry a config"},
	{Err: errBudget, Code: connect.CodeInvalidArgument, Reason: "BUDGET_INVALID", Text: "a budget is invalid"},
	{Err: errPackage, Code: connect.CodeInvalidArgument, Reason: "PACKAGE_INVALID", Text: "a package is invalid"},
	{Err: errCheckpoint, Code: connect.CodeInvalidArgument, Reason: "CHECKPOINT_UNKNOWN", Text: "the catalogue has no such checkpoint: leave checkpoint_id empty, and the router chooses one"},
	{Err: errStatus, Code: connect.CodeInvalidArgument, Reason: "STATUS_INVALID", Text: "a status must be READY, BUSY, ERROR or REMOVED"},
	{Err: errToken, Code: connect.CodeUnauthenticated, Reason: "TOKEN_INVALID", Text: "show the router's token: Authorization: Bearer TOKEN"},
	{Err: cluster.ErrInFlight, Code: connect.CodeAlreadyExists, Reason: "REQUEST_IN_FLIGHT", Text: "this request_id is in flight; choose another, or wait for its end"},
	{Err: sessions.ErrExpired, Code: connect.CodeNotFound, Reason: "SESSION_EXPIRED", Text: "the session has expired, and its state is gone: start a new session under another session_id"},
	{Err: placement.ErrContainerGone, Code: connect.CodeNotFound, Reason: "SESSION_EXPIRED", Text: "the session has expired, and its state is gone: start a new session under another session_id"},
	{Err: placement.ErrRestored, Code: connect.CodeFailedPrecondition, Reason: "SESSION_RESTORED", Text: "the session's container was started from a checkpoint: leave disable_optimized_execution unset, or start a new session"},
	{Err: placement.ErrNoWorker, Code: connect.CodeUnavailable, Reason: "NO_WORKER", Text: "no worker is ready"},
	{Err: placement.ErrPreparing, Code: connect.CodeUnavailable, Reason: "WORKER_PREPARING", Text: "no worker is ready yet, one is being prepared: its first start makes a Python environment, which can take a minute; try again"},
	{Err: placement.ErrWorkerNotReady, Code: connect.CodeUnavailable, Reason: "WORKER_NOT_READY", Text: "the worker of this session takes no calls at the moment"},
	{Err: placement.ErrNoneFits, Code: connect.CodeResourceExhausted, Reason: "NO_CAPACITY", Text: "no worker has room for this call: ask for less, or try again later"},
	{Err: cluster.ErrQueueFull, Code: connect.CodeResourceExhausted, Reason: "QUEUE_FULL", Text: "too many calls wait for room: try again later"},
	{Err: cluster.ErrSessionWait, Code: connect.CodeResourceExhausted, Reason: "SESSION_WAIT_OVER", Text: "the calls of this session before this one took too long"},
	{Err: cluster.ErrWorkerLost, Code: connect.CodeUnavailable, Reason: "WORKER_LOST", Text: "the worker was lost during the call"},
	{Err: errUnknownWorker, Code: connect.CodeNotFound, Reason: "WORKER_UNKNOWN", Text: "no such worker has registered"},
	{Err: errUnreachable, Code: connect.CodeUnavailable, Reason: "WORKER_UNREACHABLE", Text: "the worker could not be reached"},
	{Err: errBroken, Code: connect.CodeUnavailable, Reason: "WORKER_LOST", Text: "the worker was lost during the call"},
	{Err: errClientGone, Code: connect.CodeCanceled, Reason: "CANCELED", Text: "the caller went away"},
	{Err: errStopping, Code: connect.CodeUnavailable, Reason: "SHUTTING_DOWN", Text: "the router is shutting down"},
}

// publicError is a sentinel with a text for the caller.
type publicError struct {
	error
	text string
}

func (e *publicError) Public() string { return e.text }
func (e *publicError) Unwrap() error  { return e.error }

func publicly(sentinel error, format string, args ...any) error {
	return &publicError{sentinel, fmt.Sprintf(format, args...)}
}

// verdict is what a worker itself has answered; it passes through.
type verdict struct{ err error }

func (v *verdict) Error() string { return "worker answered: " + v.err.Error() }
func (v *verdict) Unwrap() error { return v.err }

// atEdge says what a call's error is on the wire.
func atEdge(err error, meta map[string]string) error {
	if v, ok := errors.AsType[*verdict](err); ok {
		return edge.Restate(v.err, meta)
	}
	return edgeTable.Error(err, meta)
}
