//go:build linux && amd64

// Package cgroup owns the kernel's control groups: where containers' groups are made
// on this machine (version 1 or 2, whichever has the controllers), their limits and
// counters, and the proof that one is empty.
package cgroup

import (
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

	"golang.org/x/sys/unix"
)

// Limits are set when a group is made; zero leaves one out.
type Limits struct {
	Memory, Pids, MilliCPU int64
}

// Stats are one group's counters.
type Stats struct {
	Memory, Peak, Limit int64
	CPU                 time.Duration
	OOMKills            int64
	Pids                int64
}

// Controllers says which counters and limits a Parent has.
type Controllers struct{ Memory, Pids, CPU bool }

// Parent is where groups are made: one folder per version 1 controller, or one
// version 2 folder. It is made by Find.
type Parent struct {
	// Dirs by controller name; version 2 has the single name "unified".
	Dirs map[string]string `json:"dirs"`
	// V2 says which file names apply.
	V2 bool `json:"v2"`
}

// Has says which controllers the parent has.
func (p *Parent) Has() Controllers {
	if p == nil {
		return Controllers{}
	}
	if p.V2 {
		return Controllers{true, true, true}
	}
	return Controllers{p.Dirs["memory"] != "", p.Dirs["pids"] != "", p.Dirs["cpu"] != ""}
}

// Group is one container's group in every hierarchy.
type Group struct {
	v2   bool
	dirs map[string]string
}

// Make creates a group and sets its limits. On error nothing is left.
func (p *Parent) Make(name string, l Limits) (*Group, error) {
	g := &Group{v2: p.V2, dirs: map[string]string{}}
	for controller, dir := range p.Dirs {
		if controller == "cpu" && l.MilliCPU == 0 {
			continue // nothing to limit, and each hierarchy joined costs a start
		}
		path := filepath.Join(dir, name)
		if !slices.Contains(g.folders(), path) {
			if err := os.Mkdir(path, 0o755); err != nil {
				return nil, errors.Join(err, g.Remove())
			}
		}
		g.dirs[controller] = path
	}
	if err := g.limit(l); err != nil {
		return nil, errors.Join(err, g.Remove())
	}
	return g, nil
}

// Open is the group that name has below the parent, in whichever hierarchies it is.
func (p *Parent) Open(name string) *Group {
	g := &Group{v2: p.V2, dirs: map[string]string{}}
	for controller, dir := range p.Dirs {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); err == nil {
			g.dirs[controller] = path
		}
	}
	return g
}

// Folders are the parent's folders, each once: cpu and cpuacct are often one.
func (p *Parent) Folders() []string { return (&Group{dirs: p.Dirs}).folders() }

// folders are the group's folders, each once.
func (g *Group) folders() []string {
	return slices.Compact(slices.Sorted(maps.Values(g.dirs)))
}

// JoinFiles opens, for writing, the file of every hierarchy that a process writes "0"
// to in order to join. It must be single-threaded: version 1 moves one thread by it,
// which the kernel does without its global lock. (Moving a process takes that lock,
// and with it an RCU grace period: 10 ms where it is not in constant use.)
func (g *Group) JoinFiles() ([]*os.File, error) {
	name := "tasks"
	if g.v2 {
		name = "cgroup.procs"
	}
	var files []*os.File
	for _, dir := range g.folders() {
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY, 0)
		if err != nil {
			for _, open := range files {
				_ = open.Close()
			}
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

// Join moves a process of one thread into the group.
func (g *Group) Join(pid int) error {
	files, err := g.JoinFiles()
	for _, f := range files {
		_, moved := f.WriteString(strconv.Itoa(pid))
		err = errors.Join(err, moved, f.Close())
	}
	return err
}

// Folder opens the version 2 folder, into which a process can be cloned; nil on
// version 1, which has no such thing.
func (g *Group) Folder() (*os.File, error) {
	if !g.v2 {
		return nil, nil
	}
	return os.Open(g.dirs["unified"])
}

// Pids lists the processes in the group.
func (g *Group) Pids() ([]int, error) {
	var all []int
	for _, dir := range g.folders() {
		text, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, field := range strings.Fields(string(text)) {
			if pid, err := strconv.Atoi(field); err == nil && pid > 0 {
				all = append(all, pid)
			}
		}
	}
	return all, nil
}

// Kill sends SIGKILL to every process in the group, once, and does not wait.
func (g *Group) Kill() error {
	if g.v2 {
		err := os.WriteFile(filepath.Join(g.dirs["unified"], "cgroup.kill"), []byte("1"), 0)
		if err == nil || g.gone() {
			return nil
		}
	}
	pids, err := g.Pids()
	for _, pid := range pids {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	return err
}

func (g *Group) gone() bool {
	for _, dir := range g.dirs {
		if _, err := os.Stat(dir); err == nil {
			return false
		}
	}
	return true
}

// Remove deletes the group in every hierarchy; it may be repeated. It fails with
// EBUSY where a process is left.
func (g *Group) Remove() error {
	var errs []error
	for _, dir := range g.folders() {
		err := unix.Rmdir(dir)
		if err != nil && err != unix.ENOENT {
			errs = append(errs, fmt.Errorf("remove cgroup %s: %w", dir, err))
		}
	}
	return errors.Join(errs...)
}

func (g *Group) write(controller, file string, value string) error {
	dir := g.dirs[controller]
	if dir == "" {
		return fmt.Errorf("set %s: no %s controller", file, controller)
	}
	if err := os.WriteFile(filepath.Join(dir, file), []byte(value), 0o644); err != nil {
		return fmt.Errorf("set %s to %s: %w", file, value, errors.Unwrap(err))
	}
	return nil
}

func (g *Group) number(controller, file string) int64 {
	text, err := os.ReadFile(filepath.Join(g.dirs[controller], file))
	if err != nil || g.dirs[controller] == "" {
		return 0
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return 0 // "max"
	}
	return n
}

// field reads one line "name value" of a file.
func (g *Group) field(controller, file, name string) int64 {
	text, err := os.ReadFile(filepath.Join(g.dirs[controller], file))
	if err != nil || g.dirs[controller] == "" {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if value, found := strings.CutPrefix(line, name+" "); found {
			n, _ := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
			return n
		}
	}
	return 0
}

// Names lists the groups below the parent, in any hierarchy.
func (p *Parent) Names() []string {
	names := map[string]bool{}
	for _, dir := range p.Dirs {
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			if e.IsDir() {
				names[e.Name()] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// Remove deletes the parent's folders; it may be repeated.
func (p *Parent) Remove() error { return (&Group{dirs: p.Dirs}).Remove() }
