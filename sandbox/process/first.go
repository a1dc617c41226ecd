//go:build linux && amd64

package process

import (
	"os"

	"golang.org/x/sys/unix"
)

// first is the first process of a container; when it dies, the kernel kills all the
// others of its pid namespace before anybody is told.
type first interface {
	kill()
	// wait returns when it, and with it the whole namespace, is gone.
	wait()
}

// child is a first process that this process cloned, and reaps.
type child struct{ *os.Process }

func (c child) kill() { _ = c.Signal(os.Kill) } // by pidfd: a reused number is not hit
func (c child) wait() { _, _ = c.Wait() }

// adopted is a first process that a template forked, and reaps.
type adopted struct{ pidfd *os.File }

func (a adopted) kill() {
	_ = a.use(func(fd int) error { return unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) })
}

func (a adopted) wait() {
	_ = a.use(func(fd int) error {
		for {
			_, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1)
			if err != unix.EINTR {
				return err
			}
		}
	})
	_ = a.pidfd.Close()
}

func (a adopted) use(do func(fd int) error) error {
	conn, err := a.pidfd.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	if err := conn.Control(func(fd uintptr) { inner = do(int(fd)) }); err != nil {
		return err
	}
	return inner
}
