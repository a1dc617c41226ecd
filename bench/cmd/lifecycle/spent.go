package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of CPU time in /proc: USER_HZ is 100 on every Linux port that
// Go runs on.
const tick = 10 * time.Millisecond

// spending is CPU time by kind of process.
type spending map[string]time.Duration

// spent adds up what the fleet's processes have used so far, and the functions
// that descend from them.
func (f *fleet) spent() (spending, error) {
	kinds := map[int]string{}
	for _, p := range f.running {
		kinds[p.cmd.Process.Pid] = kind(p.name)
	}
	all, err := processes()
	if err != nil {
		return nil, err
	}
	total := spending{}
	for pid, p := range all {
		if kind, ours := kinds[pid]; ours {
			total[kind] += p.own
			if kind == "Runtime Servers" {
				total["functions"] += p.reaped
			}
			continue
		}
		for at := p.parent; at > 1; at = all[at].parent {
			if kinds[at] != "" {
				total["functions"] += exact(pid, p.own) + p.reaped
				break
			}
		}
	}
	return total, nil
}

// exact is what a process with one thread has used, which may be less than a tick.
func exact(pid int, ticks time.Duration) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid))
	if err != nil {
		return ticks
	}
	took, _, _ := strings.Cut(string(text), " ")
	nanoseconds, err := strconv.ParseInt(took, 10, 64)
	if err != nil {
		return ticks
	}
	return time.Duration(nanoseconds)
}

// kind is what a process of a name is.
func kind(name string) string {
	switch {
	case name == "controlplane":
		return "control plane"
	case strings.HasPrefix(name, "server-"):
		return "Runtime Servers"
	default:
		return "runtimeds"
	}
}

func (s spending) minus(before spending) spending {
	left := spending{}
	for kind, took := range s {
		left[kind] = took - before[kind]
	}
	return left
}

// per says what one of n Runs has cost.
func (s spending) per(n int) string {
	var parts []string
	var all time.Duration
	for _, kind := range slices.Sorted(maps.Keys(s)) {
		all += s[kind]
		parts = append(parts, fmt.Sprintf("%s %.2f ms", kind, ms(s[kind], n)))
	}
	return fmt.Sprintf("%.2f ms (%s)", ms(all, n), strings.Join(parts, ", "))
}

func ms(took time.Duration, n int) float64 { return took.Seconds() * 1000 / float64(n) }

// proc is what /proc says of one process.
type proc struct {
	parent      int
	own, reaped time.Duration // reaped is of its children that have ended
}

func processes() (map[int]proc, error) {
	paths, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	all := map[int]proc{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		_, rest, found := bytes.Cut(text[bytes.LastIndexByte(text, ')')+1:], []byte(" "))
		fields := strings.Fields(string(rest))
		if !found || len(fields) < 15 {
			return nil, errors.New("read " + path + ": " + fs.ErrInvalid.Error())
		}
		var n [5]int64
		for i, at := range []int{1, 11, 12, 13, 14} { // parent, own and children's time
			if n[i], err = strconv.ParseInt(fields[at], 10, 64); err != nil {
				return nil, fmt.Errorf("read %s: %w", path, err)
			}
		}
		pid, err := strconv.Atoi(strings.Split(path, "/")[2])
		if err != nil {
			return nil, err
		}
		all[pid] = proc{int(n[0]), time.Duration(n[1]+n[2]) * tick, time.Duration(n[3]+n[4]) * tick}
	}
	return all, nil
}
