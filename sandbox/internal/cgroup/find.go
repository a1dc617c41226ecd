//go:build linux && amd64

package cgroup

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// wanted are the version 1 controllers that a container joins.
var wanted = []string{"memory", "pids", "cpu", "cpuacct"}

// Layout is where the hierarchies are mounted and where this process is in them.
type Layout struct {
	mounts map[string]string // controller, or "unified" → mount point
	own    map[string]string // the same → path below the mount point
}

// ReadLayout reads /proc/self/mountinfo and /proc/self/cgroup.
func ReadLayout() (Layout, error) {
	mounts, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return Layout{}, err
	}
	defer func() { _ = mounts.Close() }()
	own, err := os.Open("/proc/self/cgroup")
	if err != nil {
		return Layout{}, err
	}
	defer func() { _ = own.Close() }()
	return parseLayout(mounts, own), nil
}

func parseLayout(mountinfo, cgroups io.Reader) Layout {
	l := Layout{mounts: map[string]string{}, own: map[string]string{}}
	for lines := bufio.NewScanner(mountinfo); lines.Scan(); {
		before, after, found := strings.Cut(lines.Text(), " - ")
		left, right := strings.Fields(before), strings.Fields(after)
		if !found || len(left) < 5 || len(right) < 3 {
			continue
		}
		switch right[0] {
		case "cgroup2":
			l.mounts["unified"] = left[4]
		case "cgroup":
			for _, option := range strings.Split(right[2], ",") {
				l.mounts[option] = left[4]
			}
		}
	}
	for lines := bufio.NewScanner(cgroups); lines.Scan(); {
		parts := strings.SplitN(lines.Text(), ":", 3)
		if len(parts) != 3 {
			continue
		}
		if parts[1] == "" {
			l.own["unified"] = parts[2]
		}
		for _, controller := range strings.Split(parts[1], ",") {
			if controller != "" {
				l.own[controller] = parts[2]
			}
		}
	}
	return l
}

// Find makes the folder called name in the hierarchies that have the controllers,
// below this process's own group where that is allowed, so that limits set on the
// whole service go on holding. The error says what was tried; there may be a Parent
// beside it, with the controllers that could be had.
func Find(l Layout, name string) (*Parent, error) {
	if l.mounts["memory"] == "" && l.mounts["unified"] != "" {
		return findV2(l, name)
	}
	return findV1(l, name)
}

func findV1(l Layout, name string) (*Parent, error) {
	p := &Parent{Dirs: map[string]string{}}
	var errs []error
	for _, controller := range wanted {
		mount := l.mounts[controller]
		if mount == "" {
			errs = append(errs, fmt.Errorf("cgroup controller %s is not mounted", controller))
			continue
		}
		dir := filepath.Join(mount, l.own[controller], name)
		if err := mkdirWritable(dir); err != nil {
			errs = append(errs, fmt.Errorf("cgroup controller %s: %w", controller, err))
			continue
		}
		real, err := filepath.EvalSymlinks(dir) // cpu is often a link to cpu,cpuacct
		if err != nil {
			errs = append(errs, err)
			continue
		}
		p.Dirs[controller] = real
	}
	if len(p.Dirs) == 0 {
		return nil, errors.Join(errs...)
	}
	return p, errors.Join(errs...)
}

// findV2 tries this process's own group, then the one above, then the root: a group
// that holds processes cannot hand controllers to its children, unless it is the root.
func findV2(l Layout, name string) (*Parent, error) {
	mount, own := l.mounts["unified"], l.own["unified"]
	var errs []error
	for _, at := range []string{own, filepath.Dir(own), "/"} {
		dir := filepath.Join(mount, at)
		err := enable(dir)
		if err == nil {
			err = mkdirWritable(filepath.Join(dir, name))
		}
		if err == nil {
			err = enable(filepath.Join(dir, name))
		}
		if err == nil {
			return &Parent{V2: true, Dirs: map[string]string{"unified": filepath.Join(dir, name)}}, nil
		}
		errs = append(errs, fmt.Errorf("cgroup %s: %w", at, err))
	}
	return nil, errors.Join(errs...)
}

// enable hands memory, pids and cpu to the folder's children.
func enable(dir string) error {
	file := filepath.Join(dir, "cgroup.subtree_control")
	return os.WriteFile(file, []byte("+memory +pids +cpu"), 0)
}

func mkdirWritable(dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil && !os.IsExist(err) {
		return err
	}
	return unix.Access(dir, unix.W_OK)
}
