package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// reapOrphans reaps children of this process that have ended and that a group of
// the keeper has left to us. Asking costs one system call when there is none.
func (k *Keeper) reapOrphans() error {
	for {
		pid, err := peek()
		if err != nil || pid == 0 {
			return err
		}
		if k.orphan(pid) {
			if err := reap(pid); err != nil {
				return err
			}
			continue
		}
		// Somebody else's child, which may hide ours behind it.
		for _, pid := range children() {
			if k.leading.has(pid) {
				continue
			}
			if p, ok := readStat(pid); ok && p.dead() && k.orphan(pid) {
				if err := reap(pid); err != nil {
					return err
				}
			}
		}
		return nil
	}
}

// orphan says whether a child of ours descends from a group and nobody waits for
// it.
func (k *Keeper) orphan(pid int) bool {
	if k.Cgroups() {
		path := cgroupOf(pid)
		return beneath(path, k.inside(k.root)) && !k.leading.has(pid) && !k.nursed(path)
	}
	return k.knows(pid) && !k.leading.has(pid)
}

// peek returns a child that has ended, without reaping it; 0 when there is none.
func peek() (int, error) {
	// siginfo_t of a child: the pid follows signo, errno, code and padding.
	var info struct {
		_   [4]int32
		pid int32
		_   [108]byte
	}
	for {
		err := unix.Waitid(unix.P_ALL, 0, (*unix.Siginfo)(unsafe.Pointer(&info)), unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.ECHILD):
			return 0, nil
		default:
			return int(info.pid), err
		}
	}
}

// children returns the children of this process but those that other threads than
// the first have started. Orphans are given to the first thread that lives, and Go
// never ends the one that a process began with.
func children() []int {
	data, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/children", os.Getpid()))
	if err != nil { // a kernel without these files
		return childrenByWalk()
	}
	var pids []int
	for _, field := range bytes.Fields(data) {
		if pid, err := strconv.Atoi(string(field)); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

func childrenByWalk() []int {
	var pids []int
	for _, p := range walk() {
		if p.parent == os.Getpid() {
			pids = append(pids, p.pid)
		}
	}
	return pids
}
