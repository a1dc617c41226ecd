package process

import (
	"github.com/hearth-run/hearth/sandbox/internal/cgroup"
)

// pressure turns the kernel's memory events into a channel. A nil pressure is right
// and never tells.
type pressure struct {
	events chan struct{}
	watch  *cgroup.MemoryWatch
	done   chan struct{}
}

func watchPressure(g *cgroup.Group, limit int64) *pressure {
	watch, err := g.WatchMemory(limit)
	if err != nil {
		return nil
	}
	p := &pressure{events: make(chan struct{}, 1), watch: watch, done: make(chan struct{})}
	go p.run()
	return p
}

func (p *pressure) run() {
	defer close(p.done)
	for p.watch.Next() {
		select {
		case p.events <- struct{}{}:
		default: // one is waiting to be read: it says the same
		}
	}
}

func (p *pressure) channel() <-chan struct{} {
	if p == nil {
		return nil
	}
	return p.events
}

func (p *pressure) rearm(limit int64) error {
	if p == nil {
		return nil
	}
	return p.watch.Rearm(limit)
}

func (p *pressure) close() {
	if p != nil {
		p.watch.Close()
		<-p.done
	}
}
