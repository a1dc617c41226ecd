package placement

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Refusals.
var (
	// ErrNoWorker: no worker is ready.
	ErrNoWorker = errors.New("no worker is ready")
	// ErrPreparing: no worker is ready, and one has said that it will be (BUSY).
	ErrPreparing = errors.New("a worker is being prepared")
	// ErrNoneFits: workers are ready, and none has room for the demand.
	ErrNoneFits = errors.New("no worker has room for the demand")
	// ErrContainerGone: the container that a session is pinned to is not live.
	ErrContainerGone = errors.New("the container is gone")
	// ErrWorkerNotReady: the container's worker takes no calls at the moment.
	ErrWorkerNotReady = errors.New("the container's worker takes no calls at the moment")
	// ErrRestored: an unoptimized call met a container that was started from a
	// checkpoint.
	ErrRestored = errors.New("the container was started from a checkpoint")
	// ErrUnknownWorker: the worker must post its status first.
	ErrUnknownWorker = errors.New("the worker is not known")
)

// State is a worker's or a container's state, as reported.
type State uint8

// States. The zero value is no state that may be reported.
const (
	Unknown State = iota
	Ready
	Busy
	Error
	Removed
)

func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("State(%d)", uint8(s))
}

var stateNames = [...]string{"UNKNOWN", "READY", "BUSY", "ERROR", "REMOVED"}

// Config bounds the machine.
type Config struct {
	// Fill is the part of a total that may be promised, 0.9 by default.
	Fill float64
	// Silence is how long a worker may be silent before it is evicted.
	Silence time.Duration
	// Lease is how long a reservation may stand before it is released.
	Lease time.Duration
}

// Worker is what a worker says of itself.
type Worker struct {
	ID, URI, Flavor string
	// Incarnation differs between two lives of one worker id; "" is not told.
	Incarnation           string
	MemTotal, GPUMemTotal int64
	MaxContainers         int32
	Checkpoints           []string
}

// Container is what a worker says of one of its containers.
type Container struct {
	ID, Worker, Session, Checkpoint string
	State                           State
}

// Utilization is a worker's load, all of it as the worker counts it.
type Utilization struct {
	Worker                string
	CPUUtil, CPUTotal     int64
	GPUUtil, GPUTotal     int64
	MemUsed, MemTotal     int64
	GPUMemUsed, GPUMemTot int64
	Containers            int32
}

// Gone is the effect of losing a worker: its containers and reservations went
// with it, and the reservations are released already.
type Gone struct {
	Worker       string
	URI          string
	Containers   []Container
	Reservations []Reservation
}

// Machine is the state. Not safe for concurrent use.
type Machine struct {
	cfg     Config
	slots   map[string]int32
	workers []worker
	free    []int32 // slots
	ready   int     // candidates, whether or not they have room
	order   order
	index   index
	books   books
}

// New returns a machine without workers.
func New(cfg Config) *Machine {
	return &Machine{cfg: cfg, slots: map[string]int32{}, books: newBooks()}
}

// transitions says which state a worker's report leads to. What is missing is
// refused; to Removed means that the worker is forgotten.
var transitions = map[State]map[State]State{
	Unknown: {Ready: Ready, Busy: Busy, Error: Error, Removed: Removed},
	Ready:   {Ready: Ready, Busy: Busy, Error: Error, Removed: Removed},
	Busy:    {Ready: Ready, Busy: Busy, Error: Error, Removed: Removed},
	Error:   {Ready: Ready, Busy: Busy, Error: Error, Removed: Removed},
}

// WorkerStatus takes a worker's status; one that is not known becomes so. The
// effect is not nil when the worker went, or lost an earlier life of its own.
func (m *Machine) WorkerStatus(now time.Time, said Worker, state State) (*Gone, error) {
	slot, known := m.slots[said.ID]
	from := Unknown
	if known {
		from = m.workers[slot].state
	}
	to, ok := transitions[from][state]
	if !ok {
		return nil, fmt.Errorf("worker %s: %s in state %s: no such step", said.ID, state, from)
	}
	if to == Removed {
		return m.Evict(said.ID), nil
	}
	var gone *Gone
	if known && m.workers[slot].reborn(said) {
		gone, known = m.Evict(said.ID), false
	}
	if !known {
		slot = m.enter(said.ID)
	}
	w := &m.workers[slot]
	w.say(said, now)
	m.place(slot, state)
	return gone, nil
}

// say takes over a status. A total that it leaves out stays as it was known.
func (w *worker) say(said Worker, now time.Time) {
	if said.MemTotal == 0 {
		said.MemTotal = w.MemTotal
	}
	if said.GPUMemTotal == 0 {
		said.GPUMemTotal = w.GPUMemTotal
	}
	w.Worker, w.seen = said, now
	w.holds = make(map[string]bool, len(said.Checkpoints))
	for _, checkpoint := range said.Checkpoints {
		w.holds[checkpoint] = true
	}
}

