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
	exits := make(chan exit, len(g.actors))
	stops := make([]context.CancelFunc, len(g.actors))
	for i, a := range g.actors {
		actx, stop := context.WithCancel(context.WithoutCancel(ctx))
		stops[i] = stop
		go func() { exits <- exit{i, a.run(actx)} }()
	}
	done := make([]bool, len(g.actors))
	var errs []error
	take := func(e exit) {
		done[e.index] = true
		if e.err != nil && !errors.Is(e.err, context.Canceled) {
			errs = append(errs, fmt.Errorf("%s: %w", g.actors[e.index].name, e.err))
		}
	}
	if len(g.actors) > 0 {
		select {
		case <-ctx.Done():
		case e := <-exits:
			take(e)
		}
	}
	for i := len(g.actors) - 1; i >= 0; i-- {
		stops[i]()
		for !done[i] {
			take(<-exits)
		}
	}
	return errors.Join(errs...)
}
