package python

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hearth-run/hearth/adapters/internal/process"
	"github.com/hearth-run/hearth/pyrunner/message"
	"github.com/hearth-run/hearth/pyrunner/template"
)

const (
	// maxMessage bounds what an instance may say at once: an answer of 1 MiB, its
	// outputs and their lengths.
	maxMessage = 2 << 20
	// forkBound is how long a fork or the burial of a child may take.
	forkBound = 10 * time.Second
	// exitBound is how long a process that hung up may take to exit by itself
	// before it is taken for one that lives on without its socket.
	exitBound = 200 * time.Millisecond
)

// generation is one load of the module.
type generation struct {
	group  *process.Group // the template and all that descends from it
	calls  *process.Group // the child and all that descends from it; nil before the first
	leader *process.Leader
	tmpl   *template.Template
	loaded template.Loaded
}

// launch starts a template process and loads the module in it. Whatever fails,
// nothing of it is left.
// Errors: *template.RefusedError, *exitError, ctx's cause.
func (i *Instance) launch(ctx context.Context) (*generation, error) {
	group, err := i.function.Processes.Sub(fmt.Sprintf("load-%d", i.loads))
	if err != nil {
		return nil, err
	}
	i.loads++
	g := &generation{group: group}
	if err := i.begin(ctx, g); err != nil {
		return nil, errors.Join(g.explain(ctx, err), g.close())
	}
	return g, nil
}

func (i *Instance) begin(ctx context.Context, g *generation) error {
	err := i.grow(g)
	if errors.Is(err, errNoBase) {
		err = i.start(g)
	}
	if err != nil {
		return err
	}
	g.loaded, err = g.tmpl.Load(ctx, "function", i.function.RunUID, i.function.Dir, i.module, i.name)
	return err
}

// grow takes a template from the base.
// Errors: errNoBase.
func (i *Instance) grow(g *generation) error {
	if i.lang.base == nil || ownStart(i.function.Env) {
		return errNoBase
	}
	ours, theirs, err := template.Pair(maxMessage)
	if err != nil {
		return err
	}
	defer theirs.Close()
	g.leader, err = i.lang.base.grow(g.group, theirs, template.Surroundings{
		Sibling: true, Dir: i.function.Dir, Env: i.function.Env, Stdout: i.stdout.write, Stderr: i.stderr.write,
	})
	if err != nil {
		return errors.Join(err, ours.Close())
	}
	g.tmpl = template.New(ours)
	return nil
}

// start starts an interpreter of the function's own.
func (i *Instance) start(g *generation) error {
	ours, theirs, err := template.Pair(maxMessage)
	if err != nil {
		return err
	}
	g.tmpl = template.New(ours)
	cmd := i.lang.pkg.Command(i.lang.interpreter.Path, "template")
	cmd.Env = append(cmd.Env, i.function.Env...)
	cmd.Dir = i.function.Dir
	cmd.Stdout, cmd.Stderr = i.stdout.write, i.stderr.write
	cmd.ExtraFiles = append(cmd.ExtraFiles, theirs)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	g.leader, err = start(g.group, cmd)
	return err
}

// start starts cmd and lets go of what was opened for it.
func start(group *process.Group, cmd *exec.Cmd) (*process.Leader, error) {
	leader, err := group.Start(cmd)
	for _, f := range cmd.ExtraFiles {
		err = errors.Join(err, f.Close())
	}
	return leader, err
}

// explain says how the process ended, where the failure is that it did.
func (g *generation) explain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if g.leader == nil || !hungUp(err) {
		return err
	}
	select {
	case <-g.leader.Done():
		return &exitError{status: g.leader.State().Sys().(syscall.WaitStatus), own: true}
	case <-time.After(exitBound):
		return &exitError{}
	}
}

// close ends every process of the generation.
func (g *generation) close() error {
	err := g.group.Close()
	if g.tmpl != nil {
		err = errors.Join(err, g.tmpl.Close())
	}
	return err
}

