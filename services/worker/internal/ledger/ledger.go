package ledger

import "fmt"

// Capacity is what the worker has. Bytes; MaxContainers 0 is unbounded.
type Capacity struct {
	Memory, GPUMemory int64
	MaxContainers     int
}

// Demand is what one container holds. Bytes.
type Demand struct {
	Memory, GPUMemory int64
	// MaxMemory is how far Memory may grow; 0: up to 90 % of the worker.
	MaxMemory int64
}

// FullError says what there was not enough of.
type FullError struct {
	What              string
	Asked, Free, Have int64
}

func (e *FullError) Error() string {
	return fmt.Sprintf("%s: asked %d, free %d of %d", e.What, e.Asked, e.Free, e.Have)
}

// Ledger is the account of one worker. Not safe for concurrent use.
type Ledger struct {
	capacity Capacity
	used     map[string]Demand
	memory   int64
	gpu      int64
}

// New returns an empty account.
func New(capacity Capacity) *Ledger {
	return &Ledger{capacity: capacity, used: map[string]Demand{}}
}

// Reserve takes what a container needs, or says why it does not fit. The same
// container twice is a fault of the caller's and refused.
func (l *Ledger) Reserve(container string, d Demand) error {
	if _, there := l.used[container]; there {
		return fmt.Errorf("container %s holds a reservation already", container)
	}
	if limit := l.capacity.MaxContainers; limit > 0 && len(l.used) >= limit {
		return &FullError{"containers", 1, 0, int64(limit)}
	}
	if free := l.capacity.Memory - l.memory; d.Memory > free {
		return &FullError{"memory bytes", d.Memory, free, l.capacity.Memory}
	}
	if free := l.capacity.GPUMemory - l.gpu; d.GPUMemory > free {
		return &FullError{"GPU memory bytes", d.GPUMemory, free, l.capacity.GPUMemory}
	}
	l.used[container] = d
	l.memory += d.Memory
	l.gpu += d.GPUMemory
	return nil
}

// Grow doubles a container's memory, up to its maximum and to what the worker
// has left, and returns the new size; false: it cannot grow.
func (l *Ledger) Grow(container string) (int64, bool) {
	d, there := l.used[container]
	if !there {
		return 0, false
	}
	next := min(2*d.Memory, l.ceiling(d), d.Memory+l.capacity.Memory-l.memory)
	if next <= d.Memory {
		return d.Memory, false
	}
	l.memory += next - d.Memory
	d.Memory = next
	l.used[container] = d
	return next, true
}

// Twice returns the demand with twice the memory, for the one retry after an OOM
// kill; false: the maximum or the worker does not allow it.
func (l *Ledger) Twice(d Demand) (Demand, bool) {
	if 2*d.Memory > l.ceiling(d) {
		return d, false
	}
	d.Memory *= 2
	return d, true
}

func (l *Ledger) ceiling(d Demand) int64 {
	most := l.capacity.Memory / 10 * 9
	if d.MaxMemory > 0 {
		return min(d.MaxMemory, most)
	}
	return most
}

// Release gives back what a container holds; true the first time.
func (l *Ledger) Release(container string) bool {
	d, there := l.used[container]
	if !there {
		return false
	}
	delete(l.used, container)
	l.memory -= d.Memory
	l.gpu -= d.GPUMemory
	return true
}

// Held returns what a container holds now.
func (l *Ledger) Held(container string) Demand { return l.used[container] }

// Usage returns what is given out in all.
func (l *Ledger) Usage() (memory, gpu int64, containers int) {
	return l.memory, l.gpu, len(l.used)
}
