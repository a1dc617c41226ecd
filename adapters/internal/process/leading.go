package process

import (
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// leading knows every process that the keeper or a group of it has started and
// waits for. The zero value is ready for use.
type leading struct {
	pids sync.Map // int to nothing
	// beginning is held for reading from before a process exists until its pid is
	// noted.
	beginning sync.RWMutex
}

// begin notes the process that start returns.
func (l *leading) begin(start func() (pid int, err error)) error {
	l.beginning.RLock()
	defer l.beginning.RUnlock()
	pid, err := start()
	if err == nil {
		l.pids.Store(pid, nil)
	}
	return err
}

// end forgets a process that was reaped.
func (l *leading) end(pid int) { l.pids.Delete(pid) }

// has says whether pid was started here and is waited for.
func (l *leading) has(pid int) bool {
	if _, known := l.pids.Load(pid); known {
		return true
	}
	// It may be so young that its pid is not noted yet: wait for those who begin.
	l.beginning.Lock()
	defer l.beginning.Unlock()
	_, known := l.pids.Load(pid)
	return known
}

// awaitEnd returns when a child that nobody else reaps has ended. A goroutine is
// parked, where waiting by wait4 would hold a thread for each process. It returns
// at once where the kernel cannot do that.
func awaitEnd(pid int) {
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if err != nil {
		return
	}
	f := os.NewFile(uintptr(fd), "pidfd")
	defer f.Close()
	raw, err := f.SyscallConn()
	if err != nil {
		return
	}
	// Where the descriptor cannot be parked on, this is over at once, and Wait waits.
	_ = raw.Read(func(fd uintptr) bool {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		return n > 0 || err != nil && err != unix.EINTR
	})
}
