package placement

import (
	"fmt"
	"slices"
	"time"
)

// patience is how many workers at most are looked at for one that holds the
// wanted checkpoint; past it the best one found is taken, so that the cost of a
// placement stays flat.
const patience = 512

// Request is one call to place.
type Request struct {
	// Memory and GPUMemory are bytes; 0 fits everywhere.
	Memory, GPUMemory int64
	// GPU asks for a gpu worker.
	GPU bool
	// Worker and Container name the live container to go to, whatever the load.
	Worker, Container string
	// Cold refuses a container that was started from a checkpoint.
	Cold bool
	// Checkpoint prefers workers that hold it; where none of them has room, any
	// worker will do.
	Checkpoint string
	// Warm prefers workers that hold it too, as far as load allows (see warmest).
	Warm string
	// Without names workers that have refused this call.
	Without []string
}

// Placement is the choice. The reservation is to be released exactly once.
type Placement struct {
	Reservation         Reservation
	Worker, URI, Flavor string
	// Container is set when the call goes to a live one.
	Container string
}

// Place chooses a worker and reserves, in one step. Errors: ErrNoWorker,
// ErrNoneFits, and with a container ErrContainerGone, ErrWorkerNotReady,
// ErrRestored; ErrPreparing in place of ErrNoWorker where waiting helps.
func (m *Machine) Place(now time.Time, r Request) (Placement, error) {
	if r.Container != "" {
		return m.rejoin(now, r)
	}
	if m.ready == 0 {
		return Placement{}, m.nobody()
	}
	slot := m.choose(&r)
	if slot == none {
		return Placement{}, ErrNoneFits
	}
	claim := amount{r.Memory, r.GPUMemory, 1}
	w := &m.workers[slot]
	w.promised.add(claim)
	return m.reserve(now, slot, claim), nil
}

// nobody says why nobody is ready.
func (m *Machine) nobody() error {
	for _, slot := range m.order.slots {
		if m.workers[slot].state == Busy {
			return ErrPreparing
		}
	}
	return ErrNoWorker
}

func (m *Machine) choose(r *Request) int32 {
	s := search{
		demand:  room{r.Memory, r.GPUMemory},
		workers: m.workers,
		steps:   patience,
	}
	gpu := r.GPU || r.GPUMemory > 0
	allowed := func(slot int32) bool { return !slices.Contains(r.Without, m.workers[slot].ID) }
	if r.Checkpoint != "" {
		s.takes = func(slot int32) bool { return m.workers[slot].holds[r.Checkpoint] && allowed(slot) }
		if best := m.index.choose(gpu, &s); best.slot != none {
			return best.slot
		}
		s.steps = patience
	}
	s.takes = nil
	if len(r.Without) > 0 {
		s.takes = allowed
	}
	best := m.index.choose(gpu, &s).slot
	if r.Warm != "" && best != none && !m.workers[best].holds[r.Warm] {
		return m.warmest(r, gpu, best)
	}
	return best
}

// rejoin goes back to a live container. It claims nothing: the container has its
// claim already.
func (m *Machine) rejoin(now time.Time, r Request) (Placement, error) {
	slot, known := m.slots[r.Worker]
	if !known {
		return Placement{}, fmt.Errorf("%w: worker %s is not known", ErrContainerGone, r.Worker)
	}
	w := &m.workers[slot]
	c := w.containers[r.Container]
	switch {
	case c == nil || c.State != Ready && c.State != Busy:
		return Placement{}, fmt.Errorf("%w: %s on worker %s", ErrContainerGone, r.Container, r.Worker)
	case !w.candidate:
		return Placement{}, fmt.Errorf("%w: worker %s is %s", ErrWorkerNotReady, r.Worker, w.state)
	case r.Cold && c.Checkpoint != "":
		return Placement{}, fmt.Errorf("%w: %s", ErrRestored, c.Checkpoint)
	}
	p := m.reserve(now, slot, amount{})
	m.link(slot, c, p.Reservation)
	p.Container = r.Container
	return p, nil
}

func (m *Machine) reserve(now time.Time, slot int32, claim amount) Placement {
	w := &m.workers[slot]
	w.inflight++
	i := m.books.open(now, slot, &w.first, claim)
	m.reindex(slot)
	return Placement{Reservation: m.books.reservation(i), Worker: w.ID, URI: w.URI, Flavor: w.Flavor}
}

