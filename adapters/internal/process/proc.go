package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// stat is what /proc/PID/stat says of a process.
type stat struct {
	pid, parent, group, session int
	state                       byte
	start                       uint64 // clock ticks since boot; with the pid, an identity
}

func (s stat) dead() bool { return s.state == 'Z' || s.state == 'X' }

// readStat reads the line of a process; false when it is gone.
func readStat(pid int) (stat, bool) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return stat{}, false
	}
	return parseStat(data)
}

// parseStat parses the line; the name in parentheses may hold anything.
func parseStat(data []byte) (stat, bool) {
	open, end := bytes.IndexByte(data, '('), bytes.LastIndexByte(data, ')')
	if open < 1 || end < open {
		return stat{}, false
	}
	f := strings.Fields(string(data[end+1:]))
	if len(f) < 20 || len(f[0]) != 1 {
		return stat{}, false
	}
	s := stat{state: f[0][0]}
	var errs [5]error
	s.pid, errs[0] = strconv.Atoi(strings.TrimSpace(string(data[:open])))
	s.parent, errs[1] = strconv.Atoi(f[1])
	s.group, errs[2] = strconv.Atoi(f[2])
	s.session, errs[3] = strconv.Atoi(f[3])
	s.start, errs[4] = strconv.ParseUint(f[19], 10, 64)
	return s, errors.Join(errs[:]...) == nil
}

// ticks is now, as the start of a process is written: the kernel shows a hundred a
// second on every architecture.
func ticks() uint64 {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &now)
	return uint64(now.Nano()) / uint64(10*time.Millisecond)
}

// walk returns every process that can be seen.
func walk() []stat {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	var all []stat
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			if s, ok := readStat(pid); ok {
				all = append(all, s)
			}
		}
	}
	return all
}

// cgroupOf returns the v2 cgroup of a process as /proc shows it, "" when it is
// gone. It holds for zombies too.
func cgroupOf(pid int) string {
	table, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cgroup")
	if err != nil {
		return ""
	}
	return v2Path(table)
}

// beneath says whether path is root or inside it.
func beneath(path, root string) bool {
	rest, ok := strings.CutPrefix(path, root)
	return ok && root != "" && (rest == "" || rest[0] == '/')
}

// inside returns a group's path as /proc/PID/cgroup writes it.
func (k *Keeper) inside(dir cgroup) string {
	return k.written + strings.TrimPrefix(string(dir), string(k.root))
}

// settle waits for a killed process to end and reaps it if it is our child. It
// says whether to look again: its children may have become ours.
func settle(p stat, deadline time.Time) (again bool, err error) {
	if p.dead() {
		if p.parent != os.Getpid() {
			return false, nil
		}
		return true, reap(p.pid)
	}
	fd, err := unix.PidfdOpen(p.pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("open process %d: %w", p.pid, err)
	}
	defer unix.Close(fd)
	if now, ok := readStat(p.pid); !ok || now.start != p.start {
		return true, nil
	}
	if err := await(fd, unix.POLLIN, deadline); err != nil {
		return false, fmt.Errorf("process %d outlives SIGKILL: %w", p.pid, err)
	}
	return true, nil
}

// reap takes a zombie child of ours out of the process table.
func reap(pid int) error {
	for {
		_, err := unix.Wait4(pid, nil, unix.WNOHANG, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err == nil, errors.Is(err, unix.ECHILD):
			return nil
		default:
			return fmt.Errorf("reap %d: %w", pid, err)
		}
	}
}
