package python

import (
	"fmt"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/hearth-run/hearth/adapters/runtimeserver"
	"github.com/hearth-run/hearth/internal/kit/edge"
	"github.com/hearth-run/hearth/pyrunner/message"
	"github.com/hearth-run/hearth/pyrunner/template"
)

// exitError says that a process of user code has ended, or lives on without its
// control socket and was killed.
type exitError struct {
	// own is whether the process ended by itself; status is how.
	own    bool
	status syscall.WaitStatus
}

func (e *exitError) Error() string { return e.describe("the process") }

// describe tells what happened to whom.
func (e *exitError) describe(who string) string {
	switch {
	case !e.own:
		return who + " closed the server's control socket or became another program (os.exec*), and was killed"
	case e.lost():
		return who + " closed, replaced or wrote to the server's control socket"
	case e.status.Signaled():
		return fmt.Sprintf("%s was killed by signal %d (%s)", who, e.status.Signal(), unix.SignalName(e.status.Signal()))
	default:
		return fmt.Sprintf("%s ended its process with status %d: return instead of os._exit", who, e.status.ExitStatus())
	}
}

// lost says that the process ended because of what was done to its socket.
func (e *exitError) lost() bool {
	return e.status.Exited() && e.status.ExitStatus() == template.LostStatus
}

// handlerError is the failure of the call during which it happened.
func (e *exitError) handlerError(trace string) *runtimeserver.HandlerError {
	failed := &runtimeserver.HandlerError{Type: "exit", Message: e.describe("the handler"), Trace: trace}
	switch {
	case !e.own || e.lost():
		failed.Type = "lost"
	case e.status.Signaled():
		failed.Type, failed.ExitCode = "signal", 128+int(e.status.Signal())
	default:
		failed.ExitCode = e.status.ExitStatus()
	}
	return failed
}

// loadError is the failure of the load during which it happened.
func (e *exitError) loadError(stderr string) *runtimeserver.LoadError {
	return loadError(e.describe("the module's import") + "\n" + stderr)
}

// refused translates what the loader said.
func refused(err *template.RefusedError) error {
	if err.Code == message.RefusedHandler {
		return edge.Publicf(runtimeserver.ErrHandlerInvalid, "%s", err.Text)
	}
	return loadError(err.Text)
}

// loadError bounds a text for the function's author; its beginning says the way
// out.
func loadError(text string) *runtimeserver.LoadError {
	text = strings.TrimSpace(strings.ToValidUTF8(text, "\ufffd"))
	return &runtimeserver.LoadError{Text: clip(text, runtimeserver.MaxFatalError)}
}

// clip cuts text to at most limit bytes on a character boundary.
func clip(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	const mark = "…"
	return strings.ToValidUTF8(text[:limit-len(mark)], "") + mark
}

// failure translates what an instance said of a call that failed.
func failure(m message.Message) error {
	code, text := m.Text(1), m.Text(3)
	switch code {
	case message.FailedPayload:
		return edge.Publicf(runtimeserver.ErrPayload, "%s", text)
	case message.FailedResponse:
		return edge.Publicf(runtimeserver.ErrResponseTooLarge, "%s", text)
	case message.FailedOutputs:
		return edge.Publicf(runtimeserver.ErrOutputsInvalid, "%s", text)
	case message.FailedOutputsTooMuch:
		return edge.Publicf(runtimeserver.ErrOutputsTooLarge, "%s", text)
	}
	exit, err := m.Number(5)
	if code != message.FailedHandler || err != nil {
		return fmt.Errorf("%w: failure %q", message.ErrMalformed, code)
	}
	return &runtimeserver.HandlerError{Type: m.Text(2), Message: text, Trace: m.Text(4), ExitCode: int(exit)}
}
