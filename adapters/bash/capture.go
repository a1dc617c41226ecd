package bash

import (
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// capture copies what a call writes to one pipe, which never ends by itself: the
// copy goes on until finish is called, when every writer is dead.
type capture struct {
	pipe *os.File
	into io.Writer
	done chan struct{}
	buf  []byte
	pool *sync.Pool // of *[]byte; takes buf back
}

// captureSize is how much is read at a time, in bytes.
const captureSize = 32 << 10

func newBuffer() any {
	buf := make([]byte, captureSize)
	return &buf
}

// past is a deadline that has passed.
var past = time.Unix(1, 0)

func startCapture(pipe *os.File, into io.Writer, pool *sync.Pool) *capture {
	c := &capture{pipe: pipe, into: into, done: make(chan struct{}), buf: *pool.Get().(*[]byte), pool: pool}
	go c.copy()
	return c
}

// copy reads until the deadline that finish sets.
func (c *capture) copy() {
	defer close(c.done)
	for {
		n, err := c.pipe.Read(c.buf)
		c.into.Write(c.buf[:n])
		if err != nil {
			return
		}
	}
}

// finish takes what is still in the pipe and returns when it is empty.
func (c *capture) finish() error {
	if err := c.pipe.SetReadDeadline(past); err != nil {
		return err
	}
	<-c.done
	defer func() { c.pool.Put(&c.buf) }()
	if err := c.pipe.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	raw, err := c.pipe.SyscallConn()
	if err != nil {
		return err
	}
	for {
		var n int
		var got error
		if err := raw.Read(func(fd uintptr) bool {
			n, got = unix.Read(int(fd), c.buf)
			return true
		}); err != nil {
			return err
		}
		switch {
		case errors.Is(got, unix.EINTR):
		case errors.Is(got, unix.EAGAIN) || n == 0:
			return nil
		case got != nil:
			return got
		default:
			c.into.Write(c.buf[:n])
		}
	}
}

// answer gathers a response and tells once when it has grown over the bound.
type answer struct {
	bytes []byte
	bound int
	over  chan struct{}
	full  bool
}

func newAnswer(bound int) *answer { return &answer{bound: bound, over: make(chan struct{})} }

func (a *answer) Write(p []byte) (int, error) {
	if a.full {
		return len(p), nil
	}
	if len(a.bytes)+len(p) > a.bound {
		a.full, a.bytes = true, nil
		close(a.over)
		return len(p), nil
	}
	a.bytes = append(a.bytes, p...)
	return len(p), nil
}

// tail keeps the last bytes of a stream.
type tail struct {
	bytes []byte
	bound int
}

func (t *tail) Write(p []byte) (int, error) {
	n := len(p)
	if len(p) > t.bound {
		p = p[len(p)-t.bound:]
	}
	t.bytes = append(t.bytes, p...)
	if len(t.bytes) > 2*t.bound {
		t.bytes = append(t.bytes[:0], t.bytes[len(t.bytes)-t.bound:]...)
	}
	return n, nil
}

func (t *tail) String() string {
	if len(t.bytes) > t.bound {
		return string(t.bytes[len(t.bytes)-t.bound:])
	}
	return string(t.bytes)
}
