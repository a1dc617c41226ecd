//go:build linux && amd64

package process

import (
	"os"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// starter owns the one thread that clones containers. Their first processes die with
// that thread (PDEATHSIG follows the thread, not the process), so it is locked, ends
// only with the driver, and is never lent to the scheduler.
type starter struct {
	jobs chan func()
	done chan struct{}
	once sync.Once
}

func newStarter() *starter {
	s := &starter{jobs: make(chan func()), done: make(chan struct{})}
	go s.run()
	return s
}

func (s *starter) run() {
	runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
	defer close(s.done)
	for job := range s.jobs {
		job()
	}
}

// do runs job on the thread and waits for it. It must not be called after close.
func (s *starter) do(job func()) {
	finished := make(chan struct{})
	s.jobs <- func() { defer close(finished); job() }
	<-finished
}

func (s *starter) close() {
	s.once.Do(func() { close(s.jobs) })
	<-s.done
}

// start clones and executes; files become descriptors 0, 1, …, env is the whole
// environment.
func (s *starter) start(path string, argv []string, files []*os.File, sys *syscall.SysProcAttr, env []string) (p *os.Process, err error) {
	s.do(func() {
		p, err = os.StartProcess(path, argv, &os.ProcAttr{Env: append([]string{}, env...), Files: files, Sys: sys})
	})
	return p, err
}

// emptyNetwork makes a network namespace without any device that is up, and a
// descriptor that keeps it. The thread that made it is in it for good, so it ends.
func emptyNetwork() (*os.File, error) {
	type result struct {
		file *os.File
		err  error
	}
	made := make(chan result, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: nobody else may run on this thread
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			made <- result{nil, err}
			return
		}
		f, err := os.Open("/proc/thread-self/ns/net")
		made <- result{f, err}
	}()
	r := <-made
	return r.file, r.err
}
