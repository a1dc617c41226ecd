package process

// Kill ends every process of the group and its sub-groups and returns when none
// is left, zombies included; only one that a living process outside of the group
// has to reap may remain as a zombie. The group can be used again. It costs a few
// microseconds where the group is empty.
func (g *Group) Kill() error {
	left, err := g.Left()
	if err != nil || !left {
		return err
	}
	return g.End()
}

// End is Kill without the look whether there is anything to do. It is for callers who know that processes of the group were killed a
// moment ago: those count for nothing any more and may yet be on their way out.
func (g *Group) End() error {
	var err error
	switch {
	case g.dir != "":
		err = g.endTree()
	case g.wasUsed(): // else a walk of every process of the machine finds nothing
		_, err = g.hunt(nil)
	}
	for _, l := range g.allLeaders() {
		<-l.done
	}
	g.leaveHome()
	return err
}

func (g *Group) wasUsed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.used
}

// leaveHome sees to it that the next leader starts in a fresh folder.
func (g *Group) leaveHome() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.home != "" {
		_ = g.home.remove() // busy only if a start raced with the kill; Close removes it
		g.home = ""
	}
	for _, sub := range g.subs {
		sub.leaveHome()
	}
}

// Left says whether a process of the group is left, and reaps orphans that have
// ended.
func (g *Group) Left() (bool, error) {
	if g.dir == "" {
		return g.leftWithout()
	}
	if err := g.keeper.reapOrphans(); err != nil {
		return true, err
	}
	return g.dir.populated()
}

// Reap reaps what has ended by itself and was left to this process. It costs one
// system call where there is nothing.
func (g *Group) Reap() error { return g.keeper.reapOrphans() }

// Settle waits until everything in the group but its leaders, which must have been
// killed already, has left the process table.
func (g *Group) Settle() error {
	if g.dir == "" {
		return g.keeper.reapOrphans()
	}
	return g.buryAll()
}

// Close kills the group and removes it. It may be repeated.
func (g *Group) Close() error {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	if err := g.End(); err != nil {
		return err
	}
	if g.parent != nil {
		g.parent.drop(g)
	} else {
		g.keeper.forget(g)
	}
	if g.dir != "" {
		g.keeper.nursing.Delete(g.keeper.inside(g.dir))
		return g.dir.remove()
	}
	return nil
}

func (g *Group) drop(sub *Group) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, s := range g.subs {
		if s == sub {
			g.subs = append(g.subs[:i:i], g.subs[i+1:]...)
			return
		}
	}
}

// allLeaders returns the leaders of the group and its sub-groups.
func (g *Group) allLeaders() []*Leader {
	g.mu.Lock()
	defer g.mu.Unlock()
	var all []*Leader
	for _, l := range g.leaders {
		all = append(all, l)
	}
	for _, sub := range g.subs {
		all = append(all, sub.allLeaders()...)
	}
	return all
}
