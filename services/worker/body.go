package worker

import (
	"errors"
	"io"
	"sync"

	"github.com/hearth-run/hearth/gen/serverless"
)

// body is what a client sends after the header, passed on chunk by chunk. What
// fits into limit is kept for one replay; above it nothing is.
type body struct {
	receive func() (*serverless.WorkerExecutionRequest, error)
	limit   int64

	mu    sync.Mutex // guards what follows: a try may still read while it is given up
	kept  [][]byte
	size  int64
	whole bool
}

// clientError is a failure of the client's side of the stream.
type clientError struct{ err error }

func (e *clientError) Error() string { return "receive body: " + e.err.Error() }
func (e *clientError) Unwrap() error { return e.err }

// copyTo writes what was kept and then what comes. After a try that was given up
// it is called again only if the body is replayable.
// Errors: *clientError, w's own.
func (b *body) copyTo(w io.Writer) error {
	kept, whole := b.state()
	for _, chunk := range kept {
		if _, err := w.Write(chunk); err != nil {
			return err
		}
	}
	for !whole {
		msg, err := b.receive()
		if errors.Is(err, io.EOF) {
			b.end()
			return nil
		}
		if err != nil {
			return &clientError{err}
		}
		b.keep(msg.GetPayload())
		if _, err := w.Write(msg.GetPayload()); err != nil {
			return err
		}
	}
	return nil
}

func (b *body) state() ([][]byte, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.kept, b.whole
}

func (b *body) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.whole = true
}

func (b *body) keep(chunk []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.size += int64(len(chunk))
	if b.size > b.limit {
		b.kept = nil
		return
	}
	b.kept = append(b.kept, chunk)
}

// replayable says that the whole body was received and kept.
func (b *body) replayable() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.whole && b.size <= b.limit
}
