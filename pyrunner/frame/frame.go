// Package frame owns how messages cross a byte stream: each is a run of chunks,
// an 8-byte big-endian length and that many bytes, ended by 8 zero bytes. Limits
// are checked before anything is allocated.
package frame

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
)

// Bounds of every stream, in bytes.
const (
	MaxChunk   = 64 << 20
	MaxMessage = 4 << 30
)

// step is how much memory a length alone can claim; more comes as bytes come.
const step = 4 << 20

// What a stream can do wrong.
var (
	ErrChunkTooLarge   = errors.New("chunk is too large")
	ErrMessageTooLarge = errors.New("message is too large")
	// ErrTruncated is an end of the stream before the message's terminator.
	ErrTruncated = errors.New("stream ended inside a message")
)

// Append appends message to dst in chunks of at most chunk bytes (0: MaxChunk).
func Append(dst, message []byte, chunk int) []byte {
	if chunk <= 0 || chunk > MaxChunk {
		chunk = MaxChunk
	}
	for len(message) > 0 {
		n := min(chunk, len(message))
		dst = binary.BigEndian.AppendUint64(dst, uint64(n))
		dst = append(dst, message[:n]...)
		message = message[n:]
	}
	return append(dst, 0, 0, 0, 0, 0, 0, 0, 0)
}

// small is up to where copying a message is cheaper than a second system call.
const small = 64 << 10

// Writer writes messages. It belongs to one goroutine at a time.
type Writer struct {
	w   io.Writer
	buf []byte
}

// NewWriter returns a writer to w.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// Write writes one message whole: with one system call up to 64 KiB, and without
// a copy above.
func (w *Writer) Write(message []byte) error {
	if len(message) <= small {
		w.buf = Append(w.buf[:0], message, 0)
		_, err := w.w.Write(w.buf)
		return err
	}
	if uint64(len(message)) > MaxMessage {
		return ErrMessageTooLarge
	}
	return w.writeLarge(message)
}

func (w *Writer) writeLarge(message []byte) error {
	var parts net.Buffers
	for len(message) > 0 {
		n := min(MaxChunk, len(message))
		parts = append(parts, binary.BigEndian.AppendUint64(nil, uint64(n)), message[:n])
		message = message[n:]
	}
	parts = append(parts, make([]byte, 8))
	_, err := parts.WriteTo(w.w)
	return err
}

// Reader reads messages. It belongs to one goroutine at a time.
type Reader struct {
	r     *bufio.Reader
	limit uint64
}

// NewReader returns a reader of messages of at most limit bytes (0: MaxMessage).
func NewReader(r io.Reader, limit uint64) *Reader {
	if limit == 0 || limit > MaxMessage {
		limit = MaxMessage
	}
	return &Reader{r: bufio.NewReaderSize(r, small), limit: limit}
}

// Read returns the next message, which the caller owns.
// Errors: io.EOF between two messages, ErrTruncated, ErrChunkTooLarge,
// ErrMessageTooLarge, and the stream's own. After an error the stream is useless.
func (r *Reader) Read() ([]byte, error) {
	n, err := r.length()
	if err != nil {
		return nil, err
	}
	message := []byte{}
	for n > 0 {
		if uint64(len(message))+n > r.limit {
			return nil, fmt.Errorf("%w: more than %d bytes", ErrMessageTooLarge, r.limit)
		}
		if message, err = r.extend(message, int(n)); err != nil {
			return nil, truncated(err)
		}
		if n, err = r.length(); err != nil {
			return nil, truncated(err)
		}
	}
	return message, nil
}

// length reads a chunk's length; io.EOF only if not one byte of it came.
func (r *Reader) length() (uint64, error) {
	head, err := r.r.Peek(8)
	if err != nil {
		if len(head) > 0 {
			err = truncated(err)
		}
		return 0, err
	}
	n := binary.BigEndian.Uint64(head)
	if n > MaxChunk {
		return 0, fmt.Errorf("%w: %d bytes, at most %d", ErrChunkTooLarge, n, MaxChunk)
	}
	_, err = r.r.Discard(8)
	return n, err
}

// extend appends n bytes of the stream to message.
func (r *Reader) extend(message []byte, n int) ([]byte, error) {
	for n > 0 {
		take := min(n, step)
		from := len(message)
		message = append(message, make([]byte, take)...)
		if _, err := io.ReadFull(r.r, message[from:]); err != nil {
			return nil, err
		}
		n -= take
	}
	return message, nil
}

func truncated(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return ErrTruncated
	}
	return err
}
