package runtimeserver

import (
	"errors"

	"connectrpc.com/connect/v2"

	"github.com/hearth-run/hearth/internal/kit/edge"
)

// What the server itself refuses, and why it ends invocations.
var (
	errArgument     = errors.New("argument is invalid")
	errNoRun        = errors.New("no registration has this Run UID")
	errStale        = errors.New("registration ID is stale")
	errDraining     = errors.New("registration is draining")
	errFailed       = errors.New("registration has failed")
	errNotReady     = errors.New("registration is not ready")
	errAttemptStale = errors.New("registration attempt is stale")
	errDigest       = errors.New("registration digest differs")
	errActive       = errors.New("an invocation is active")
	errSuperseded   = errors.New("a higher registration attempt has ended this invocation")
	errUnregistered = errors.New("the function was unregistered during this invocation")
	errStopping     = errors.New("the Runtime Server is stopping")
	errFull         = errors.New("the Runtime Server is full")

	errNoExecution     = errors.New("no execution has this ID")
	errExecutionExists = errors.New("the ID belongs to another execution")
	errRunning         = errors.New("the execution is running")
)

// table is the server's edge, tested row by row.
var table = edge.Table{
	{Err: ErrHandlerInvalid, Code: connect.CodeInvalidArgument, Reason: "HANDLER_INVALID", Text: "the handler is invalid"},
	{Err: errArgument, Code: connect.CodeInvalidArgument, Reason: "INVALID_ARGUMENT", Text: "an argument is invalid"},
	{Err: ErrPayload, Code: connect.CodeInvalidArgument, Reason: "INVALID_ARGUMENT", Text: "the payload is invalid"},
	{Err: errNoRun, Code: connect.CodeNotFound, Reason: "RUN_NOT_FOUND", Text: "no registration has this Run UID: register the function first"},
	{Err: errDigest, Code: connect.CodeAlreadyExists, Reason: "REGISTRATION_DIGEST_MISMATCH", Text: "this attempt is registered with another digest: raise registration_attempt to replace it"},
	{Err: errAttemptStale, Code: connect.CodeFailedPrecondition, Reason: "REGISTRATION_ATTEMPT_STALE", Text: "a higher registration attempt is known for this Run"},
	{Err: errStale, Code: connect.CodeFailedPrecondition, Reason: "REGISTRATION_STALE", Text: "the registration ID is not the current one of this Run"},
	{Err: errDraining, Code: connect.CodeFailedPrecondition, Reason: "REGISTRATION_DRAINING", Text: "the registration is draining and takes no invocations"},
	{Err: errFailed, Code: connect.CodeFailedPrecondition, Reason: "REGISTRATION_FAILED", Text: "the registration has failed: FunctionStatus says why"},
	{Err: errNotReady, Code: connect.CodeFailedPrecondition, Reason: "REGISTRATION_NOT_READY", Text: "the registration is still loading"},
	{Err: errActive, Code: connect.CodeResourceExhausted, Reason: "INVOCATION_ACTIVE", Text: "an invocation is already active: a function runs one at a time and has no queue"},
	{Err: ErrHandler, Code: connect.CodeInternal, Reason: "HANDLER_ERROR", Text: "the handler failed"},
	{Err: ErrResponseTooLarge, Code: connect.CodeResourceExhausted, Reason: "RESPONSE_TOO_LARGE", Text: "the handler answered more than 1 MiB (1048576 bytes)"},
	{Err: ErrOutputsTooLarge, Code: connect.CodeResourceExhausted, Reason: "OUTPUTS_TOO_LARGE", Text: "the handler's outputs are too large"},
	{Err: ErrOutputsInvalid, Code: connect.CodeInternal, Reason: "OUTPUTS_INVALID", Text: "the handler's outputs are invalid"},
	{Err: errSuperseded, Code: connect.CodeCanceled, Reason: "CANCELED", Text: "a higher registration attempt has ended this invocation"},
	{Err: errUnregistered, Code: connect.CodeCanceled, Reason: "CANCELED", Text: "the function was unregistered during this invocation"},
	{Err: errStopping, Code: connect.CodeUnavailable, Reason: "RUNTIME_UNAVAILABLE", Text: "the Runtime Server is stopping"},
	{Err: errFull, Code: connect.CodeUnavailable, Reason: "RUNTIME_UNAVAILABLE", Text: "the Runtime Server has no room for another registration"},
	{Err: errNoExecution, Code: connect.CodeNotFound, Reason: "EXECUTION_NOT_FOUND", Text: "no execution has this ID"},
	{Err: errExecutionExists, Code: connect.CodeAlreadyExists, Reason: "EXECUTION_EXISTS", Text: "the ID belongs to an execution with another request: use another ID, or Forget it"},
	{Err: errRunning, Code: connect.CodeFailedPrecondition, Reason: "EXECUTION_RUNNING", Text: "the execution is running: Cancel it first"},
}
