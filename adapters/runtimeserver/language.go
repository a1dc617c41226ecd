// Package runtimeserver owns the Runtime Server contract once, for every
// language: registrations and their fences, limits, errors and log files. A
// language is a small driver behind Language.
package runtimeserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/hearth-run/hearth/adapters/internal/process"
)

// Language starts and calls functions of one language.
type Language interface {
	// Name is the name of the Runtime: "python", "bash".
	Name() string
	// Resolve says whether handler can be one: its form, and a file beneath dir
	// with symlinks resolved. It runs no user code.
	// Errors: ErrHandlerInvalid with a text for the caller (edge.Publicf).
	Resolve(dir, handler string) error
	// Load starts an instance and loads the handler in it, until the handler can
	// be called. When ctx is done first, nothing of the load is left.
	// Errors: ErrHandlerInvalid (the name is no function), *LoadError, ctx's cause.
	Load(ctx context.Context, f Function) (Instance, error)
}

// Instance is one loaded function. Its methods are called by one owner, one at a
// time, but for Close, which may interrupt Invoke.
type Instance interface {
	// Invoke runs one call. When ctx is done the call is ended with every process
	// that it started before Invoke returns, and the instance is ready for the next
	// call. It never outlives ctx by more than the time a kill takes.
	// Errors: *HandlerError, ErrResponseTooLarge, ErrOutputsInvalid,
	// ErrOutputsTooLarge, ErrPayload, *LoadError (the successor could not be
	// loaded), ctx's cause.
	Invoke(ctx context.Context, call Call) (Result, error)
	// Close ends every process that descends from the instance and returns when
	// none is left. It may be repeated.
	Close() error
}

// Function is what to load.
type Function struct {
	RunUID         string
	RegistrationID string
	Attempt        int32
	// Dir is the working directory, absolute and with symlinks resolved.
	Dir     string
	Handler string
	// Env is the whole environment of the user code as NAME=value; nothing of the
	// server's own is added.
	Env []string
	// Processes is where every process of the instance is started (Start), so that
	// nothing of it can be left. Kill empties it, and it can be used again; Sub
	// makes a group for one call inside it. The server closes it after Close.
	Processes *process.Group
	// Temp is a folder of the registration's own, removed with it.
	Temp string
	// Logs takes what user code writes beside its answer.
	Logs LogSink
}

// Commander is what a language adds for one-shot executions (executor.v1.Runtime)
// that name no handler. Executions of a handler need nothing: the server loads
// the handler and calls it once. The Python driver implements it too.
type Commander interface {
	// Command returns the program and its arguments. entrypoint is the absolute
	// path of a file beneath dir, or "": then args alone say what to run, by the
	// language's own rule.
	// Errors: ErrHandlerInvalid with a text for the caller (edge.Publicf).
	Command(dir, entrypoint string, args []string) ([]string, error)
}

// Host is what a language adds that keeps processes of its own, beside those of
// functions.
type Host interface {
	// Open is called once, before anything is loaded. processes is where the
	// language's own processes are started; the server closes it after Close.
	Open(processes *process.Group) error
	// Close ends them, and whatever was started for them, when nothing is loaded
	// any more.
	Close() error
}

// Call is one invocation.
type Call struct {
	InvocationID string
	// Input is at most MaxPayload bytes.
	Input       []byte
	ContentType string
	// Deadline is when the call's context ends.
	Deadline time.Time
}

// Result is what a handler answered.
type Result struct {
	// Output is at most MaxPayload bytes.
	Output      []byte
	ContentType string
	Outputs     map[string]string
}

// Stream names where a log entry came from.
type Stream string

// The streams of user code.
const (
	Stdout Stream = "stdout"
	Stderr Stream = "stderr"
	// Logger is the context's logger, with a level of its own.
	Logger Stream = "logger"
)

// LogSink takes the output of user code. Writes never fail and never block on a
// reader; lines are cut, budgeted and stored behind it.
type LogSink interface {
	// Writer returns where to write the bytes of one stream of one invocation
	// ("" while loading). Close it to end the last line.
	Writer(invocationID string, stream Stream) io.WriteCloser
	// Entry writes one entry of the Logger stream.
	Entry(invocationID, level, message string)
}

// Bounds of CONTRACT.md 1.2, in bytes.
const (
	MaxPayload      = 1 << 20
	MaxFatalError   = 4 << 10
	MaxOutputKeys   = 64
	MaxOutputKey    = 128
	MaxOutputValue  = 8 << 10
	MaxOutputsTotal = 64 << 10
)

// What a language answers beside a Result.
var (
	ErrHandlerInvalid   = errors.New("handler is invalid")
	ErrHandler          = errors.New("handler failed")
	ErrPayload          = errors.New("payload is invalid")
	ErrResponseTooLarge = errors.New("response is too large")
	ErrOutputsInvalid   = errors.New("outputs are invalid")
	ErrOutputsTooLarge  = errors.New("outputs are too large")
)

// LoadError is a permanent failure of the initialization: the code raised,
// exited or took too long. Text is for the function's author, at most
// MaxFatalError bytes.
type LoadError struct{ Text string }

func (e *LoadError) Error() string { return "load function: " + e.Text }

// HandlerError is a failure of the handler itself.
type HandlerError struct {
	// Type is the exception's class, or "exit" or "signal" for a process.
	Type string
	// Message is one line for the caller; it goes over the wire.
	Message string
	// Trace is the traceback or the tail of stderr, at most 4 KiB.
	Trace string
	// ExitCode is the process's, 0 where there is none.
	ExitCode int
}

func (e *HandlerError) Error() string {
	return fmt.Sprintf("handler failed: %s: %s", e.Type, e.Message)
}

// Is makes every HandlerError match ErrHandler.
func (e *HandlerError) Is(target error) bool { return target == ErrHandler }

// Public is the text of the error on the wire: the type where the handler gave no
// text, as a failed assert does not.
func (e *HandlerError) Public() string { return clip(cmp.Or(e.Message, e.Type), maxMessage) }

// Debug is the text of google.rpc.DebugInfo.
func (e *HandlerError) Debug() string { return clipHead(e.Trace, MaxFatalError) }

// Metadata is added to google.rpc.ErrorInfo.
func (e *HandlerError) Metadata() map[string]string {
	return map[string]string{"type": clip(e.Type, 128), "exit_code": strconv.Itoa(e.ExitCode)}
}
