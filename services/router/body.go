package router

import (
	"context"
	"errors"
	"io"
	"sync"
)

// body is what a client sends after its first message, on its way to a worker:
// one chunk at a time, so that a worker that does not read holds up the client.
// The beginning is kept until a worker has answered, for the next worker.
type body struct {
	chunks chan []byte // closed after the last

	mu    sync.Mutex // guards what follows
	kept  [][]byte
	space int
	whole bool // everything that was taken from chunks is in kept
}

func newBody(space int) *body {
	return &body{chunks: make(chan []byte), space: space, whole: true}
}

// read starts to take the client's body in; the goroutine ends with the stream,
// which ends soon after its handler. Errors: errStopping.
func (s *Service) read(ctx context.Context, b *body, stream clientStream, fail context.CancelCauseFunc) error {
	s.gate.Lock()
	defer s.gate.Unlock()
	if s.closed {
		return errStopping
	}
	s.readers.Go(func() {
		if err := b.fill(ctx, stream); err != nil {
			fail(err)
		}
	})
	return nil
}

// fill errors: errSecondConfig, and what ended the client's stream.
func (b *body) fill(ctx context.Context, stream clientStream) error {
	for {
		msg, err := stream.Receive()
		switch {
		case errors.Is(err, io.EOF):
			close(b.chunks)
			return nil
		case err != nil:
			return err
		case msg.GetConfig() != nil:
			return errSecondConfig
		case len(msg.GetPayload()) == 0:
			continue
		}
		select {
		case b.chunks <- msg.GetPayload():
		case <-ctx.Done():
			return nil
		}
	}
}

// keep remembers a chunk before it is sent, as long as there is space.
func (b *body) keep(chunk []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.whole {
		return
	}
	if b.space -= len(chunk); b.space < 0 {
		b.kept, b.whole = nil, false
		return
	}
	b.kept = append(b.kept, chunk)
}

// settle forgets what was kept: a worker has answered, and no other will be tried.
func (b *body) settle() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.kept, b.whole = nil, false
}

// again returns what another worker must be sent first; false if that is lost.
func (b *body) again() ([][]byte, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.kept, b.whole
}
