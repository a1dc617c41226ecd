//go:build linux && amd64

package cgroup

import (
	"fmt"
	"strconv"
	"time"
)

// period is the kernel's own default, in microseconds, over which CPU time is cut.
const period = 100_000

// noLimit is what version 1 shows where no limit is set, rounded down to a page.
const noLimit = int64(1) << 62

func (g *Group) limit(l Limits) error {
	if l.Memory > 0 {
		if err := g.LimitMemory(l.Memory); err != nil {
			return err
		}
	}
	if l.Pids > 0 {
		if err := g.write(g.in("pids"), "pids.max", strconv.FormatInt(l.Pids, 10)); err != nil {
			return err
		}
	}
	if l.MilliCPU > 0 {
		return g.limitCPU(l.MilliCPU * period / 1000)
	}
	return nil
}

// in is the hierarchy that a controller's files are in.
func (g *Group) in(controller string) string {
	if g.v2 {
		return "unified"
	}
	return controller
}

func (g *Group) limitCPU(quota int64) error {
	if g.v2 {
		return g.write("unified", "cpu.max", fmt.Sprintf("%d %d", quota, period))
	}
	if err := g.write("cpu", "cpu.cfs_period_us", strconv.Itoa(period)); err != nil {
		return err
	}
	return g.write("cpu", "cpu.cfs_quota_us", strconv.FormatInt(quota, 10))
}

// LimitMemory sets the limit, in bytes, swap included. Raising it takes effect at
// once; lowering it below what is in use fails with EBUSY on version 1.
func (g *Group) LimitMemory(bytes int64) error {
	value := strconv.FormatInt(bytes, 10)
	if g.v2 {
		_ = g.write("unified", "memory.swap.max", "0") // not there without swap
		return g.write("unified", "memory.max", value)
	}
	// memory+swap may never be below memory: when raising it goes first, when
	// lowering it goes last. It is not there without swap accounting.
	_ = g.write("memory", "memory.memsw.limit_in_bytes", value)
	if err := g.write("memory", "memory.limit_in_bytes", value); err != nil {
		return err
	}
	_ = g.write("memory", "memory.memsw.limit_in_bytes", value)
	return nil
}

// OOMKills counts the processes that were killed for memory.
func (g *Group) OOMKills() int64 {
	if g.v2 {
		return g.field("unified", "memory.events", "oom_kill")
	}
	return g.field("memory", "memory.oom_control", "oom_kill")
}

// Stats reads the counters; those without a controller are 0.
func (g *Group) Stats() Stats {
	oomKills := g.OOMKills()
	if g.v2 {
		return Stats{
			Memory:   g.number("unified", "memory.current"),
			Peak:     g.number("unified", "memory.peak"),
			Limit:    g.number("unified", "memory.max"),
			CPU:      time.Duration(g.field("unified", "cpu.stat", "usage_usec")) * time.Microsecond,
			OOMKills: oomKills,
			Pids:     g.number("unified", "pids.current"),
		}
	}
	s := Stats{
		Memory:   g.number("memory", "memory.usage_in_bytes"),
		Peak:     g.number("memory", "memory.max_usage_in_bytes"),
		Limit:    g.number("memory", "memory.limit_in_bytes"),
		CPU:      time.Duration(g.number("cpuacct", "cpuacct.usage")),
		OOMKills: oomKills,
		Pids:     g.number("pids", "pids.current"),
	}
	if s.Limit >= noLimit {
		s.Limit = 0
	}
	return s
}
