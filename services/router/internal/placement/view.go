package placement

import (
	"slices"
	"strings"
	"time"
)

// View is a worker as the machine knows it.
type View struct {
	Worker
	State State
	Seen  time.Time
	// Taken is what counts against the totals: reported and promised.
	MemTaken, GPUMemTaken int64
	ContainersTaken       int32
	CPUUtil, CPUTotal     int64
	InFlight              int32
	Containers            []Container
}

// Views returns every worker, by id.
func (m *Machine) Views() []View {
	views := make([]View, 0, len(m.order.slots))
	for _, slot := range m.order.slots {
		w := &m.workers[slot]
		load := w.load()
		v := View{
			Worker: w.Worker, State: w.state, Seen: w.seen, MemTaken: load.mem, GPUMemTaken: load.gpu,
			ContainersTaken: load.containers, CPUUtil: w.cpuUtil, CPUTotal: w.cpuTotal, InFlight: w.inflight,
		}
		for _, c := range w.containers {
			v.Containers = append(v.Containers, c.Container)
		}
		slices.SortFunc(v.Containers, func(a, b Container) int { return strings.Compare(a.ID, b.ID) })
		views = append(views, v)
	}
	return views
}

// Reservations is how many stand.
func (m *Machine) Reservations() int { return m.books.live }

// Known says whether a worker has registered.
func (m *Machine) Known(worker string) bool {
	_, known := m.slots[worker]
	return known
}

// URI is where a worker serves, "" if it is not known.
func (m *Machine) URI(worker string) string {
	if slot, known := m.slots[worker]; known {
		return m.workers[slot].URI
	}
	return ""
}

// URIs is where each worker that takes calls serves, by id: one that says itself that
// it does not is let be until it is silent.
func (m *Machine) URIs() map[string]string {
	uris := make(map[string]string, len(m.slots))
	for id, slot := range m.slots {
		if uri := m.workers[slot].URI; uri != "" && m.workers[slot].state == Ready {
			uris[id] = uri
		}
	}
	return uris
}

// Seen takes a sign of life, and says whether the worker is known.
func (m *Machine) Seen(now time.Time, worker string) bool {
	slot, known := m.slots[worker]
	if known {
		m.workers[slot].seen = now
	}
	return known
}