// child is a process that answers calls.
type child struct {
	pid   int
	pidfd int // tells its end, whoever reaps it
	conn  *template.Conn
}

// abandon closes a child that did not become one.
func (c *child) abandon() error {
	if c.pidfd < 0 {
		return c.conn.Close()
	}
	return c.close()
}

func (c *child) close() error { return errors.Join(unix.Close(c.pidfd), c.conn.Close()) }

// beget makes the child of a generation that answers calls next.
func (g *generation) beget(ctx context.Context) (*child, error) {
	ctx, cancel := context.WithTimeout(ctx, forkBound)
	defer cancel()
	ours, theirs, err := template.Pair(maxMessage)
	if err != nil {
		return nil, err
	}
	c := &child{conn: ours, pidfd: -1}
	if g.loaded.CanFork() {
		c.pid, err = g.fork(ctx, theirs)
	} else {
		c.pid, err = g.leader.Pid(), g.tmpl.Serve(theirs)
	}
	if err == nil {
		c.pidfd, err = unix.PidfdOpen(c.pid, 0)
	}
	if err == nil {
		err = c.ready(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, c.abandon())
	}
	return c, nil
}

// fork makes a child in the group of calls.
func (g *generation) fork(ctx context.Context, theirs *os.File) (pid int, err error) {
	if g.calls == nil {
		if g.calls, err = g.group.Sub("calls"); err != nil {
			return 0, errors.Join(err, theirs.Close())
		}
	}
	if pid, err = g.tmpl.Fork(ctx, theirs); err == nil {
		err = g.calls.Adopt(pid)
	}
	return pid, err
}

// ready waits until the child can answer.
func (c *child) ready(ctx context.Context) error {
	stop := c.conn.Bound(ctx)
	m, err := c.conn.Receive()
	if !stop() {
		return context.Cause(ctx)
	}
	if err == nil && m.Kind != message.Ready {
		err = fmt.Errorf("%w: kind %d", template.ErrOrder, m.Kind)
	}
	return err
}

// bury ends a child with all that descends from it and says how it had ended.
// own is whether it ended by itself, within the time that hungUp processes get.
func (g *generation) bury(c *child, wait bool) (*exitError, error) {
	how := &exitError{own: wait && g.gone(c, exitBound)}
	err := errors.Join(g.end(c, how), c.close())
	return how, err
}

func (g *generation) end(c *child, how *exitError) error {
	if !g.loaded.CanFork() {
		if err := g.group.Kill(); err != nil {
			return err
		}
		<-g.leader.Done()
		how.status = g.leader.State().Sys().(syscall.WaitStatus)
		return nil
	}
	if err := g.strike(c); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), forkBound)
	defer cancel()
	var err error
	if how.status, err = g.tmpl.Reap(ctx, c.pid); err != nil {
		return err
	}
	// The template has ended what fell to it. Should anything have escaped that:
	return g.calls.Kill()
}

// strike kills the child and all that descends from it. The usual child has no
// descendants, and a signal is enough.
func (g *generation) strike(c *child) error {
	if path := g.calls.Path(); path != "" {
		members, err := os.ReadFile(filepath.Join(path, "cgroup.procs"))
		if err == nil && string(members) == fmt.Sprintln(c.pid) {
			if err := unix.PidfdSendSignal(c.pidfd, unix.SIGKILL, nil, 0); !errors.Is(err, unix.ESRCH) {
				return err
			}
			return nil
		}
	}
	return g.calls.Kill()
}

// gone waits for a child to end by itself, for a time.
func (g *generation) gone(c *child, bound time.Duration) bool {
	fds := []unix.PollFd{{Fd: int32(c.pidfd), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(fds, int(bound.Milliseconds()))
		if !errors.Is(err, unix.EINTR) {
			return err == nil && n > 0
		}
	}
}

// hungUp says that a failure is the end of a socket's other side.
func hungUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, net.ErrClosed)
}
