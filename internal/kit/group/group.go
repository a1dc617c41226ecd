// Package group owns what runs beside what in one process, and the order in which
// it stops.
package group

import (
	"context"
	"errors"
	"fmt"
)

// Group runs actors together. They are added sinks first: shutdown goes the other
// way, and each actor has returned before the one added ahead of it is told.
// The zero value is ready to use.
type Group struct {
	actors []actor
}

type actor struct {
	name string
	run  func(context.Context) error
}

// Add appends an actor. run returns soon after its context is done.
func (g *Group) Add(name string, run func(context.Context) error) {
	g.actors = append(g.actors, actor{name, run})
}

type exit struct {
	index int
	err   error
}

// Run starts every actor and returns after the last has returned: when ctx is
// done, or when one of them ends by itself. The error joins what the actors
// returned, without the cancellation that Run itself asked for.
func (g *Group) Run(ctx context.Context) error {
	r := g.start(ctx)
	for i := len(g.actors) - 1; i >= 0; i-- {
		r.stops[i]()
		r.await(i)
	}
	return errors.Join(r.errs...)
}

// Together is Run for actors that need nothing of each other: all are told to
// stop at once, so that stopping takes as long as the slowest of them.
func (g *Group) Together(ctx context.Context) error {
	r := g.start(ctx)
	for _, stop := range r.stops {
		stop()
	}
	for i := range g.actors {
		r.await(i)
	}
	return errors.Join(r.errs...)
}

// run is a group that was started, and what came of it so far.
type run struct {
	actors []actor
	stops  []context.CancelFunc
	exits  chan exit
	done   []bool
	errs   []error
}

// start starts every actor and returns when it is time to stop them.
func (g *Group) start(ctx context.Context) *run {
	n := len(g.actors)
	r := &run{actors: g.actors, stops: make([]context.CancelFunc, n), exits: make(chan exit, n), done: make([]bool, n)}
	for i, a := range g.actors {
		actx, stop := context.WithCancel(context.WithoutCancel(ctx))
		r.stops[i] = stop
		go func() { r.exits <- exit{i, a.run(actx)} }()
	}
	if n > 0 {
		select {
		case <-ctx.Done():
		case e := <-r.exits:
			r.take(e)
		}
	}
	return r
}

func (r *run) take(e exit) {
	r.done[e.index] = true
	if e.err != nil && !errors.Is(e.err, context.Canceled) {
		r.errs = append(r.errs, fmt.Errorf("%s: %w", r.actors[e.index].name, e.err))
	}
}

// await returns once actor i has.
func (r *run) await(i int) {
	for !r.done[i] {
		r.take(<-r.exits)
	}
}
