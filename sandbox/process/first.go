//go:build linux && amd64

package process

import (
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// first is the first process of a container; when it dies, the kernel kills all the
// others of its pid namespace before anybody is told.
type first interface {
	kill()
	// wait returns when it, and with it the whole namespace, is gone: with its own wait
	// status where that is the program's and can be had.
	wait() (syscall.WaitStatus, bool)
}

// child is a first process that this process cloned, and reaps. The program is another.
type child struct{ *os.Process }

func (c child) kill() { _ = c.Signal(os.Kill) } // by pidfd: a reused number is not hit

func (c child) wait() (syscall.WaitStatus, bool) {
	_, _ = c.Wait()
	return 0, false
}

// adopted is a first process that a template forked. It is reaped here where it is this
// process's child, by the template otherwise.
type adopted struct{ pidfd *os.File }

func (a adopted) kill() {
	_ = withFile(a.pidfd, func(fd int) error { return unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) })
}

func (a adopted) wait() (status syscall.WaitStatus, known bool) {
	awaitPidfd(a.pidfd)
	_ = withFile(a.pidfd, func(fd int) error {
		status, known = reap(fd)
		return nil
	})
	_ = a.pidfd.Close()
	return status, known
}

// awaitPidfd waits for the end of a process: without a thread where the descriptor is
// one that does not block, with one otherwise.
func awaitPidfd(pidfd *os.File) {
	conn, err := pidfd.SyscallConn()
	if err != nil {
		return
	}
	if conn.Read(func(fd uintptr) bool { return pollPidfd(int(fd), 0) }) != nil {
		_ = conn.Control(func(fd uintptr) { pollPidfd(int(fd), -1) })
	}
}

func pollPidfd(fd, milliseconds int) bool {
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, milliseconds)
		if err != unix.EINTR {
			return n > 0 || err != nil
		}
	}
}

// reap takes the wait status of an ended process, if it is a child of ours and was not
// reaped by anybody.
func reap(pidfd int) (syscall.WaitStatus, bool) {
	var info struct { // siginfo_t of SIGCHLD
		signo, errno, code, _ int32
		pid                   int32
		uid                   uint32
		status                int32
		_                     [100]byte
	}
	_, _, errno := unix.Syscall6(unix.SYS_WAITID, unix.P_PIDFD, uintptr(pidfd), uintptr(unsafe.Pointer(&info)), unix.WEXITED|unix.WNOHANG, 0, 0)
	if errno != 0 || info.pid == 0 {
		return 0, false
	}
	const exited, dumped = 1, 3 // CLD_EXITED, CLD_DUMPED
	switch info.code {
	case exited:
		return syscall.WaitStatus(info.status << 8), true
	case dumped:
		return syscall.WaitStatus(info.status | 0x80), true
	default:
		return syscall.WaitStatus(info.status), true
	}
}

// withFile lends a file's descriptor, which stays open meanwhile.
func withFile(f *os.File, do func(fd int) error) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	if err := conn.Control(func(fd uintptr) { inner = do(int(fd)) }); err != nil {
		return err
	}
	return inner
}
