package template

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"syscall"
	"time"

	"github.com/hearth-run/hearth/pyrunner/frame"
	"github.com/hearth-run/hearth/pyrunner/message"
)

// Conn speaks messages over one end of a socket pair. It belongs to one goroutine
// at a time, but for Close.
type Conn struct {
	sock *net.UnixConn
	r    *frame.Reader
	w    *frame.Writer
	buf  []byte
}

// Pair returns a connected pair: our end, which reads messages of at most limit
// bytes (0: frame.MaxMessage), and theirs, to be handed to a process.
func Pair(limit uint64) (*Conn, *os.File, error) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make socket pair: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "ours"), os.NewFile(uintptr(fds[1]), "theirs")
	defer ours.Close()
	conn, err := net.FileConn(ours)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("make socket pair: %w", err), theirs.Close())
	}
	sock := conn.(*net.UnixConn)
	return &Conn{sock: sock, r: frame.NewReader(sock, limit), w: frame.NewWriter(sock)}, theirs, nil
}

// Close closes our end; a pending Send or Receive returns net.ErrClosed.
func (c *Conn) Close() error {
	if err := c.sock.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// Send sends one message.
func (c *Conn) Send(kind message.Kind, fields ...any) error {
	c.buf = message.Append(c.buf[:0], kind, fields...)
	return c.w.Write(c.buf)
}

// SendFiles sends one packed message and descriptors with it, if any. They are made to
// block, as descriptors that are handed to a process are expected to.
func (c *Conn) SendFiles(packed []byte, files ...*os.File) error {
	if len(files) == 0 {
		return c.w.Write(packed)
	}
	numbers := make([]int, len(files))
	for i, f := range files {
		numbers[i] = int(f.Fd())
	}
	framed := frame.Append(nil, packed, 0)
	n, _, err := c.sock.WriteMsgUnix(framed, syscall.UnixRights(numbers...), nil)
	runtime.KeepAlive(files)
	// The descriptors go along with the first bytes; what a full buffer refuses of the
	// rest is written after it.
	if err == nil && n < len(framed) {
		_, err = c.sock.Write(framed[n:])
	}
	return err
}

// Receive returns the next message.
// Errors: io.EOF at the end of the stream, those of frame and message.
func (c *Conn) Receive() (message.Message, error) {
	raw, err := c.r.Read()
	if err != nil {
		return message.Message{}, err
	}
	return message.Parse(raw)
}

// Bound makes Send and Receive fail once ctx is done, until stop is called. When
// stop says false, ctx was done before, whatever has arrived, and the connection
// is useless.
func (c *Conn) Bound(ctx context.Context) (stop func() bool) {
	if ctx.Done() == nil {
		return func() bool { return true }
	}
	// A connection that was closed meanwhile has no deadline to set.
	return context.AfterFunc(ctx, func() { _ = c.sock.SetDeadline(time.Unix(1, 0)) })
}
