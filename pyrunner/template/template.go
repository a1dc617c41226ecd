// Package template owns the Go side of a template process: its control socket and
// what is asked over it. The caller starts and ends the process.
package template

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/hearth-run/hearth/pyrunner/message"
)

// LostStatus is the exit status of a child that cannot speak over its control
// socket any more.
const LostStatus = 217

// RefusedError says that a load failed, in words for the function's author, or that the
// kernel made no process.
type RefusedError struct {
	// Code is message.RefusedHandler, RefusedLoad or RefusedFork.
	Code string
	Text string
}

func (e *RefusedError) Error() string { return e.Code + ": " + e.Text }

// ErrOrder is an answer that does not fit what was asked.
var ErrOrder = errors.New("template process answered out of order")

// Template is one template process. It belongs to one goroutine at a time. After
// an error other than *RefusedError it is useless.
type Template struct {
	conn *Conn
}

// New returns the template process behind a control socket.
func New(conn *Conn) *Template { return &Template{conn: conn} }

// Close lets the process go: it ends its children and itself.
func (t *Template) Close() error { return t.conn.Close() }

// Loaded says what a load has left in the process.
type Loaded struct {
	// Threads is how many are alive; a process with more than 1 must not fork.
	Threads int64
	// Ended is how many processes the import had left running.
	Ended int64
	// Took is how long the mode's own part of it took: the imports.
	Took time.Duration
	// Descriptors are those that the import has opened: "5 socket:[123]".
	Descriptors []string
}

// CanFork says whether children of the process are safe.
func (l Loaded) CanFork() bool { return l.Threads == 1 }

// Load does the imports of a mode.
// Errors: *RefusedError, ctx's cause, io.EOF when the process ended.
func (t *Template) Load(ctx context.Context, mode string, fields ...any) (Loaded, error) {
	var loaded Loaded
	m, err := t.ask(ctx, nil, message.Load, append([]any{mode}, fields...)...)
	if err != nil {
		return loaded, fmt.Errorf("load mode %s: %w", mode, err)
	}
	switch m.Kind {
	case message.Refused:
		return loaded, &RefusedError{Code: m.Text(0), Text: m.Text(1)}
	case message.Loaded:
	default:
		return loaded, fmt.Errorf("load mode %s: %w: kind %d", mode, ErrOrder, m.Kind)
	}
	var bad [3]error
	loaded.Threads, bad[0] = m.Number(0)
	loaded.Ended, bad[1] = m.Number(1)
	micros, err := m.Number(2)
	loaded.Took, bad[2] = time.Duration(micros)*time.Microsecond, err
	for i := 3; i < len(m.Fields); i++ {
		loaded.Descriptors = append(loaded.Descriptors, m.Text(i))
	}
	return loaded, errors.Join(bad[:]...)
}

// Fork makes a child that answers over theirs, which is closed. It returns the
// child's pid as soon as it exists; the child is ready when it says Ready.
func (t *Template) Fork(ctx context.Context, theirs *os.File) (int, error) {
	defer theirs.Close()
	return t.forked(ctx, []*os.File{theirs}, message.Fork)
}

// forked asks for a process and returns its pid.
func (t *Template) forked(ctx context.Context, files []*os.File, kind message.Kind, fields ...any) (int, error) {
	m, err := t.ask(ctx, files, kind, fields...)
	if err == nil && m.Kind == message.Refused {
		return 0, &RefusedError{Code: m.Text(0), Text: m.Text(1)}
	}
	if err == nil && m.Kind != message.Forked {
		err = fmt.Errorf("%w: kind %d", ErrOrder, m.Kind)
	}
	if err != nil {
		return 0, fmt.Errorf("fork template: %w", err)
	}
	pid, err := m.Number(0)
	if err == nil && pid <= 1 {
		// Whoever signals such a number hits more than one process.
		err = fmt.Errorf("fork template: %w: process %d", ErrOrder, pid)
	}
	return int(pid), err
}

// Serve turns a process that cannot fork into one that answers over theirs, which
// is closed. The process does nothing else from then on.
func (t *Template) Serve(theirs *os.File) error {
	defer theirs.Close()
	if err := t.conn.SendFiles(message.Append(nil, message.Serve), theirs); err != nil {
		return fmt.Errorf("serve from template: %w", err)
	}
	return nil
}

// Reap waits for a child that has ended or was killed and for everything that it
// left behind, which is killed. It returns how the child ended.
func (t *Template) Reap(ctx context.Context, pid int) (syscall.WaitStatus, error) {
	m, err := t.ask(ctx, nil, message.Reap, pid)
	if err == nil && m.Kind != message.Reaped {
		err = fmt.Errorf("%w: kind %d", ErrOrder, m.Kind)
	}
	if err != nil {
		return 0, fmt.Errorf("reap child %d of template: %w", pid, err)
	}
	status, err := m.Number(1)
	return syscall.WaitStatus(status), err
}

// ask sends one message, with descriptors if there are any, and returns the answer.
func (t *Template) ask(ctx context.Context, files []*os.File, kind message.Kind, fields ...any) (message.Message, error) {
	stop := t.conn.Bound(ctx)
	m, err := t.exchange(files, message.Append(nil, kind, fields...))
	if !stop() {
		return m, context.Cause(ctx)
	}
	return m, err
}

func (t *Template) exchange(files []*os.File, packed []byte) (message.Message, error) {
	if err := t.conn.SendFiles(packed, files...); err != nil {
		return message.Message{}, err
	}
	return t.conn.Receive()
}
