//go:build linux && amd64

package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// MemoryWatch tells when memory in use passes 90 % of the limit: version 1 by an
// eventfd on a threshold, version 2 by inotify on memory.events, whose "high" counter
// moves when memory.high is passed. Above memory.high the kernel also slows the group
// down, more than an OOM kill would hurt: it is lifted as soon as it was told, and set
// again by Rearm.
type MemoryWatch struct {
	group *Group
	mu    sync.Mutex // guards threshold against Rearm and Next at one time
	event *os.File   // eventfd, or inotify
	usage *os.File   // version 1: memory.usage_in_bytes, open for as long as it is watched

	threshold int64
	high      int64 // version 2: the counter when last told
}

// WatchMemory makes a watch, which tells nothing before Rearm.
func (g *Group) WatchMemory() (*MemoryWatch, error) {
	w := &MemoryWatch{group: g}
	if g.v2 {
		return w, w.openV2()
	}
	return w, w.openV1()
}

func (w *MemoryWatch) openV1() error {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return err
	}
	w.event = os.NewFile(uintptr(fd), "memory threshold")
	w.usage, err = os.Open(filepath.Join(w.group.dirs["memory"], "memory.usage_in_bytes"))
	if err != nil {
		w.Close()
	}
	return err
}

func (w *MemoryWatch) openV2() error {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return err
	}
	w.event = os.NewFile(uintptr(fd), "memory events")
	_, err = unix.InotifyAddWatch(fd, filepath.Join(w.group.dirs["unified"], "memory.events"), unix.IN_MODIFY)
	if err != nil {
		w.Close()
	}
	return err
}

// Rearm watches for 90 % of a new limit. Earlier thresholds stay registered in the
// kernel (only closing the eventfd ends them), and Next sorts them out. On version 1
// this waits for an RCU grace period, about 10 ms.
func (w *MemoryWatch) Rearm(limit int64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.threshold = limit / 10 * 9
	if w.group.v2 {
		return w.group.write("unified", "memory.high", strconv.FormatInt(w.threshold, 10))
	}
	return use(w.event, func(event uintptr) error {
		return use(w.usage, func(usage uintptr) error {
			line := fmt.Sprintf("%d %d %d", event, usage, w.threshold)
			return w.group.write("memory", "cgroup.event_control", line)
		})
	})
}

// use calls do with the descriptor behind f, which cannot be closed meanwhile and
// whose mode stays as it is (Fd would make it blocking, and Close would not wake a
// read then).
func use(f *os.File, do func(fd uintptr) error) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	err = conn.Control(func(fd uintptr) { inner = do(fd) })
	return errors.Join(err, inner)
}

// Next blocks until the threshold was passed upwards. It returns false after Close.
func (w *MemoryWatch) Next() bool {
	buffer := make([]byte, 4096)
	for {
		if _, err := w.event.Read(buffer); err != nil {
			return false
		}
		if w.Passed() {
			return true
		}
	}
}

// Passed says whether memory is above the threshold now (version 1), or has been
// since the last time this was asked (version 2).
func (w *MemoryWatch) Passed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.group.v2 {
		return w.group.number("memory", "memory.usage_in_bytes") >= w.threshold
	}
	high := w.group.field("unified", "memory.events", "high")
	if high <= w.high {
		return false
	}
	w.high = high
	_ = w.group.write("unified", "memory.high", "max")
	return true
}

// Close ends the watch and makes Next return.
func (w *MemoryWatch) Close() {
	_ = w.event.Close()
	if w.usage != nil {
		_ = w.usage.Close()
	}
}
