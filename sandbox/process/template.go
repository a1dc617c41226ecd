//go:build linux && amd64

package process

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/hearth-run/hearth/sandbox"
	"github.com/hearth-run/hearth/sandbox/internal/cgroup"
)

// TemplateSpec says what a template process is: one that forks what enters containers.
// It runs with the driver's own rights, which its children need until they are behind
// their walls.
type TemplateSpec struct {
	// ID names its control group; as Spec.ID, and no container has the same.
	ID string
	// Path and Argv are the program, Env its whole environment.
	Path      string
	Argv, Env []string
	// Stderr becomes descriptors 1 and 2; nil is /dev/null.
	Stderr *os.File
	// Files become descriptors 3, 4, …. The one after them is the driver's empty
	// network namespace, for the program to join (setns). The caller closes its own.
	Files []*os.File
	// Memory bounds the process, in bytes; 0 is no bound.
	Memory int64
}

// Template is a template process of a Driver. It is a child of the driver's thread, and
// dies with that. What it forks in order to enter containers has to be a sibling of its
// own (CLONE_PARENT), so that containers do not end with it.
type Template struct {
	driver *Driver
	id     string
	pid    int
	pidfd  *os.File
	group  *cgroup.Group // nil without control groups
	ended  chan struct{}

	removing sync.Mutex // one removal of the group at a time
}

// StartTemplate starts a template process. Errors: sandbox.ErrExists, ErrClosed, a
// *WallError without root's rights, what the start says.
func (d *Driver) StartTemplate(spec TemplateSpec) (*Template, error) {
	t, err := d.admitTemplate(spec.ID, spec.Memory)
	if err != nil {
		return nil, fmt.Errorf("start template %s: %w", spec.ID, err)
	}
	stderr := spec.Stderr
	if stderr == nil {
		stderr = d.null
	}
	files := append([]*os.File{d.null, stderr, stderr}, spec.Files...)
	sys := &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	process, err := d.starter.start(spec.Path, spec.Argv, append(files, d.network), sys, spec.Env)
	if err == nil {
		t.pid = process.Pid
		err = process.Release() // it is reaped by its pidfd
	}
	return t.begin(err)
}

// AdoptTemplate takes over a process that a template of this driver has forked as its
// sibling and that is to be a template too. It leads no process group of another one.
// Errors: as StartTemplate; the process is killed then.
func (d *Driver) AdoptTemplate(pid int, id string, memory int64) (*Template, error) {
	t, err := d.admitTemplate(id, memory)
	if err != nil {
		_ = unix.Kill(pid, unix.SIGKILL) // our child: the number is its own until it is reaped
		_, _ = unix.Wait4(pid, nil, 0, nil)
		return nil, fmt.Errorf("adopt template %s: %w", id, err)
	}
	t.pid = pid
	return t.begin(nil)
}

// admitTemplate gives the template its name and its control group.
func (d *Driver) admitTemplate(id string, memory int64) (*Template, error) {
	if !d.machine.privileged {
		return nil, &sandbox.WallError{Wall: "user", Cause: errors.New("templates need root's rights; start cold instead")}
	}
	t := &Template{driver: d, id: id, ended: make(chan struct{})}
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return nil, sandbox.ErrClosed
	}
	if d.containers[id] != nil || d.templates[id] != nil {
		d.mu.Unlock()
		return nil, sandbox.ErrExists
	}
	d.templates[id] = t
	d.mu.Unlock()
	if d.machine.cgroups == nil {
		return t, nil
	}
	var err error
	if t.group, err = d.machine.cgroups.Make(id, cgroup.Limits{Memory: memory}); err != nil {
		d.forgetTemplate(t)
		return nil, &sandbox.WallError{Wall: "cgroup", Cause: err}
	}
	return t, nil
}

// begin watches the process, where it exists, and puts it into its group.
func (t *Template) begin(err error) (*Template, error) {
	if t.pid == 0 {
		close(t.ended)
		return nil, errors.Join(fmt.Errorf("start template %s: %w", t.id, err), t.remove())
	}
	fd, opened := unix.PidfdOpen(t.pid, unix.PIDFD_NONBLOCK)
	if opened != nil {
		// ESRCH: it ended with the process group of the template that it came from, and
		// its number may be another's.
		if opened != unix.ESRCH {
			_ = unix.Kill(t.pid, unix.SIGKILL)
			t.bury()
		} else {
			close(t.ended)
		}
		return nil, errors.Join(fmt.Errorf("open template %s: %w", t.id, opened), err, t.remove())
	}
	t.pidfd = os.NewFile(uintptr(fd), "pidfd")
	go t.watch()
	if err == nil && t.group != nil {
		err = t.group.Join(t.pid)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start template %s: %w", t.id, err), t.Kill())
	}
	return t, nil
}

func (t *Template) watch() {
	awaitPidfd(t.pidfd)
	t.bury()
	_ = t.pidfd.Close()
}

// bury ends and reaps the process, and what it leaves in its process group: children
// that nobody was told of yet. The kernel gives numbers out in a circle, so that this
// one is not another's before the loop is over.
func (t *Template) bury() {
	_ = unix.Kill(-t.pid, unix.SIGKILL)
	for _, which := range []int{-t.pid, t.pid} {
		var err error
		for err == nil || err == unix.EINTR {
			_, err = unix.Wait4(which, nil, 0, nil)
		}
	}
	close(t.ended)
}

// Pid is the process's number.
func (t *Template) Pid() int { return t.pid }

// Ended is closed once the process is gone, however it ended, and everything of its
// process group with it.
func (t *Template) Ended() <-chan struct{} { return t.ended }

// OOMKills is how many processes the kernel has killed for the template's memory limit.
func (t *Template) OOMKills() int64 {
	if t.group == nil {
		return 0
	}
	return t.group.OOMKills()
}

// Kill ends the process and removes its control group; containers that were entered
// from it are not its own, and live on. It may be repeated. Errors: ErrNotEmpty.
func (t *Template) Kill() error {
	if t.pidfd != nil {
		_ = withFile(t.pidfd, func(fd int) error { return unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) })
	}
	<-t.ended
	return t.remove()
}

func (t *Template) remove() error {
	t.removing.Lock()
	defer t.removing.Unlock()
	if t.group != nil {
		if err := empty(t.group, t.driver.config.Patience); err != nil {
			return fmt.Errorf("end template %s: %w", t.id, err)
		}
	}
	t.driver.forgetTemplate(t)
	return nil
}

func (d *Driver) forgetTemplate(t *Template) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.templates[t.id] == t {
		delete(d.templates, t.id)
	}
}
