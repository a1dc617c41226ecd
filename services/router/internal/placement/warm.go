package placement

import (
	"math"
	"slices"
)

// detour is how much more of its memory, and of its CPU, may be taken on a worker
// that is chosen because the call's imports are warm there.
const detour = 0.25

// stroll is how many workers at most are asked whether they hold what is wanted, so
// that the cost of a placement stays flat.
const stroll = 64

// warmest is the first in the order of choice of the workers that hold what a call
// would like to start from, if that is not too far from the best: of the same kind
// (a call without GPU demand does not go to a gpu worker for it), with no more than
// detour more pressure on memory and on CPU. Otherwise it is the best.
func (m *Machine) warmest(r *Request, gpu bool, best int32) int32 {
	s := search{
		demand: room{r.Memory, r.GPUMemory}, workers: m.workers, steps: stroll,
		takes: func(slot int32) bool {
			return m.workers[slot].holds[r.Warm] && !slices.Contains(r.Without, m.workers[slot].ID) && m.near(slot, best)
		},
	}
	if warm := m.index.choose(gpu, &s).slot; warm != none {
		return warm
	}
	return best
}

func (m *Machine) near(slot, best int32) bool {
	a, b := &m.workers[slot], &m.workers[best]
	return a.gpu == b.gpu && a.pressure() <= b.pressure()+detour &&
		math.Float64frombits(a.cpu) <= math.Float64frombits(b.cpu)+detour
}

// pressure is the part of its memory that is spoken for.
func (w *worker) pressure() float64 { return fraction(w.used.mem+w.promised.mem, w.memTotal) }
