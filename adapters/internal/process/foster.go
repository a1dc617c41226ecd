package process

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// ErrNoCgroup says that only a cgroup could tell whose a process is.
var ErrNoCgroup = errors.New("there are no cgroups here")

// Nurse says that processes of the group make children of this process, which
// others then Foster: until then they are reaped by nobody, so that their pids
// stay theirs. Those that nobody fosters end with the group.
// Errors: ErrNoCgroup.
func (g *Group) Nurse() error {
	if g.dir == "" {
		return fmt.Errorf("nurse process group: %w", ErrNoCgroup)
	}
	g.keeper.nursing.Store(g.keeper.inside(g.dir), nil)
	return nil
}

// nursed says whether a cgroup, as /proc writes it, is that of a nursery or inside
// one.
func (k *Keeper) nursed(path string) bool {
	found := false
	k.nursing.Range(func(nursery, _ any) bool {
		found = beneath(path, nursery.(string))
		return !found
	})
	return found
}

// Foster makes a child of this process, which a member of a nursery has made, a
// leader of this group. What the process has started before stays where it was:
// it must not have started anything. Where it fails, the process is gone.
// Errors: ErrClosed, ErrNoCgroup, and those of the move.
func (g *Group) Foster(pid int) (*Leader, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil, fmt.Errorf("foster process %d: %w", pid, err)
	}
	defer unix.Close(fd)
	l, err := g.take(pid)
	if err == nil {
		return l, nil
	}
	err = errors.Join(err, ignoreGone(unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)))
	<-l.done
	return nil, fmt.Errorf("foster process %d: %w", pid, err)
}

// take makes a process a leader, and says whether it is in the group then.
func (g *Group) take(pid int) (*Leader, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	_ = g.keeper.leading.begin(func() (int, error) { return pid, nil })
	return g.lead(pid, func() *os.ProcessState { return reapChild(pid) }), g.admit(pid)
}

// admit moves a process into the group. The lock is held.
func (g *Group) admit(pid int) error {
	switch {
	case g.closed:
		return ErrClosed
	case g.dir == "":
		return ErrNoCgroup
	}
	return os.WriteFile(g.dir.file("cgroup.procs"), fmt.Appendf(nil, "%d", pid), 0)
}

// reapChild waits for a child that nobody else reaps; nil where it was none.
func reapChild(pid int) *os.ProcessState {
	p, err := os.FindProcess(pid)
	if err != nil {
		return nil
	}
	state, err := p.Wait()
	if err != nil {
		return nil
	}
	return state
}
