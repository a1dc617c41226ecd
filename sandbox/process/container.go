//go:build linux && amd64

package process

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/hearth-run/hearth/sandbox"
	"github.com/hearth-run/hearth/sandbox/internal/cgroup"
)

// Container is one sandboxed process tree of a Driver.
type Container struct {
	driver *Driver
	spec   sandbox.Spec
	lent   bool // spec.User is the driver's and goes back to it
	ended  chan struct{}

	destroying sync.Mutex // one Destroy at a time

	moving   sync.Mutex // one Grow at a time, none after the end; guards the next two
	limit    int64      // of memory, in bytes; 0 is none
	pressure *pressure  // nil until it is asked for

	mu      sync.Mutex // guards what follows
	phase   phase
	group   *cgroup.Group // nil without control groups
	process first         // nil before Start
	killed  bool
	exit    sandbox.Exit // final once ended is closed
}

type phase string

const (
	created phase = "created"
	running phase = "running"
	failed  phase = "failed to start"
	gone    phase = "destroyed"
)

var _ sandbox.Container = (*Container)(nil)

func newContainer(d *Driver, spec sandbox.Spec) *Container {
	return &Container{driver: d, spec: spec, phase: created, ended: make(chan struct{})}
}

// prepare makes the control group, in which the limits are from the first moment.
func (c *Container) prepare() error {
	parent := c.driver.machine.cgroups
	if parent == nil {
		return nil
	}
	l := c.spec.Limits
	group, err := parent.Make(c.spec.ID, cgroup.Limits{Memory: l.Memory, Pids: l.Pids, MilliCPU: l.MilliCPU})
	if err != nil {
		return &sandbox.WallError{Wall: "cgroup", Cause: err}
	}
	c.group, c.limit = group, l.Memory
	return nil
}

// Start runs the program; see sandbox.Container.
func (c *Container) Start(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if c.phase != created {
		return fmt.Errorf("start container %s, which is %s: %w", c.spec.ID, c.phase, sandbox.ErrState)
	}
	c.phase = failed
	l := &launch{container: c}
	defer l.closeChildSide()
	if err := l.run(ctx); err != nil {
		return fmt.Errorf("start container %s: %w", c.spec.ID, err)
	}
	c.phase = running
	return nil
}

// watch owns the first process from the moment it exists until it is gone. status is
// nil where the first process is the program.
func (c *Container) watch(process first, status *os.File) {
	exit, told := readExit(status)
	// It returns after every process of the namespace is gone.
	if own, known := process.wait(); known && !told {
		exit = exitOf(own)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.group != nil {
		exit.OOMKills = c.group.OOMKills()
	}
	exit.Killed = c.killed && exit.Signal != 0
	c.exit = exit
	close(c.ended)
}

// Wait waits for the end; see sandbox.Container.
func (c *Container) Wait(ctx context.Context) (sandbox.Exit, error) {
	c.mu.Lock()
	started := c.process != nil
	c.mu.Unlock()
	if !started {
		return sandbox.Exit{}, fmt.Errorf("wait for container %s, which was not started: %w", c.spec.ID, sandbox.ErrState)
	}
	select {
	case <-c.ended:
		return c.exit, nil
	case <-ctx.Done():
		return sandbox.Exit{}, ctx.Err()
	}
}

// Kill ends every process; see sandbox.Container.
func (c *Container) Kill() error {
	group, err := c.stop()
	if err != nil || group == nil {
		return err
	}
	return killAll(group, c.driver.config.Patience)
}

// stop ends the first process, and with it the namespace, and returns the group that
// then should hold nothing.
func (c *Container) stop() (*cgroup.Group, error) {
	c.mu.Lock()
	process, group := c.process, c.group
	c.killed = true
	c.mu.Unlock()
	if process == nil {
		return group, nil
	}
	// Killing the first process of a pid namespace kills them all. It has a pidfd: a
	// reused number cannot be hit.
	process.kill()
	select {
	case <-c.ended:
		return group, nil
	case <-time.After(c.driver.config.Patience):
		return group, fmt.Errorf("kill container %s: %w", c.spec.ID, sandbox.ErrNotEmpty)
	}
}

// Destroy kills and releases; see sandbox.Container.
func (c *Container) Destroy() error {
	c.destroying.Lock()
	defer c.destroying.Unlock()
	c.mu.Lock()
	over := c.phase == gone
	c.mu.Unlock()
	if over {
		return nil
	}
	group, err := c.stop()
	if err == nil && group != nil {
		err = empty(group, c.driver.config.Patience)
	}
	if err != nil {
		return fmt.Errorf("destroy container %s: %w", c.spec.ID, err)
	}
	c.end()
	c.driver.forget(c)
	return nil
}

func (c *Container) end() {
	c.moving.Lock()
	defer c.moving.Unlock()
	c.mu.Lock()
	c.phase = gone
	c.mu.Unlock()
	c.pressure.close()
}

// Stats reads the counters; see sandbox.Meter.
func (c *Container) Stats() (sandbox.Stats, error) {
	group, err := c.meter()
	if err != nil {
		return sandbox.Stats{}, fmt.Errorf("read container %s: %w", c.spec.ID, err)
	}
	s := group.Stats()
	return sandbox.Stats{MemoryBytes: s.Memory, MemoryPeakBytes: s.Peak, MemoryLimitBytes: s.Limit,
		CPU: s.CPU, OOMKills: s.OOMKills, Pids: s.Pids}, nil
}

// Grow moves the memory limit; see sandbox.Meter.
func (c *Container) Grow(bytes int64) error {
	c.moving.Lock() // Destroy closes what is rearmed here
	defer c.moving.Unlock()
	group, err := c.meter()
	if err == nil {
		err = group.LimitMemory(bytes)
	}
	if err == nil {
		c.limit = bytes
		c.pressure.rearm(bytes)
	}
	if err != nil {
		return fmt.Errorf("grow container %s to %d bytes: %w", c.spec.ID, bytes, err)
	}
	return nil
}

// Pressure tells of memory running out; see sandbox.Meter.
func (c *Container) Pressure() <-chan struct{} {
	c.moving.Lock()
	defer c.moving.Unlock()
	group, err := c.meter()
	if err != nil || c.limit == 0 {
		return nil
	}
	if c.pressure == nil {
		c.pressure = watchPressure(group, c.limit, &c.driver.watches)
	}
	return c.pressure.channel()
}

func (c *Container) meter() (*cgroup.Group, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.phase == gone {
		return nil, sandbox.ErrState
	}
	if c.group == nil || !c.driver.machine.cgroups.Has().Memory {
		return nil, sandbox.ErrNoMeter
	}
	return c.group, nil
}
