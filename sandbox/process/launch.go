//go:build linux && amd64

package process

import (
	"context"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/hearth-run/hearth/sandbox"
	"github.com/hearth-run/hearth/sandbox/internal/plan"
	"github.com/hearth-run/hearth/sandbox/internal/walls"
)

// namespaces are those that every container has of its own.
const namespaces = unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS

// launch is one attempt to start a container's program.
type launch struct {
	container *Container
	attempt   *attempt // only some of the walls, for Probe; nil builds all
	entered   bool     // by a process that a template forked
	site      walls.Site
	files     []*os.File // what the first process gets, by descriptor
	ours      []*os.File // those of files that this side closes after the clone
	folder    *os.File   // the control group to be cloned into, version 2 only
}

// run returns once the program was executed, or with the reason why not. The
// container's watch goroutine exists from the clone on, whatever comes after.
func (l *launch) run(ctx context.Context) error {
	statusEnd, failuresEnd, err := l.assemble()
	if err != nil {
		return err
	}
	c := l.container
	steps, err := l.writePlan()
	if err != nil {
		_ = statusEnd.Close()
		_ = failuresEnd.Close()
		return err
	}
	control := string([]byte{byte(len(l.files) - 1)})
	process, err := c.driver.starter.start(c.driver.state.initFile(), []string{"init", control}, l.files, l.attributes(), nil)
	l.closeChildSide()
	if err != nil {
		_ = statusEnd.Close()
		_ = failuresEnd.Close()
		return &sandbox.WallError{Wall: "namespaces", Cause: err}
	}
	return l.follow(ctx, child{process}, steps, statusEnd, failuresEnd)
}

// follow takes over a first process that exists, and waits until it stands behind its
// walls.
func (l *launch) follow(ctx context.Context, process first, steps plan.Plan, statusEnd, failuresEnd *os.File) error {
	l.container.process = process
	go l.container.watch(process, statusEnd)
	stop := context.AfterFunc(ctx, process.kill)
	defer stop()
	defer func() { _ = failuresEnd.Close() }()
	told, err := io.ReadAll(failuresEnd)
	if err != nil {
		return err
	}
	return l.judge(ctx, steps, told)
}

// assemble lists the descriptors of the first process:
//
//	0 1 2, Files, status pipe, failures pipe, network namespace, cgroup.procs…, plan
//
// and returns this side's ends of the pipes. One that is entered has no status pipe and
// no plan.
func (l *launch) assemble() (statusEnd, failuresEnd *os.File, err error) {
	c := l.container
	for _, f := range []*os.File{c.spec.Stdin, c.spec.Stdout, c.spec.Stderr} {
		if f == nil {
			f = c.driver.null
		}
		l.files = append(l.files, f)
	}
	l.files = append(l.files, c.spec.Files...)
	l.site.FirstControl = len(l.files)
	if !l.entered {
		if statusEnd, err = l.pipe(); err != nil {
			return nil, nil, err
		}
	}
	l.site.Failures = len(l.files)
	if failuresEnd, err = l.pipe(); err != nil {
		return nil, nil, err
	}
	l.joinNetwork()
	return statusEnd, failuresEnd, l.joinGroup()
}

// joinNetwork makes the first process a member of the network namespace that it is not
// in yet: the empty one, or this process's for one that comes from a template.
func (l *launch) joinNetwork() {
	d := l.container.driver
	l.site.Network = -1
	join := func(namespace *os.File) {
		l.site.Network = len(l.files)
		l.files = append(l.files, namespace)
	}
	switch {
	case l.sharesNetwork():
		join(d.network)
	case l.entered && l.container.spec.Network == sandbox.NetworkHost:
		join(d.hostNetwork)
	}
}

