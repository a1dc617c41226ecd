package cluster

import (
	"maps"
	"time"

	"github.com/hearth-run/hearth/services/router/internal/placement"
	"github.com/hearth-run/hearth/services/router/internal/sessions"
	"github.com/hearth-run/hearth/services/router/internal/warmth"
)

// Worker takes a worker's status. One that leaves by itself lets its calls end;
// its sessions are told.
func (c *Cluster) Worker(said placement.Worker, state placement.State) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.met = true
	known := c.placement.Known(said.ID)
	gone, err := c.placement.WorkerStatus(time.Now(), said, state)
	if err != nil {
		return err
	}
	switch {
	case gone != nil && state == placement.Removed:
		c.lose(gone, "removed", false)
	case gone != nil:
		c.lose(gone, "replaced by a later life of its own", true)
	}
	if (!known || gone != nil) && state != placement.Removed {
		c.log.Info("worker registered", "worker_id", said.ID, "uri", said.URI, "flavor", said.Flavor, "state", state.String())
	}
	c.admit()
	return nil
}

// Warmth takes which zygotes a worker holds, and with them all that it can start from.
func (c *Cluster) Warmth(worker string, checkpoints []string, zygotes []warmth.Zygote) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.placement.Known(worker) {
		return
	}
	c.placement.Checkpoints(worker, checkpoints)
	c.warmth.Say(worker, zygotes)
}

// Started takes how a worker's calls came to their containers, as it counts them.
func (c *Cluster) Started(worker string, counts map[string]int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.placement.Known(worker) {
		c.starts[worker] = counts
	}
}

// Starts are the counts of every worker that has told any.
func (c *Cluster) Starts() map[string]map[string]int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.starts)
}

// Container takes a container's status, and says whether its worker is known.
func (c *Cluster) Container(said placement.Container, request string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	var held placement.Reservation
	if call := c.calls[request]; call != nil {
		held = call.held
	}
	gone, err := c.placement.Container(time.Now(), said, held)
	if err != nil {
		return false
	}
	if said.Session == "" && gone != nil {
		said.Session = gone.Session
	}
	if said.Session != "" {
		c.tell(c.session(said))
	}
	if said.State == placement.Removed {
		c.admit()
	}
	return true
}

// session passes on what a container's state means to its session.
func (c *Cluster) session(said placement.Container) []sessions.Effect {
	now := time.Now()
	switch said.State {
	case placement.Removed:
		return c.sessions.Gone(now, said.Session, said.Worker, said.ID)
	case placement.Error:
		return c.sessions.Unpin(now, said.Session, said.Worker, said.ID)
	default:
		return c.sessions.Pin(now, said.Session, sessions.Pin{Worker: said.Worker, Container: said.ID, Checkpoint: said.Checkpoint})
	}
}

// Utilization takes a worker's load, and says whether it is known.
func (c *Cluster) Utilization(u placement.Utilization) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.placement.Utilization(time.Now(), u) != nil {
		return false
	}
	c.admit()
	return true
}

// Seen takes any other sign of life, and says whether the worker is known.
func (c *Cluster) Seen(worker string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.placement.Seen(time.Now(), worker)
}

// Evict forgets a worker that was found dead: its calls end, its sessions are
// told. uri guards against a worker that has come back elsewhere meanwhile.
func (c *Cluster) Evict(worker, uri, cause string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.placement.URI(worker) == uri {
		c.lose(c.placement.Evict(worker), cause, true)
	}
}

// Sweep evicts silent workers and releases leases that were left standing.
func (c *Cluster) Sweep() {
	c.mu.Lock()
	defer c.mu.Unlock()
	released, silent := c.placement.Expired(time.Now())
	for _, r := range released {
		c.log.Warn("lease released", "cause", "older than the longest execution")
		delete(c.holders, r)
	}
	for _, gone := range silent {
		c.lose(gone, "silent", true)
	}
	if len(released) > 0 {
		c.admit()
	}
}

// lose carries out that a worker is gone. c.mu is held.
func (c *Cluster) lose(gone *placement.Gone, cause string, cancel bool) {
	if gone == nil {
		return
	}
	c.log.Info("worker gone", "worker_id", gone.Worker, "cause", cause, "containers", len(gone.Containers), "calls", len(gone.Reservations))
	c.forget(gone.URI)
	c.warmth.Say(gone.Worker, nil)
	delete(c.starts, gone.Worker)
	for _, r := range gone.Reservations {
		if call := c.holders[r]; call != nil && cancel {
			call.cancel(ErrWorkerLost)
		}
		delete(c.holders, r)
	}
	for _, container := range gone.Containers {
		if container.Session != "" {
			c.tell(c.sessions.Gone(time.Now(), container.Session, container.Worker, container.ID))
		}
	}
}

// Workers returns every worker, by id.
func (c *Cluster) Workers() []placement.View {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.placement.Views()
}

// Sessions returns every session, by id.
func (c *Cluster) Sessions() []sessions.View {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sessions.Views()
}

// Targets returns where each worker is to be probed, by id.
func (c *Cluster) Targets() map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.placement.URIs()
}

// Load is how many calls are in flight, wait for room, and hold a reservation.
func (c *Cluster) Load() (inFlight, queued, reserved int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.calls), len(c.queue), c.placement.Reservations()
}
