//go:build linux && amd64

package process

import (
	"sync"

	"github.com/hearth-run/hearth/sandbox/internal/cgroup"
)

// pressure turns the kernel's memory events into a channel. Arming it can take the
// kernel 10 ms, so that goroutines of its own do it, off every caller's path. A nil
// pressure is right and never tells.
type pressure struct {
	events chan struct{}
	limits chan int64 // the newest limit to arm for; closed by close
	watch  *cgroup.MemoryWatch
}

// watchPressure starts two goroutines in wait, which end soon after close.
func watchPressure(g *cgroup.Group, limit int64, wait *sync.WaitGroup) *pressure {
	watch, err := g.WatchMemory()
	if err != nil {
		return nil
	}
	p := &pressure{events: make(chan struct{}, 1), limits: make(chan int64, 1), watch: watch}
	p.limits <- limit
	wait.Go(p.arm)
	wait.Go(p.tell)
	return p
}

// arm sets the threshold anew for each limit. Memory that passed it before the
// kernel knew it is told at once.
func (p *pressure) arm() {
	for limit := range p.limits {
		if p.watch.Rearm(limit) == nil && p.watch.Passed() {
			p.put()
		}
	}
}

func (p *pressure) tell() {
	for p.watch.Next() {
		p.put()
	}
}

func (p *pressure) put() {
	select {
	case p.events <- struct{}{}:
	default: // one is waiting to be read: it says the same
	}
}

func (p *pressure) channel() <-chan struct{} {
	if p == nil {
		return nil
	}
	return p.events
}

// rearm follows a new limit; the caller has made sure that close comes later.
func (p *pressure) rearm(limit int64) {
	if p == nil {
		return
	}
	select {
	case <-p.limits: // older, and not armed yet
	default:
	}
	p.limits <- limit
}

func (p *pressure) close() {
	if p != nil {
		close(p.limits)
		p.watch.Close()
	}
}
