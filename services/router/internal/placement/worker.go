package placement

import (
	"math"
	"time"
)

// GPU is the flavor of workers that have both CPU and GPU; every other flavor is
// one of CPU workers.
const GPU = "gpu"

// amount is what a container takes.
type amount struct {
	mem, gpu   int64
	containers int32
}

func (a *amount) add(b amount) {
	a.mem, a.gpu, a.containers = a.mem+b.mem, a.gpu+b.gpu, a.containers+b.containers
}

// take subtracts, and stops at nothing: a report may know less than we do.
func (a *amount) take(b amount) {
	a.mem, a.gpu, a.containers = max(a.mem-b.mem, 0), max(a.gpu-b.gpu, 0), max(a.containers-b.containers, 0)
}

// worker keeps what a placement touches together, and the rest behind a pointer.
type worker struct {
	used      amount // what the worker last said, less what has gone since
	promised  amount // claims that no report includes yet
	memTotal  int64
	memLimit  int64 // what may be promised of the total
	gpuLimit  int64
	cpu       uint64 // bits of the pressure
	label     uint64 // in the order of ids
	leaf      int32
	inflight  int32
	max       int32 // containers; 0: unbounded
	first     int32 // its reservations, a list
	where     bucket
	indexed   bool
	gpu       bool
	candidate bool // ready, with a uri
	*profile
}

// profile is what the worker has said of itself, and its containers.
type profile struct {
	Worker
	state             State
	seen              time.Time
	cpuUtil, cpuTotal int64
	gpuUtil, gpuTotal int64
	holds             map[string]bool // checkpoints
	containers        map[string]*container
}

type container struct {
	Container
	claim    amount
	reported bool // the claim is part of what the worker reports
	holder   Reservation
}

// load is the part of the worker that is spoken for.
func (w *worker) load() amount {
	l := w.used
	l.add(w.promised)
	return l
}

func (w *worker) standing(slot int32) entry {
	return entry{
		mem:      math.Float64bits(fraction(w.used.mem+w.promised.mem, w.memTotal)),
		cpu:      w.cpu,
		label:    w.label,
		inflight: uint32(w.inflight),
		slot:     slot,
	}
}

func fraction(part, total int64) float64 {
	if total <= 0 {
		return 0
	}
	return float64(part) / float64(total)
}

// takes says whether the worker is a candidate with a container to spare.
func (w *worker) takes() bool {
	return w.candidate && (w.max <= 0 || w.used.containers+w.promised.containers < w.max)
}

// left is what the worker can still take. It is never negative, so that a demand
// of nothing fits everywhere.
func (w *worker) left() room {
	return room{
		mem: max(w.memLimit-w.used.mem-w.promised.mem, 0),
		gpu: max(w.gpuLimit-w.used.gpu-w.promised.gpu, 0),
	}
}

// bound takes over the totals; what has none is unbounded.
func (w *worker) bound(fill float64) {
	w.max, w.memTotal = w.MaxContainers, w.MemTotal
	w.memLimit, w.gpuLimit = limit(fill, w.MemTotal), limit(fill, w.GPUMemTotal)
	w.cpu = math.Float64bits(fraction(w.cpuUtil, w.cpuTotal))
}

// unbounded is more than any worker has, and far from overflow.
const unbounded = math.MaxInt64 / 2

func limit(fill float64, total int64) int64 {
	if total <= 0 {
		return unbounded
	}
	return int64(fill * float64(total))
}