// joinGroup makes the first process a member of the control group: cloned into it on
// version 2, by its own first steps on version 1.
func (l *launch) joinGroup() error {
	group := l.container.group
	if group == nil {
		return nil
	}
	if !l.entered { // it is yet to be cloned
		folder, err := group.Folder()
		if folder != nil || err != nil {
			l.folder = folder
			return err
		}
	}
	joins, err := group.JoinFiles()
	for _, f := range joins {
		l.site.Cgroups = append(l.site.Cgroups, len(l.files))
		l.give(f)
	}
	return err
}

// sharesNetwork says that the container joins the driver's empty namespace. Without
// Landlock's scopes containers in one namespace could meet on abstract sockets, so
// that each gets its own then.
func (l *launch) sharesNetwork() bool {
	m := l.container.driver.machine
	return l.container.spec.Network == sandbox.NetworkNone && m.privileged && m.scopes
}

// give hands a descriptor to the first process and closes this side's after the clone.
func (l *launch) give(f *os.File) {
	l.files = append(l.files, f)
	l.ours = append(l.ours, f)
}

func (l *launch) pipe() (*os.File, error) {
	r, w, err := os.Pipe()
	if err == nil {
		l.give(w)
	}
	return r, err
}

func (l *launch) closeChildSide() {
	for _, f := range l.ours {
		_ = f.Close()
	}
	if l.folder != nil {
		_ = l.folder.Close()
	}
	l.ours, l.folder = nil, nil
}

// writePlan puts the plan into a file in memory, the last descriptor.
func (l *launch) writePlan() (plan.Plan, error) {
	steps, err := l.plan()
	if err != nil {
		return nil, err
	}
	blob, err := steps.Blob(l.site.Failures, l.site.FirstControl)
	if err != nil {
		return nil, err
	}
	f, err := memoryFile("plan", blob)
	if err != nil {
		return nil, err
	}
	l.give(f)
	return steps, nil
}

func (l *launch) plan() (plan.Plan, error) {
	d, spec := l.container.driver, l.container.spec
	l.site.MountPoint = d.mountPoint()
	l.site.User = spec.User
	l.site.Mapped = !d.machine.privileged
	l.site.NoProc = d.machine.noProc != nil
	l.site.Scopes = d.machine.scopes
	l.site.LastCap = d.machine.lastCap
	l.site.MaxNoFile = d.machine.maxNoFile
	if !d.machine.cgroups.Has().Pids {
		l.site.MaxProcesses = uint64(spec.Limits.Pids)
	}
	steps, err := walls.Build(spec, l.site)
	switch {
	case err != nil:
		return nil, err
	case l.attempt != nil:
		return l.attempt.reshape(steps), nil
	case d.reshape != nil:
		return d.reshape(steps), nil
	default:
		return steps, nil
	}
}

func (l *launch) attributes() *syscall.SysProcAttr {
	m, spec := l.container.driver.machine, l.container.spec
	sys := &syscall.SysProcAttr{
		Setsid:     true,
		Cloneflags: namespaces,
	}
	if spec.Network == sandbox.NetworkNone && !l.sharesNetwork() {
		sys.Cloneflags |= unix.CLONE_NEWNET
	}
	if l.attempt != nil && l.attempt.flags != 0 {
		sys.Cloneflags = l.attempt.flags
	}
	if l.folder != nil {
		sys.UseCgroupFD, sys.CgroupFD = true, int(l.folder.Fd())
	}
	if m.privileged {
		return sys
	}
	sys.Cloneflags |= unix.CLONE_NEWUSER
	sys.UidMappings = []syscall.SysProcIDMap{{ContainerID: int(spec.User.UID), HostID: os.Geteuid(), Size: 1}}
	sys.GidMappings = []syscall.SysProcIDMap{{ContainerID: int(spec.User.GID), HostID: os.Getegid(), Size: 1}}
	// Executing the init program as a user other than 0 would drop the capabilities
	// that the new namespace gave; the plan drops them when the walls stand.
	for c := 0; c <= m.lastCap; c++ {
		sys.AmbientCaps = append(sys.AmbientCaps, uintptr(c))
	}
	return sys
}
