//go:build linux && amd64

package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/hearth-run/hearth/sandbox/internal/cgroup"
)

// state is the driver's folder:
//
//	lock           held with flock by the living driver
//	guard.lock     the same, by its guard, which may outlive the driver for a moment
//	cgroups.json   where this machine's control groups for it are; gone when they are
//	init           the program that is every container's first process
//	root/          always empty; the mount point of containers' roots
type state struct {
	dir  string
	lock *os.File
}

// InUseError is a root folder that a living driver holds.
type InUseError struct{ Root string }

func (e *InUseError) Error() string {
	return fmt.Sprintf("root %s: another living driver uses it; give each its own", e.Root)
}

func takeState(dir string) (*state, error) {
	if err := os.MkdirAll(filepath.Join(dir, "root"), 0o711); err != nil {
		return nil, fmt.Errorf("make the driver's folder: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("take the driver's folder: %w", err)
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = lock.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, &InUseError{dir}
		}
		return nil, fmt.Errorf("lock the driver's folder: %w", err)
	}
	return &state{dir: dir, lock: lock}, nil
}

func (s *state) initFile() string { return filepath.Join(s.dir, "init") }

// writeInit writes the executable while no fork can happen in this process: a child
// that inherited the descriptor open for writing would make its execution fail.
func (s *state) writeInit(code []byte) error {
	temporary := s.initFile() + ".new"
	syscall.ForkLock.RLock()
	err := os.WriteFile(temporary, code, 0o755)
	syscall.ForkLock.RUnlock()
	if err == nil {
		err = os.Chmod(temporary, 0o755) // whatever the umask
	}
	if err == nil {
		err = os.Rename(temporary, s.initFile())
	}
	return err
}

func (s *state) cgroupsFile() string { return filepath.Join(s.dir, "cgroups.json") }

// remember writes down where groups will be made, before the first is.
func (s *state) remember(p *cgroup.Parent) error {
	if p == nil {
		return nil
	}
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	temporary := s.cgroupsFile() + ".new"
	if err := os.WriteFile(temporary, text, 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, s.cgroupsFile())
}

func (s *state) remembered() (*cgroup.Parent, error) {
	text, err := os.ReadFile(s.cgroupsFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	p := &cgroup.Parent{}
	if err := json.Unmarshal(text, p); err != nil {
		return nil, fmt.Errorf("read %s: %w; remove the file if its groups are gone", s.cgroupsFile(), err)
	}
	return p, nil
}

// release gives the folder back; the groups' parents go where they are empty. It may
// be repeated.
func (s *state) release(p *cgroup.Parent) error {
	var err error
	if p != nil {
		err = p.Remove()
	}
	if err == nil {
		err = os.Remove(s.cgroupsFile())
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	_ = s.lock.Close()
	return err
}
