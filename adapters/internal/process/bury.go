package process

import (
	"os"
	"time"
)

// endTree kills a group that is a cgroup and returns when it has left the process
// table, as far as that is ours to do. An empty cgroup says only that its
// processes are dying: they may not have told their parents yet.
//
// Every process of the group was seen before the kill, or is a descendant of one
// that was, or of a leader. When those who were seen and the leaders are gone, what
// is left has become our child, generation by generation.
func (g *Group) endTree() error {
	seen := g.dir.members()
	if err := g.dir.kill(); err != nil {
		return err
	}
	deadline := time.Now().Add(killBound)
	for _, p := range seen {
		if g.keeper.leading.has(p.pid) {
			continue
		}
		if err := finish(p, deadline); err != nil {
			return err
		}
	}
	for _, l := range g.allLeaders() {
		<-l.done
	}
	return g.buryChildren(deadline)
}

// buryChildren reaps those children of this process that were the group's.
func (g *Group) buryChildren(deadline time.Time) error {
	path := g.keeper.inside(g.dir)
	return again(func() (waiting bool, err error) {
		for _, pid := range children() {
			if g.keeper.leading.has(pid) || !beneath(cgroupOf(pid), path) {
				continue
			}
			waiting = true
			if p, ok := readStat(pid); ok {
				if _, err := settle(p, deadline); err != nil {
					return false, err
				}
			}
		}
		return waiting, nil
	})
}

// buryAll is for what others have killed, whose parents may live on: all that the
// group has in the process table is looked for.
func (g *Group) buryAll() error {
	deadline := time.Now().Add(killBound)
	path := g.keeper.inside(g.dir)
	return again(func() (waiting bool, err error) {
		for _, p := range walk() {
			if !beneath(cgroupOf(p.pid), path) || g.keeper.leading.has(p.pid) {
				continue
			}
			again, err := settle(p, deadline)
			if err != nil {
				return false, err
			}
			waiting = waiting || again
		}
		return waiting, nil
	})
}

// again repeats a look until there is nothing to wait for.
func again(look func() (waiting bool, err error)) error {
	for {
		if waiting, err := look(); err != nil || !waiting {
			return err
		}
	}
}

// members returns the live processes in the group and beneath it.
func (c cgroup) members() []stat {
	var all []stat
	for _, dir := range c.tree() {
		for _, pid := range dir.procs() {
			if p, ok := readStat(pid); ok && pid != os.Getpid() {
				all = append(all, p)
			}
		}
	}
	return all
}