// reborn says whether a status comes from a later life: its containers are gone.
func (w *worker) reborn(said Worker) bool {
	return w.Incarnation != said.Incarnation || w.URI != "" && said.URI != "" && w.URI != said.URI
}

// Checkpoints takes what a worker holds now, between two of its statuses.
func (m *Machine) Checkpoints(worker string, held []string) {
	slot, known := m.slots[worker]
	if !known {
		return
	}
	w := &m.workers[slot]
	w.Checkpoints, w.holds = held, make(map[string]bool, len(held))
	for _, checkpoint := range held {
		w.holds[checkpoint] = true
	}
}

// enter gives a new worker its slot.
func (m *Machine) enter(id string) int32 {
	var slot int32
	if n := len(m.free); n > 0 {
		slot = m.free[n-1]
		m.free = m.free[:n-1]
	} else {
		slot = int32(len(m.workers))
		m.workers = append(m.workers, worker{})
	}
	m.workers[slot] = worker{first: none, profile: &profile{Worker: Worker{ID: id}}}
	m.slots[id] = slot
	if m.order.insert(m.workers, slot) {
		m.relabel()
	}
	return slot
}

// relabel renews the labels where they stand in the index; their order is the same.
func (m *Machine) relabel() {
	for _, slot := range m.order.slots {
		m.reindex(slot)
	}
}

// Evict forgets a worker with all that it held; nil if it is not known.
func (m *Machine) Evict(id string) *Gone {
	slot, known := m.slots[id]
	if !known {
		return nil
	}
	w := &m.workers[slot]
	gone := &Gone{Worker: id, URI: w.URI}
	for _, c := range w.containers {
		gone.Containers = append(gone.Containers, c.Container)
	}
	for w.first != none {
		r := m.books.reservation(w.first)
		gone.Reservations = append(gone.Reservations, r)
		m.Release(r, false)
	}
	slices.SortFunc(gone.Containers, func(a, b Container) int { return strings.Compare(a.ID, b.ID) })
	m.place(slot, Removed)
	m.order.remove(m.workers, slot)
	delete(m.slots, id)
	m.workers[slot] = worker{first: none, profile: &profile{}}
	m.free = append(m.free, slot)
	return gone
}

// Utilization takes a worker's load. It includes every container that is known
// by now, whose promises end with it.
func (m *Machine) Utilization(now time.Time, u Utilization) error {
	slot, known := m.slots[u.Worker]
	if !known {
		return fmt.Errorf("%w: %s", ErrUnknownWorker, u.Worker)
	}
	w := &m.workers[slot]
	w.seen = now
	for _, c := range w.containers {
		if !c.reported {
			w.promised.take(c.claim)
			c.reported = true
		}
	}
	w.used = amount{max(u.MemUsed, 0), max(u.GPUMemUsed, 0), max(u.Containers, 0)}
	w.cpuUtil, w.cpuTotal = max(u.CPUUtil, 0), max(u.CPUTotal, 0)
	w.gpuUtil, w.gpuTotal = max(u.GPUUtil, 0), max(u.GPUTotal, 0)
	if u.MemTotal > 0 {
		w.MemTotal = u.MemTotal
	}
	if u.GPUMemTot > 0 {
		w.GPUMemTotal = u.GPUMemTot
	}
	w.bound(m.cfg.Fill)
	m.reindex(slot)
	return nil
}

// place renews whether the worker is a candidate, and of which kind.
func (m *Machine) place(slot int32, state State) {
	w := &m.workers[slot]
	m.leave(w)
	w.state, w.gpu = state, w.Flavor == GPU
	w.bound(m.cfg.Fill)
	if candidate := state == Ready && w.URI != ""; candidate != w.candidate {
		w.candidate = candidate
		m.ready += map[bool]int{true: 1, false: -1}[candidate]
	}
	m.reindex(slot)
}

func (m *Machine) leave(w *worker) {
	if w.indexed {
		m.index.remove(w.gpu, w.where, w.leaf)
		w.indexed = false
	}
}

// reindex puts the worker where its numbers say. Every change of them ends here.
func (m *Machine) reindex(slot int32) {
	w := &m.workers[slot]
	if !w.takes() {
		m.leave(w)
		return
	}
	free := w.left()
	where := bucket{mem: class(free.mem)}
	if w.gpu {
		where.gpu = class(free.gpu)
	}
	if w.indexed && w.where == where {
		m.index.set(w.gpu, where, w.leaf, w.standing(slot), free)
		return
	}
	m.leave(w)
	w.where, w.indexed = where, true
	w.leaf = m.index.add(w.gpu, where, w.standing(slot), free)
}
