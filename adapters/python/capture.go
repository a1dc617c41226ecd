package python

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/hearth-run/hearth/adapters/runtimeserver"
)

// maxTail is how much of the latest output is kept for errors, in bytes.
const maxTail = 4 << 10

// stream owns the pipe behind descriptor 1 or 2 of an instance and its successors.
// Its goroutine reads whatever comes, so that no writer waits for long; begin and
// end say which invocation the bytes belong to.
type stream struct {
	name  runtimeserver.Stream
	logs  runtimeserver.LogSink
	read  *os.File
	raw   syscall.RawConn // of read
	write *os.File
	done  chan struct{}

	mu     sync.Mutex // guards the fields below and reading
	id     string
	out    io.WriteCloser // nil until the invocation has written something
	tail   []byte
	buf    []byte
	closed bool
}

func newStream(name runtimeserver.Stream, logs runtimeserver.LogSink) (*stream, error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return nil, fmt.Errorf("make pipe for %s: %w", name, err)
	}
	// Only our end: a program must find an ordinary, blocking descriptor.
	if err := unix.SetNonblock(fds[0], true); err != nil {
		return nil, errors.Join(fmt.Errorf("make pipe for %s: %w", name, err), unix.Close(fds[0]), unix.Close(fds[1]))
	}
	s := &stream{
		name: name, logs: logs,
		read: os.NewFile(uintptr(fds[0]), string(name)), write: os.NewFile(uintptr(fds[1]), string(name)),
		done: make(chan struct{}), buf: make([]byte, 64<<10),
	}
	var err error
	if s.raw, err = s.read.SyscallConn(); err != nil {
		return nil, errors.Join(fmt.Errorf("make pipe for %s: %w", name, err), s.read.Close(), s.write.Close())
	}
	go s.run()
	return s, nil
}

// run reads until the stream is closed.
func (s *stream) run() {
	defer close(s.done)
	// It ends with an error when the stream is closed.
	_ = s.raw.Read(func(fd uintptr) bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		for i := 0; i < 16; i++ { // then let begin and end in
			if n := s.take(int(fd), len(s.buf)); n <= 0 {
				return n == 0 || s.closed
			}
		}
		return false
	})
}

// take reads once, at most limit bytes, and passes them on. It returns what read
// did: 0 at the end, less when there is nothing now. The lock is held.
func (s *stream) take(fd, limit int) int {
	n, err := unix.Read(fd, s.buf[:min(limit, len(s.buf))])
	if err != nil || n <= 0 {
		if errors.Is(err, unix.EINTR) {
			return s.take(fd, limit)
		}
		return n
	}
	if s.out == nil {
		s.out = s.logs.Writer(s.id, s.name)
	}
	_, _ = s.out.Write(s.buf[:n]) // a sink never fails
	s.tail = append(s.tail, s.buf[:n]...)
	if len(s.tail) > maxTail {
		s.tail = append(s.tail[:0], s.tail[len(s.tail)-maxTail:]...)
	}
	return n
}

// begin makes what comes from now on the output of an invocation.
func (s *stream) begin(id string) { s.turn(id) }

// end passes on what was written until now and ends the invocation's output. What
// comes later, from threads of the module, belongs to no invocation.
func (s *stream) end() { s.turn("") }

// turn reads what lies in the pipe now, not what is being written meanwhile.
func (s *stream) turn(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.drain()
	if s.out != nil {
		_ = s.out.Close()
		s.out = nil
	}
	if id != "" {
		s.tail = s.tail[:0]
	}
	s.id = id
}

// drain passes on what lies in the pipe now. The lock is held, the stream is open.
func (s *stream) drain() {
	_ = s.raw.Control(func(fd uintptr) {
		left, err := unix.IoctlGetInt(int(fd), unix.TIOCINQ)
		for err == nil && left > 0 {
			n := s.take(int(fd), left)
			if n <= 0 {
				return
			}
			left -= n
		}
	})
}

// last returns the end of what the latest invocation, or the load, has written until
// now.
func (s *stream) last() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.drain()
	}
	return string(s.tail)
}

// close ends the stream; its writers are gone.
func (s *stream) close() error {
	s.end()
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	err := errors.Join(s.read.Close(), s.write.Close())
	<-s.done
	return err
}
