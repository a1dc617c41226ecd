package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// held is what a house and its descendants hold at one moment.
type held struct {
	memory      int64 // resident bytes of the house's own process
	family      int64 // resident bytes of all its processes together
	descriptors int   // of the house's own process
	threads     int   // of the house's own process
	processes   int   // the house's own and all that descend from it
	mounts      int   // that the house's own process sees
	files       int   // below the house's folder
}

var header = fmt.Sprintf("%8s %8s %9s %12s %12s %8s %10s %7s %7s", "calls", "seconds", "RSS MiB", "all RSS MiB", "descriptors", "threads", "processes", "mounts", "files")

func (h held) row(calls int, after time.Duration) string {
	const mebi = 1 << 20
	return fmt.Sprintf("%8d %8.1f %9.1f %12.1f %12d %8d %10d %7d %7d", calls, after.Seconds(),
		float64(h.memory)/mebi, float64(h.family)/mebi, h.descriptors, h.threads, h.processes, h.mounts, h.files)
}

// look reads what the process pid and its descendants hold.
func look(pid int, dir string) (held, error) {
	own := filepath.Join("/proc", strconv.Itoa(pid))
	var h held
	descriptors, err := os.ReadDir(filepath.Join(own, "fd"))
	if err != nil {
		return h, err
	}
	threads, err := os.ReadDir(filepath.Join(own, "task"))
	if err != nil {
		return h, err
	}
	mounts, err := os.ReadFile(filepath.Join(own, "mountinfo"))
	if err != nil {
		return h, err
	}
	h.descriptors, h.threads, h.mounts = len(descriptors), len(threads), bytes.Count(mounts, []byte("\n"))
	if h.memory, err = resident(pid); err != nil {
		return h, err
	}
	members, err := family(pid)
	if err != nil {
		return h, err
	}
	h.processes = len(members)
	for _, member := range members {
		n, _ := resident(member) // one that has just ended holds nothing
		h.family += n
	}
	h.files, err = files(dir)
	return h, err
}

// resident returns the bytes of memory that a process has.
func resident(pid int) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, err
	}
	var size, pages int64
	if _, err := fmt.Sscan(string(text), &size, &pages); err != nil {
		return 0, fmt.Errorf("read memory of process %d: %w", pid, err)
	}
	return pages * int64(os.Getpagesize()), nil
}

// family returns a process and all that descend from it, zombies too.
func family(pid int) ([]int, error) {
	entries, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	children := map[int][]int{}
	for _, entry := range entries {
		text, _ := os.ReadFile(entry) // one that has just ended is not there
		_, rest, ok := strings.Cut(string(text), ") ")
		fields := strings.Fields(rest)
		if !ok || len(fields) < 2 {
			continue
		}
		child, _ := strconv.Atoi(filepath.Base(filepath.Dir(entry)))
		parent, _ := strconv.Atoi(fields[1])
		children[parent] = append(children[parent], child)
	}
	members := []int{pid}
	for i := 0; i < len(members); i++ {
		members = append(members, children[members[i]]...)
	}
	return members, nil
}

// files counts what lies below a folder; what vanishes meanwhile does not count.
func files(dir string) (int, error) {
	n := 0
	err := filepath.WalkDir(dir, func(_ string, _ fs.DirEntry, err error) error {
		if err == nil {
			n++
		}
		return nil
	})
	return n, err
}
