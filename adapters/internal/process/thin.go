package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// freezeBound is how long a frozen group may take to stand still: it is over in
// less than a millisecond unless a member hangs in the kernel.
const freezeBound = time.Second

// crowd is how many processes Thin takes on. Storms grow faster than they freeze;
// only cgroup.kill is always faster than fork.
const crowd = 64

// ErrCrowded says that only End can be relied on.
var ErrCrowded = errors.New("the process group is crowded")

// Home returns the cgroup folder in which the next leader starts, "" without
// cgroups. What descends from that leader and enters no sub-group is there too.
func (g *Group) Home() (string, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.dir == "" {
		return "", nil
	}
	err := g.makeHome()
	return string(g.home), err
}

// Thin ends every process that descends from a leader, but not the leader, and
// returns when none of them is left. With cgroups the processes stand still
// before the first is killed, so that none forks away, and what the leader starts
// after Thin began is not touched; without, the leader must start nothing
// meanwhile. For groups with one leader and no sub-groups.
// It says how many it has killed.
// Errors: ErrCrowded, or the group cannot be frozen; then End is what is left to
// do.
func (g *Group) Thin(leader *Leader) (killed int, err error) {
	if g.dir == "" {
		killed, err = g.hunt(leader)
		return killed, errors.Join(err, g.keeper.reapOrphans())
	}
	g.mu.Lock()
	home := g.home
	g.mu.Unlock()
	if home == "" {
		return 0, errors.New("thin process group: nothing was started in it")
	}
	if len(home.procs()) > crowd {
		return 0, ErrCrowded
	}
	if err := home.freeze(); err != nil {
		return 0, errors.Join(err, home.thaw())
	}
	var doomed []stat
	var errs []error
	for _, pid := range home.procs() {
		if p, ok := readStat(pid); ok && pid != leader.pid {
			doomed = append(doomed, p)
			errs = append(errs, signal(p, unix.SIGKILL))
		}
	}
	errs = append(errs, home.thaw())
	deadline := time.Now().Add(killBound)
	for _, p := range doomed {
		errs = append(errs, finish(p, deadline))
	}
	return len(doomed), errors.Join(append(errs, g.keeper.reapOrphans())...)
}

// finish waits until a killed process is out of the process table, as far as
// that is ours to do.
func finish(p stat, deadline time.Time) error {
	for {
		now, ok := readStat(p.pid)
		if !ok || now.start != p.start {
			return nil
		}
		if again, err := settle(now, deadline); err != nil || !again {
			return err
		}
	}
}

// freeze stops every process in the group and returns when all stand still.
func (c cgroup) freeze() error {
	events, err := os.Open(c.file("cgroup.events"))
	if err != nil {
		return err
	}
	defer events.Close()
	if err := os.WriteFile(c.file("cgroup.freeze"), []byte("1"), 0); err != nil {
		return fmt.Errorf("freeze cgroup: %w", err)
	}
	deadline := time.Now().Add(freezeBound)
	buf := make([]byte, 256)
	for {
		n, err := unix.Pread(int(events.Fd()), buf, 0)
		if err != nil {
			return fmt.Errorf("read cgroup.events: %w", err)
		}
		if bytes.Contains(buf[:n], []byte("frozen 1")) {
			return nil
		}
		if err := await(int(events.Fd()), unix.POLLPRI, deadline); err != nil {
			return fmt.Errorf("freeze %s: %w", c, err)
		}
	}
}

func (c cgroup) thaw() error {
	if err := os.WriteFile(c.file("cgroup.freeze"), []byte("0"), 0); err != nil {
		return fmt.Errorf("thaw cgroup: %w", err)
	}
	return nil
}