// Release ends a reservation. keep says that the call's container lives on, for
// its session; otherwise it is destroyed by its worker, and its claim ends here.
// It is false when the reservation was released before.
func (m *Machine) Release(r Reservation, keep bool) bool {
	i := m.books.find(r)
	if i == none {
		return false
	}
	b := &m.books.entries[i]
	slot, c, claim := b.worker, b.container, b.claim
	w := &m.workers[slot]
	m.books.close(i, &w.first)
	w.inflight--
	switch {
	case c == nil:
		w.promised.take(claim)
	case keep:
		c.holder = 0
	default:
		w.drop(c)
	}
	m.reindex(slot)
	return true
}

// drop takes a container and its claim off the worker, wherever it is counted.
func (w *worker) drop(c *container) {
	if c.reported {
		w.used.take(c.claim)
	} else {
		w.promised.take(c.claim)
	}
	delete(w.containers, c.ID)
}

// Holds says whether a worker has said that it holds a checkpoint.
func (m *Machine) Holds(worker, checkpoint string) bool {
	slot, known := m.slots[worker]
	return known && m.workers[slot].holds[checkpoint]
}

// Container takes a report of one container: from its worker, or from the answer
// of the call that r was made for (0: no call of ours). A call's claim goes over
// to its container, so that both are counted once. The effect is what was known
// of a container that is gone now.
func (m *Machine) Container(now time.Time, said Container, r Reservation) (*Container, error) {
	slot, known := m.slots[said.Worker]
	if !known {
		return nil, fmt.Errorf("%w: %s", ErrUnknownWorker, said.Worker)
	}
	w := &m.workers[slot]
	w.seen = now
	c := w.containers[said.ID]
	if said.State == Removed {
		if c == nil {
			return nil, nil
		}
		m.unlink(c)
		w.drop(c)
		m.reindex(slot)
		return &c.Container, nil
	}
	if c == nil {
		c = w.meet(said)
	}
	c.learn(said)
	m.link(slot, c, r)
	m.reindex(slot)
	return nil, nil
}

// meet enters a container that was not known; what it takes of memory only its
// worker knows, until the call that it was created for is linked.
func (w *worker) meet(said Container) *container {
	c := &container{Container: said, claim: amount{containers: 1}}
	if w.containers == nil {
		w.containers = map[string]*container{}
	}
	w.containers[said.ID] = c
	w.promised.add(c.claim)
	return c
}

// learn keeps what an earlier report knew and this one leaves out.
func (c *container) learn(said Container) {
	c.State = said.State
	if said.Session != "" {
		c.Session = said.Session
	}
	if said.Checkpoint != "" {
		c.Checkpoint = said.Checkpoint
	}
}

// link hands the claim of a call over to the container that was created for it.
func (m *Machine) link(slot int32, c *container, r Reservation) {
	i := m.books.find(r)
	if i == none || m.books.entries[i].worker != slot || m.books.entries[i].container != nil {
		return
	}
	b := &m.books.entries[i]
	b.container, c.holder = c, r
	if b.claim.containers == 0 {
		return // a call into a live container
	}
	w := &m.workers[slot]
	if c.reported {
		w.promised.take(b.claim) // the report counts it already
	} else {
		w.promised.take(c.claim)
	}
	c.claim = b.claim
}

// unlink leaves a call whose container went before its end with nothing to claim.
func (m *Machine) unlink(c *container) {
	if i := m.books.find(c.holder); i != none {
		m.books.entries[i].container, m.books.entries[i].claim = nil, amount{}
	}
}

// Expired releases the reservations that are older than the lease and evicts the
// workers that have been silent for too long.
func (m *Machine) Expired(now time.Time) (released []Reservation, silent []*Gone) {
	for b := &m.books; b.oldest != none && now.Sub(b.entries[b.oldest].at) > m.cfg.Lease; {
		r := b.reservation(b.oldest)
		released = append(released, r)
		m.Release(r, false)
	}
	var ids []string
	for _, slot := range m.order.slots {
		if w := &m.workers[slot]; now.Sub(w.seen) > m.cfg.Silence {
			ids = append(ids, w.ID)
		}
	}
	for _, id := range ids {
		silent = append(silent, m.Evict(id))
	}
	return released, silent
}
