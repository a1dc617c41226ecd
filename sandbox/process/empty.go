//go:build linux && amd64

package process

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hearth-run/hearth/sandbox"
	"github.com/hearth-run/hearth/sandbox/internal/cgroup"
)

// killAll kills until the group holds no process, within patience.
func killAll(g *cgroup.Group, patience time.Duration) error {
	deadline := time.Now().Add(patience)
	for {
		pids, err := g.Pids()
		if err != nil || len(pids) == 0 {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%d processes after %v: %w", len(pids), patience, sandbox.ErrNotEmpty)
		}
		if err := g.Kill(); err != nil {
			return err
		}
		for _, pid := range pids {
			awaitEnd(pid, deadline)
		}
	}
}

// awaitEnd waits for a process that is no child of this one.
func awaitEnd(pid int, deadline time.Time) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return // gone already
	}
	defer func() { _ = unix.Close(fd) }()
	for {
		left := max(time.Until(deadline).Milliseconds(), 0)
		_, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(left))
		if err != unix.EINTR {
			return
		}
	}
}

// empty removes the group, which is the proof that no process is left: the kernel
// removes none that holds one. What holds it up is killed.
func empty(g *cgroup.Group, patience time.Duration) error {
	deadline := time.Now().Add(patience)
	for {
		err := g.Remove()
		if !errors.Is(err, unix.EBUSY) {
			return err
		}
		if time.Now().After(deadline) {
			return errors.Join(err, sandbox.ErrNotEmpty)
		}
		if err := killAll(g, time.Until(deadline)); err != nil {
			return err
		}
		// The group lists no process and yet is busy: one of them is in the last
		// microseconds of its exit. The kernel has no event for this moment.
		time.Sleep(200 * time.Microsecond)
	}
}
