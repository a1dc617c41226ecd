package box

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/hearth-run/hearth/pyrunner/frame"
	"github.com/hearth-run/hearth/pyrunner/message"
)

// maxControl is the largest control message, in bytes: a piece of log or a list
// of requirements.
const maxControl = 4 << 20

// Sockets are the two ends of an executor's sockets before it is started.
type Sockets struct {
	path    string
	control net.Conn
	// Files go to the executor as descriptors: the control socket, the listener.
	Files []*os.File
}

// NewSockets makes the sockets of one container beneath folder, which must be
// short enough for a socket's path (108 bytes in all).
func NewSockets(folder, id string) (*Sockets, error) {
	s := &Sockets{path: filepath.Join(folder, id+".sock")}
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("make control socket: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "control"), os.NewFile(uintptr(pair[1]), "control")
	defer ours.Close()
	s.Files = append(s.Files, theirs)
	if s.control, err = net.FileConn(ours); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: s.path, Net: "unix"})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("listen for calls: %w", err), s.Close())
	}
	listener.SetUnlinkOnClose(false)
	defer listener.Close()
	file, err := listener.File()
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.Files = append(s.Files, file)
	return s, nil
}

// Started closes the executor's ends, which it has now.
func (s *Sockets) Started() {
	for _, file := range s.Files {
		_ = file.Close()
	}
	s.Files = nil
}

// Close releases everything.
func (s *Sockets) Close() error {
	s.Started()
	var err error
	if s.control != nil {
		err = s.control.Close()
	}
	if gone := os.Remove(s.path); gone != nil && !errors.Is(gone, os.ErrNotExist) {
		err = errors.Join(err, gone)
	}
	return err
}

// Sink takes what the executor says of the running call. Its methods are called
// by one goroutine, in order.
type Sink interface {
	// Log takes a piece of output, valid UTF-8.
	Log(text string)
	// Executed: every Log was given.
	Executed()
	// Packages installs what the call asks for and returns the folders.
	Packages(requirements []string) ([]string, error)
}

// Executor is the program in a container, as the worker talks to it.
type Executor struct {
	sockets *Sockets
	reader  *frame.Reader
	heard   chan struct{} // closed once listen has returned

	mu     sync.Mutex // guards what follows
	writer *frame.Writer
	sink   Sink
}

// NewExecutor returns the executor behind sockets; AwaitReady comes next.
func NewExecutor(sockets *Sockets) *Executor {
	return &Executor{
		sockets: sockets, reader: frame.NewReader(sockets.control, maxControl), writer: frame.NewWriter(sockets.control),
		heard: make(chan struct{}),
	}
}

// AwaitReady reads the executor's first word. It is called once, before the box
// owns the executor.
func (e *Executor) AwaitReady(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { _ = e.sockets.control.Close() })
	defer stop()
	raw, err := e.reader.Read()
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		return fmt.Errorf("executor ended before it answered: %w", err)
	}
	if m, err := message.Parse(raw); err != nil || m.Kind != message.Ready {
		return errors.Join(errors.New("executor did not say that it is ready"), err)
	}
	return nil
}

// listen hands on what the executor says, until its control socket closes.
func (e *Executor) listen(log *slog.Logger) {
	defer close(e.heard)
	for {
		raw, err := e.reader.Read()
		if err != nil {
			return
		}
		m, err := message.Parse(raw)
		if err != nil {
			log.Warn("executor speaks another language", "err", err)
			return
		}
		if sink := e.current(); sink != nil {
			e.hand(m, sink)
		}
	}
}

func (e *Executor) hand(m message.Message, sink Sink) {
	switch m.Kind {
	case message.Log:
		for _, text := range m.Fields {
			sink.Log(string(text))
		}
	case message.Executed:
		sink.Executed()
	case message.NeedPackages:
		e.install(m, sink)
	}
}

func (e *Executor) install(m message.Message, sink Sink) {
	requirements := make([]string, 0, len(m.Fields))
	for _, field := range m.Fields {
		requirements = append(requirements, string(field))
	}
	paths, err := sink.Packages(requirements)
	if err != nil {
		_ = e.say(message.PackagesFailed, err.Error())
		return
	}
	_ = e.UsePaths(paths)
}

// UsePaths tells the executor where to look for imports first, from the next call
// that is dialled on.
func (e *Executor) UsePaths(paths []string) error {
	fields := make([]any, 0, len(paths))
	for _, path := range paths {
		fields = append(fields, path)
	}
	return e.say(message.UsePaths, fields...)
}

func (e *Executor) say(kind message.Kind, fields ...any) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.writer.Write(message.Append(nil, kind, fields...))
}

// Dial opens the connection of a call, whose output goes to sink.
func (e *Executor) Dial(ctx context.Context, sink Sink) (*net.UnixConn, error) {
	e.mu.Lock()
	e.sink = sink
	e.mu.Unlock()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", e.sockets.path)
	if err != nil {
		return nil, fmt.Errorf("dial executor: %w", err)
	}
	unix, ok := conn.(*net.UnixConn)
	if !ok {
		return nil, errors.Join(errors.New("dial executor: no unix socket"), conn.Close())
	}
	return unix, nil
}

// Detach ends the sink's part in what is said.
func (e *Executor) Detach() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.sink = nil
}

func (e *Executor) current() Sink {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.sink
}

// Close closes the sockets; the executor ends by itself when it reads that. It
// may be repeated.
func (e *Executor) Close() { _ = e.sockets.Close() }
