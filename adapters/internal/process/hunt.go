package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// markName is the variable by which orphans are known where there is no cgroup.
const markName = "HEARTH_GROUP"

// markOf returns the mark in the environment that a process was started with.
func markOf(pid int) string {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return ""
	}
	for entry := range bytes.SplitSeq(data, []byte{0}) {
		if mark, ok := bytes.CutPrefix(entry, []byte(markName+"=")); ok {
			return string(mark)
		}
	}
	return ""
}

// knows says whether a process without a cgroup is one of the keeper's: by its
// mark, or, for a zombie, which has no environment left, by its process group or
// session: its number cannot have been given away while a member is left. A
// daemon that ends by itself before anybody saw it stays unknown.
func (k *Keeper) knows(pid int) bool {
	if mark := markOf(pid); mark != "" {
		return strings.HasPrefix(mark, k.id+"/")
	}
	p, ok := readStat(pid)
	if !ok || !p.dead() {
		return false
	}
	for _, g := range k.list() {
		if g.hasRoot(p.pid) || p.group != p.pid && (g.hasRoot(p.group) || g.hasRoot(p.session)) {
			return true
		}
	}
	return false
}

// hasRoot says whether pid was started or adopted by the group or seen in it.
func (g *Group) hasRoot(pid int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, adopted := g.adopted[pid]
	_, past := g.past[pid]
	if adopted || past || g.leaders[pid] != nil {
		return true
	}
	for _, sub := range g.subs {
		if sub.hasRoot(pid) {
			return true
		}
	}
	return false
}

// leftWithout answers Left where there is no cgroup.
func (g *Group) leftWithout() (bool, error) {
	if err := g.keeper.reapOrphans(); err != nil {
		return true, err
	}
	return len(g.members()) > 0, nil
}

// members finds the group's processes, dead ones that wait for us included.
func (g *Group) members() []stat {
	all := walk()
	in := g.roots(all)
	for grown := true; grown; {
		grown = false
		for _, p := range all {
			if !in[p.pid] && !g.foreign(p.pid) && (in[p.parent] || in[p.group] || in[p.session] || g.orphaned(p)) {
				in[p.pid], grown = true, true
			}
		}
	}
	var members []stat
	for _, p := range all {
		if in[p.pid] && (!p.dead() || p.parent == os.Getpid()) && !(p.dead() && g.keeper.leading.has(p.pid)) {
			members = append(members, p)
		}
	}
	g.remember(members)
	return members
}

// roots are the leaders and the adopted, as far as they are still themselves.
func (g *Group) roots(all []stat) map[int]bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	in := map[int]bool{}
	for pid := range g.leaders {
		in[pid] = true
	}
	for _, sub := range g.subs {
		for pid := range sub.roots(all) {
			in[pid] = true
		}
	}
	for _, p := range all {
		start, known := g.adopted[p.pid]
		if known && start == p.start {
			in[p.pid] = true
		}
		// A root that is gone lives on in the number of its process group.
		if _, known := g.adopted[p.group]; known || g.survives(p) {
			in[p.pid] = true
		}
	}
	return in
}

// survives says whether a process is in the process group of a leader that has ended.
// The number may have been given to somebody else's process group since, once nobody
// was left in the leader's: who began later has our mark, or was left to us.
func (g *Group) survives(p stat) bool {
	end, known := g.past[p.group]
	if !known || p.group == p.pid {
		return false
	}
	if p.start <= end {
		return true
	}
	mark := markOf(p.pid)
	return mark == g.mark || mark == "" && p.parent == os.Getpid()
}

// foreign says whether a process is the root of the outer group, which a
// sub-group must not touch.
func (g *Group) foreign(pid int) bool {
	return g.parent != nil && g.parent.owns(pid)
}

func (g *Group) owns(pid int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.leaders[pid] != nil
}

// orphaned says whether a process was left to us by the group. Which sub-group it
// came from cannot be known: the one that is asked takes it.
func (g *Group) orphaned(p stat) bool {
	return p.parent == os.Getpid() && markOf(p.pid) == g.mark && !g.keeper.leading.has(p.pid)
}

// remember keeps who was seen, so that it is known after its parent has gone.
func (g *Group) remember(members []stat) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.adopted = make(map[int]uint64, len(members))
	for _, p := range members {
		if g.leaders[p.pid] == nil {
			g.adopted[p.pid] = p.start
		}
	}
}

// hunt kills what the walk finds until it finds nothing; spared is a leader to
// leave alone, or nil. It says how many it has found.
func (g *Group) hunt(spared *Leader) (found int, err error) {
	deadline := time.Now().Add(killBound)
	signals := []unix.Signal{unix.SIGKILL}
	for round := 0; ; round++ {
		members := g.members()
		if spared != nil {
			members = slices.DeleteFunc(members, func(p stat) bool { return p.pid == spared.pid })
		}
		if len(members) == 0 {
			return found, nil
		}
		if round == 2 {
			// They fork faster than one round kills: from now on all are stopped
			// before the first is killed. Not at once, since a parent that is not of
			// the group would see the stop.
			signals = []unix.Signal{unix.SIGSTOP, unix.SIGKILL}
		}
		if time.Now().After(deadline) {
			return found, fmt.Errorf("kill group %s: %d processes are left after %s", g.name, len(members), killBound)
		}
		found += len(members)
		if err := g.strike(members, signals, deadline); err != nil {
			return found, err
		}
		if spared == nil {
			for _, l := range g.allLeaders() {
				<-l.done
			}
		}
	}
}

// strike sends the signals, the last of them SIGKILL, and waits for the ends.
func (g *Group) strike(members []stat, signals []unix.Signal, deadline time.Time) error {
	for _, sig := range signals {
		for _, p := range members {
			if err := signal(p, sig); err != nil {
				return err
			}
		}
	}
	for _, p := range members {
		if g.keeper.leading.has(p.pid) {
			continue
		}
		if _, err := settle(p, deadline); err != nil {
			return err
		}
	}
	return nil
}

// signal sends to exactly the process that was seen, not to a later one with its
// number.
func signal(p stat, sig unix.Signal) error {
	if p.dead() {
		return nil
	}
	fd, err := unix.PidfdOpen(p.pid, 0)
	if err != nil {
		return ignoreGone(err)
	}
	defer unix.Close(fd)
	if now, ok := readStat(p.pid); !ok || now.start != p.start {
		return nil
	}
	return ignoreGone(unix.PidfdSendSignal(fd, sig, nil, 0))
}

func ignoreGone(err error) error {
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}
