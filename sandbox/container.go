package sandbox

import (
	"context"
	"errors"
	"syscall"
	"time"
)

// Driver makes containers behind walls. It is safe for concurrent use.
type Driver interface {
	// Create prepares a container and runs nothing. Errors: what Spec.Validate
	// says, ErrExists, ErrClosed, a *WallError where a wall cannot be built.
	Create(ctx context.Context, spec Spec) (Container, error)
	// Close destroys every container that is left and releases the driver. It may
	// be repeated.
	Close() error
}

// Container is one sandboxed process tree. It is safe for concurrent use.
type Container interface {
	Meter
	// Start runs Argv and returns once it was executed behind every wall, or with
	// the reason why not: ErrState, *WallError, *StartError. After a failed Start
	// only Destroy is left to do.
	Start(ctx context.Context) error
	// Wait returns after the program has ended and every process of the container
	// is gone. Any number of callers may wait. Errors: ctx's, ErrState before Start.
	Wait(ctx context.Context) (Exit, error)
	// Kill ends every process and returns when none is left. On a container that
	// runs nothing it is a success. Errors: ErrNotEmpty after the driver's patience.
	Kill() error
	// Destroy kills and releases everything. Errors: ErrNotEmpty; it may be called
	// again then.
	Destroy() error
}

// Meter reads and moves a container's limits.
type Meter interface {
	// Stats reads the kernel's counters. Errors: ErrState once destroyed,
	// ErrNoMeter where the machine lets the driver count nothing.
	Stats() (Stats, error)
	// Grow sets the memory limit to bytes, at once, while the container runs.
	// Errors: ErrState once destroyed, ErrNoMeter without a memory wall, the kernel's.
	Grow(bytes int64) error
	// Pressure has a value whenever memory in use passes 90 % of the limit that
	// stands at that moment. It is never closed and holds at most one value; it is
	// nil where the kernel cannot tell, without a memory limit, and once destroyed.
	// The watch begins with the first call: the kernel needs 10 ms for it.
	Pressure() <-chan struct{}
}

// Exit says how a container's program ended.
type Exit struct {
	// Code is the exit code, or -1 after a signal.
	Code int
	// Signal ended the program; 0 when it exited by itself.
	Signal syscall.Signal
	// Killed says that Kill, Destroy or the death of the driver ended it.
	Killed bool
	// OOMKills is how many of its processes the kernel killed for memory, told by
	// its own counter. Above 0 the program was out of memory, whatever Code says.
	OOMKills int64
}

// Stats are the kernel's counters of one container.
type Stats struct {
	// MemoryBytes are in use now, MemoryPeakBytes were at most, MemoryLimitBytes
	// may be (0: no limit).
	MemoryBytes, MemoryPeakBytes, MemoryLimitBytes int64
	// CPU is the time used by all its processes since Create.
	CPU time.Duration
	// OOMKills counts processes killed for memory.
	OOMKills int64
	// Pids is the number of processes and threads now.
	Pids int64
}

// Sentinels; test with errors.Is.
var (
	ErrExists   = errors.New("a container with this id exists")
	ErrClosed   = errors.New("the driver is closed")
	ErrState    = errors.New("not possible in the container's present state")
	ErrNoMeter  = errors.New("no cgroup controller for this on this machine")
	ErrNotEmpty = errors.New("processes are left that do not die")
)
