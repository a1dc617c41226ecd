package worker

import (
	"errors"

	"connectrpc.com/connect/v2"

	"github.com/hearth-run/hearth/internal/kit/edge"
	"github.com/hearth-run/hearth/services/worker/internal/box"
	"github.com/hearth-run/hearth/services/worker/internal/packages"
)

// What an execution can come to beside its answer.
var (
	errHeader       = errors.New("header is invalid")
	errInFlight     = errors.New("request is in flight")
	errFull         = errors.New("worker is full")
	errStopping     = errors.New("worker is stopping")
	errNotReady     = errors.New("worker is not ready")
	errStart        = errors.New("container did not start")
	errExecutorDied = errors.New("executor ended during the call")
	errOutOfMemory  = errors.New("out of memory")
	errOtherWorker  = errors.New("another worker is meant")
	errZygotesOff   = errors.New("worker keeps no zygotes")
	errUnfit        = errors.New("imports make no zygote")
	errModules      = errors.New("modules are invalid")
	errNotPinned    = errors.New("zygote is not pinned")
	errNotGrown     = errors.New("zygote did not grow")
	errConflict     = errors.New("packages bring a module that is loaded already")
)

// Reasons that routers branch on.
const (
	// ReasonFull: refused before anything ran; another worker may be tried.
	ReasonFull = "WORKER_FULL"
	// ReasonStopping: as ReasonFull.
	ReasonStopping = "WORKER_STOPPING"
	// ReasonContainerGone: the session's container is not there any more.
	ReasonContainerGone = "CONTAINER_GONE"
)

var edgeTable = edge.Table{
	{Err: errHeader, Code: connect.CodeInvalidArgument, Reason: "INVALID_ARGUMENT", Text: "the first message must be a header"},
	{Err: errInFlight, Code: connect.CodeAlreadyExists, Reason: "REQUEST_IN_FLIGHT", Text: "this request_id is in flight; choose another, or wait for its end"},
	{Err: errFull, Code: connect.CodeResourceExhausted, Reason: ReasonFull, Text: "the worker has no room for this call"},
	{Err: errStopping, Code: connect.CodeUnavailable, Reason: ReasonStopping, Text: "the worker is stopping"},
	{Err: errNotReady, Code: connect.CodeUnavailable, Reason: ReasonStopping, Text: "the worker is not ready yet"},
	{Err: box.ErrGone, Code: connect.CodeNotFound, Reason: ReasonContainerGone, Text: "the container of this session is gone: start a new session"},
	{Err: packages.ErrInstall, Code: connect.CodeFailedPrecondition, Reason: "PACKAGE_INSTALL_FAILED", Text: "the packages could not be installed"},
	{Err: errOtherWorker, Code: connect.CodeNotFound, Reason: "WORKER_UNKNOWN", Text: "this is another worker"},
	{Err: errZygotesOff, Code: connect.CodeFailedPrecondition, Reason: "ZYGOTES_OFF", Text: "this worker keeps no zygotes: give it --zygote-memory, and a machine that allows them"},
	{Err: errUnfit, Code: connect.CodeFailedPrecondition, Reason: "ZYGOTE_UNFIT", Text: "these imports make no zygote"},
	{Err: errModules, Code: connect.CodeInvalidArgument, Reason: "MODULES_INVALID", Text: "name top-level modules, such as pandas, numpy"},
	{Err: errNotPinned, Code: connect.CodeNotFound, Reason: "ZYGOTE_NOT_PINNED", Text: "no zygote of exactly these modules is pinned"},
	{Err: errNotGrown, Code: connect.CodeUnavailable, Reason: "ZYGOTE_NOT_GROWN", Text: "the zygote could not be grown this time"},
	{Err: errConflict, Code: connect.CodeFailedPrecondition, Reason: "PACKAGE_CONFLICT", Text: "the packages bring a module that this container has loaded already: name them in config.packages of the session's first call"},
	{Err: errOutOfMemory, Code: connect.CodeResourceExhausted, Reason: "OUT_OF_MEMORY", Text: "the container ran out of memory: raise the memory budget's max"},
	{Err: errStart, Code: connect.CodeUnavailable, Reason: "CONTAINER_START_FAILED", Text: "the container did not start"},
	{Err: errExecutorDied, Code: connect.CodeUnavailable, Reason: "EXECUTOR_DIED", Text: "the executor ended during the call"},
}
