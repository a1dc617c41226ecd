package frame

import (
	"encoding/binary"
	"fmt"
	"io"
)

// ChunkWriter writes one message chunk by chunk, for bodies that are passed on
// and never held whole. It belongs to one goroutine at a time.
type ChunkWriter struct {
	w    io.Writer
	size uint64
}

// NewChunkWriter returns a writer of one message to w.
func NewChunkWriter(w io.Writer) *ChunkWriter { return &ChunkWriter{w: w} }

// Write writes p as one chunk; an empty one is left out, since it would end the
// message. Errors: ErrChunkTooLarge, ErrMessageTooLarge and the stream's own.
func (c *ChunkWriter) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if len(p) > MaxChunk {
		return 0, fmt.Errorf("%w: %d bytes, at most %d", ErrChunkTooLarge, len(p), MaxChunk)
	}
	if c.size += uint64(len(p)); c.size > MaxMessage {
		return 0, fmt.Errorf("%w: more than %d bytes", ErrMessageTooLarge, uint64(MaxMessage))
	}
	var head [8]byte
	if _, err := c.w.Write(binary.BigEndian.AppendUint64(head[:0], uint64(len(p)))); err != nil {
		return 0, err
	}
	return c.w.Write(p)
}

// Close ends the message; the stream stays open.
func (c *ChunkWriter) Close() error {
	_, err := c.w.Write(make([]byte, 8))
	return err
}

// ChunkReader reads one message piece by piece, whatever its chunks are. It
// belongs to one goroutine at a time.
type ChunkReader struct {
	r    io.Reader
	left uint64
	size uint64
	done bool
}

// NewChunkReader returns a reader of one message from r.
func NewChunkReader(r io.Reader) *ChunkReader { return &ChunkReader{r: r} }

// Read reads into p, at most to the end of the present chunk.
// Errors: io.EOF after the terminator, ErrTruncated, ErrChunkTooLarge,
// ErrMessageTooLarge, and the stream's own.
func (c *ChunkReader) Read(p []byte) (int, error) {
	if c.done {
		return 0, io.EOF
	}
	if c.left == 0 {
		if err := c.next(); err != nil {
			return 0, err
		}
	}
	if uint64(len(p)) > c.left {
		p = p[:c.left]
	}
	n, err := c.r.Read(p)
	c.left -= uint64(n)
	if n > 0 {
		return n, nil
	}
	return 0, truncated(err)
}

// Piece returns what comes next, at most limit bytes, in memory of its own.
// Errors: those of Read.
func (c *ChunkReader) Piece(limit int) ([]byte, error) {
	if c.done {
		return nil, io.EOF
	}
	if c.left == 0 {
		if err := c.next(); err != nil {
			return nil, err
		}
	}
	p := make([]byte, min(uint64(limit), c.left))
	n, err := c.Read(p)
	return p[:n], err
}

func (c *ChunkReader) next() error {
	var head [8]byte
	if _, err := io.ReadFull(c.r, head[:]); err != nil {
		return truncated(err)
	}
	n := binary.BigEndian.Uint64(head[:])
	switch {
	case n == 0:
		c.done = true
		return io.EOF
	case n > MaxChunk:
		return fmt.Errorf("%w: %d bytes, at most %d", ErrChunkTooLarge, n, MaxChunk)
	}
	if c.size += n; c.size > MaxMessage {
		return fmt.Errorf("%w: more than %d bytes", ErrMessageTooLarge, uint64(MaxMessage))
	}
	c.left = n
	return nil
}
