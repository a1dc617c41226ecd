//go:build linux && amd64

package process

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Swept counts what an earlier life had left.
type Swept struct{ Processes, Cgroups, Mounts int }

// Any says that there was something.
func (s Swept) Any() bool { return s != Swept{} }

// Sweep ends and removes whatever a driver that is gone left of its containers:
// processes, control groups, mounts; namespaces go with the last process in them.
// Open does the same; Sweep is for whoever will not open a driver. Errors:
// *InUseError while a driver lives.
func Sweep(root string, patience time.Duration) (Swept, error) {
	s, err := takeState(root)
	if err != nil {
		return Swept{}, err
	}
	swept, err := s.sweep(patience)
	return swept, errors.Join(err, s.lock.Close())
}

func (s *state) sweep(patience time.Duration) (Swept, error) {
	var swept Swept
	if err := s.awaitGuard(patience); err != nil {
		return swept, err
	}
	parent, err := s.remembered()
	if err != nil {
		return swept, err
	}
	if parent != nil {
		for _, name := range parent.Names() {
			group := parent.Open(name)
			pids, err := group.Pids()
			if err != nil {
				return swept, err
			}
			if err := empty(group, patience); err != nil {
				return swept, fmt.Errorf("container %s: %w", name, err)
			}
			swept.Cgroups++
			swept.Processes += len(pids)
		}
		if err := errors.Join(parent.Remove(), os.Remove(s.cgroupsFile())); err != nil {
			return swept, err
		}
	}
	swept.Mounts, err = unmountBelow(s.dir)
	return swept, err
}

// Leftovers lists what the driver on root, living or gone, has outside of that folder:
// control groups, and mounts below it.
func Leftovers(root string) ([]string, error) {
	s := &state{dir: root}
	parent, err := s.remembered()
	if err != nil {
		return nil, err
	}
	var left []string
	if parent != nil {
		left = append(left, parent.Folders()...)
		for _, name := range parent.Names() {
			left = append(left, filepath.Join(cgroupName(root), name))
		}
	}
	mounts, err := mountsBelow(root)
	return append(left, mounts...), err
}

// unmountBelow detaches every mount in this process's namespace that lies below dir.
// The driver makes none there; it is what other tools may have left.
func unmountBelow(dir string) (int, error) {
	points, err := mountsBelow(dir)
	if err != nil {
		return 0, err
	}
	for i := len(points) - 1; i >= 0; i-- {
		if err := unix.Unmount(points[i], unix.MNT_DETACH); err != nil {
			return 0, fmt.Errorf("unmount %s: %w", points[i], err)
		}
	}
	return len(points), nil
}

func mountsBelow(dir string) ([]string, error) {
	file, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	var points []string
	for lines := bufio.NewScanner(file); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) > 4 && strings.HasPrefix(fields[4], dir+"/") {
			points = append(points, fields[4])
		}
	}
	return points, nil
}
