package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
)

// Group is a set of processes with everything that descends from them. Safe for
// concurrent use.
type Group struct {
	keeper *Keeper
	parent *Group
	name   string
	dir    cgroup // "" without cgroups
	mark   string // of the outermost group: what HEARTH_GROUP says

	mu      sync.Mutex // guards the fields below
	used    bool       // somebody may ever have been inside, be it in a sub-group
	leaders map[int]*Leader
	home    cgroup         // where leaders start, "" before the first; see launch
	starts  int            // counts the folders that home has named
	adopted map[int]uint64 // pid to start time, without cgroups
	past    map[int]uint64 // leaders that have ended and when, without cgroups
	subs    []*Group
	closed  bool
}

// Leader is a process that a group started. A goroutine waits for it, so it never
// stays behind as a zombie.
type Leader struct {
	pid   int
	done  chan struct{}
	state *os.ProcessState // set before done is closed
}

// Pid returns the process's ID.
func (l *Leader) Pid() int { return l.pid }

// Done is closed when the process has ended and was reaped.
func (l *Leader) Done() <-chan struct{} { return l.done }

// State says how the process ended; nil before Done.
func (l *Leader) State() *os.ProcessState {
	select {
	case <-l.done:
		return l.state
	default:
		return nil
	}
}

// ErrClosed says that a group takes no more processes.
var ErrClosed = errors.New("the process group is closed")

// Start starts cmd in the group and in a process group (or, where
// SysProcAttr.Setsid asks for it, a session) of its own. Its streams must be
// files or nil: a copying goroutine would be held up by any descendant.
// Errors: ErrClosed, and those of exec.
func (g *Group) Start(cmd *exec.Cmd) (*Leader, error) {
	for _, stream := range []any{cmd.Stdin, cmd.Stdout, cmd.Stderr} {
		if _, file := stream.(*os.File); stream != nil && !file {
			return nil, fmt.Errorf("start %s: its streams must be files, not %T", cmd.Path, stream)
		}
	}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = !cmd.SysProcAttr.Setsid
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, ErrClosed)
	}
	if err := g.keeper.leading.begin(func() (int, error) { return g.launch(cmd) }); err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	return g.lead(cmd.Process.Pid, func() *os.ProcessState {
		_ = cmd.Wait() // how it ended is in the state
		return cmd.ProcessState
	}), nil
}

// lead makes a process a leader; reap waits for it. The lock is held.
func (g *Group) lead(pid int, reap func() *os.ProcessState) *Leader {
	g.used = true
	l := &Leader{pid: pid, done: make(chan struct{})}
	if g.leaders == nil {
		g.leaders = map[int]*Leader{}
	}
	g.leaders[pid] = l
	go g.wait(l, reap)
	return l
}

// launch starts cmd; the lock is held, so that Kill sees it or it sees Kill.
//
// Leaders start in a folder that was never killed: kernels (6.18 is one) compare
// the count of kills of the new process's cgroup with that of its parent's, take
// them for different when the former was killed before, and kill the newcomer.
func (g *Group) launch(cmd *exec.Cmd) (pid int, err error) {
	if g.dir == "" {
		cmd.Env = append(cmd.Environ(), markName+"="+g.mark)
		return run(cmd)
	}
	if err := g.makeHome(); err != nil {
		return 0, err
	}
	dir, err := os.Open(string(g.home))
	if err != nil {
		return 0, err
	}
	defer dir.Close()
	cmd.SysProcAttr.UseCgroupFD = true
	cmd.SysProcAttr.CgroupFD = int(dir.Fd())
	return run(cmd)
}

func run(cmd *exec.Cmd) (pid int, err error) {
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	return cmd.Process.Pid, nil
}

// makeHome makes the folder in which leaders start. The lock is held.
func (g *Group) makeHome() error {
	if g.home != "" {
		return nil
	}
	lead := g.dir.child(fmt.Sprintf("lead-%d", g.starts))
	if err := lead.make(); err != nil {
		return err
	}
	g.home = lead
	g.starts++
	return nil
}

func (g *Group) wait(l *Leader, reap func() *os.ProcessState) {
	awaitEnd(l.pid)
	end := ticks() // before its number can be given away
	l.state = reap()
	g.keeper.leading.end(l.pid)
	g.mu.Lock()
	delete(g.leaders, l.pid)
	if g.dir == "" {
		if g.past == nil {
			g.past = map[int]uint64{}
		}
		g.past[l.pid] = end
	}
	g.mu.Unlock()
	close(l.done)
}

// Sub makes an empty group inside this one. It ends with this one, and can be
// ended alone.
func (g *Group) Sub(name string) (*Group, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, fmt.Errorf("make sub-group %s: %w", name, ErrClosed)
	}
	sub := &Group{keeper: g.keeper, parent: g, name: name, mark: g.mark}
	if g.dir != "" {
		sub.dir = g.dir.child(name)
		if err := sub.dir.make(); err != nil {
			return nil, err
		}
	}
	g.used = true
	g.subs = append(g.subs, sub)
	return sub, nil
}

// Path returns the group's cgroup folder, "" without cgroups. A process in the
// outer group enters a sub-group by writing 0 to Path()/cgroup.procs.
func (g *Group) Path() string { return string(g.dir) }

// Door opens the group's cgroup.procs for writing, to be inherited by a process
// that shall be able to enter: it writes "0". Nil without cgroups.
func (g *Group) Door() (*os.File, error) {
	if g.dir == "" {
		return nil, nil
	}
	return os.OpenFile(g.dir.file("cgroup.procs"), os.O_WRONLY, 0)
}

// Adopt puts a process that descends from the outer group into this one. With
// cgroups that is for processes that did not enter by themselves; without them
// it is the only way in. What the process started before stays where it was.
func (g *Group) Adopt(pid int) error {
	if g.dir != "" {
		return os.WriteFile(g.dir.file("cgroup.procs"), fmt.Appendf(nil, "%d", pid), 0)
	}
	p, ok := readStat(pid)
	if !ok {
		return fmt.Errorf("adopt process %d: it is gone", pid)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.used = true
	if g.adopted == nil {
		g.adopted = map[int]uint64{}
	}
	g.adopted[pid] = p.start
	return nil
}
