package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// noteFile is where a life leaves word of where its processes are: the folder of
// its cgroup, or an empty line where they are known by their marks.
func (k *Keeper) noteFile() string { return filepath.Join(k.cfg.Dir, k.cfg.Name+".processes") }

// note leaves word before the first process is started.
func (k *Keeper) note() error {
	return writeFile(k.noteFile(), []byte(string(k.root)+"\n"))
}

// unnote takes the word back after the last process has ended.
func (k *Keeper) unnote() error { return os.Remove(k.noteFile()) }

// writeFile writes to a temporary name, syncs and renames.
func writeFile(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".tmp-*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(f.Name()))
	}
	return err
}

// sweep ends what earlier lives have left. The lock is held, so they are over.
func (k *Keeper) sweep() error {
	word, err := os.ReadFile(k.noteFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if dir := strings.TrimSpace(string(word)); dir != "" {
		// Lives that crashed before they could note their own folder lie beside it.
		siblings, err := filepath.Glob(filepath.Join(filepath.Dir(dir), k.base+"*"))
		if err != nil {
			return err
		}
		for _, dir := range siblings {
			if err := cgroup(dir).end(); err != nil {
				return fmt.Errorf("sweep an earlier life: %w", err)
			}
		}
		return nil
	}
	return k.sweepMarks()
}

// end kills a cgroup that no keeper of this process owns, waits for its processes
// and removes it.
func (c cgroup) end() error {
	var fds []int
	for _, dir := range c.tree() {
		for _, pid := range dir.procs() {
			if fd, err := unix.PidfdOpen(pid, 0); err == nil {
				fds = append(fds, fd)
			}
		}
	}
	err := c.kill()
	deadline := time.Now().Add(killBound)
	for _, fd := range fds {
		if err == nil {
			err = await(fd, unix.POLLIN, deadline)
		}
		_ = unix.Close(fd)
	}
	if err != nil {
		return err
	}
	return c.remove()
}

// tree returns the group and every one beneath it.
func (c cgroup) tree() []cgroup {
	all := []cgroup{c}
	entries, err := os.ReadDir(string(c))
	if err != nil {
		return all
	}
	for _, e := range entries {
		if e.IsDir() {
			all = append(all, c.child(e.Name()).tree()...)
		}
	}
	return all
}

// sweepMarks kills by marks until none of an earlier life is found.
func (k *Keeper) sweepMarks() error {
	deadline := time.Now().Add(killBound)
	for {
		found := 0
		for _, p := range walk() {
			if p.dead() || !strings.HasPrefix(markOf(p.pid), k.base) || strings.HasPrefix(markOf(p.pid), k.id) || otherKeeper(p.pid) {
				continue
			}
			found++
			if err := signal(p, unix.SIGKILL); err != nil {
				return err
			}
			if _, err := settle(p, deadline); err != nil {
				return err
			}
		}
		if found == 0 {
			return nil
		}
	}
}

// otherKeeper says that the process is this one: a server that was itself started
// by a function of an earlier life.
func otherKeeper(pid int) bool { return pid == os.Getpid() }
