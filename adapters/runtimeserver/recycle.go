package runtimeserver

import (
	"context"
	"time"

	"github.com/hearth-run/hearth/adapters/runtimeserver/internal/registration"
)

// spare is a replacement of the instance, being loaded or waiting for the end of
// a call. The owner's, but for stop.
type spare struct {
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when the load has ended
	body   *body         // set before done is closed; nil where it failed
}

// stop ends a replacement's load, or the replacement; from then on there is none.
func (s *spare) stop() {
	if s.cancel == nil {
		return
	}
	s.cancel(nil)
	<-s.done
	if s.body != nil {
		_ = s.body.close() // its group's end is checked again by the keeper
	}
}

// due says whether an instance is used up.
func (c Config) due(calls int, age time.Duration, memory func() int64) bool {
	switch {
	case c.RecycleCalls > 0 && calls >= c.RecycleCalls:
		return true
	case c.RecycleAge > 0 && age >= c.RecycleAge:
		return true
	default:
		return c.RecycleMemory > 0 && memory() > c.RecycleMemory
	}
}

// consider starts a replacement's load after a call, if one is due and none is
// under way. The old instance goes on serving meanwhile.
func (o *owner) consider() {
	if o.snapshot().Phase != registration.Ready || o.spare.cancel != nil {
		return
	}
	if !o.server.cfg.due(o.body.calls, time.Since(o.body.born), o.body.group.Memory) {
		return
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	o.spare = spare{cancel: cancel, done: make(chan struct{})}
	go o.loadSpare(ctx, &o.spare)
}

func (o *owner) loadSpare(ctx context.Context, s *spare) {
	b, err := o.loadBody(ctx)
	s.body = b
	close(s.done)
	_ = o.hand(message{spare: true, err: err})
}

// takeSpare hears that a replacement's load has ended.
func (o *owner) takeSpare(m message) {
	phase := o.snapshot().Phase
	if phase == registration.Closing || phase == registration.Draining {
		return // close will find it
	}
	if m.err != nil {
		o.log.Warn("recycling failed; the old instance goes on", "err", m.err)
		o.spare = spare{}
		o.body.calls, o.body.born = 0, time.Now() // try again after another term
		return
	}
	o.swap()
}

// swap puts a replacement in the instance's place between two calls.
func (o *owner) swap() {
	if o.spare.cancel == nil || o.snapshot().Phase != registration.Ready {
		return
	}
	select {
	case <-o.spare.done:
	default:
		return
	}
	if o.spare.body == nil {
		return // takeSpare will hear of it
	}
	old := o.body
	o.body = o.spare.body
	o.spare.cancel(nil)
	o.spare = spare{}
	o.log.Info("instance recycled", "calls", old.calls, "age", time.Since(old.born))
	o.aside.Go(func() {
		if err := old.close(); err != nil {
			o.log.Error("close recycled instance", "err", err)
		}
	})
}
