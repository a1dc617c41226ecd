package catalogue

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Store is the catalogues of one folder, *.json, read again when a file changes.
// A reader gets one whole state of the folder, never a mixture.
type Store struct {
	dir     string
	flavors atomic.Pointer[map[string]*Catalogue]
}

// Open reads the folder. An empty name is a store without catalogues: every
// start is cold.
func Open(dir string) (*Store, error) {
	s := &Store{dir: dir}
	s.flavors.Store(&map[string]*Catalogue{})
	if dir == "" {
		return s, nil
	}
	return s, s.Reload()
}

// Flavor returns the catalogue of a flavor, nil if there is none.
func (s *Store) Flavor(flavor string) *Catalogue { return (*s.flavors.Load())[flavor] }

// Flavors is how many catalogues there are.
func (s *Store) Flavors() int { return len(*s.flavors.Load()) }

// Has says whether any flavor knows the checkpoint.
func (s *Store) Has(checkpoint string) bool {
	for _, c := range *s.flavors.Load() {
		if c.Has(checkpoint) {
			return true
		}
	}
	return false
}

// Reload reads the folder again. When a file is wrong, everything stays as it was.
func (s *Store) Reload() error {
	files, err := filepath.Glob(filepath.Join(s.dir, "*.json"))
	if err != nil {
		return fmt.Errorf("list catalogues: %w", err)
	}
	if _, err := os.Stat(s.dir); err != nil {
		return fmt.Errorf("list catalogues: %w", err)
	}
	flavors := map[string]*Catalogue{}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			return fmt.Errorf("read catalogue: %w", err)
		}
		c, err := Parse(data)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if flavors[c.flavor] != nil {
			return fmt.Errorf("%s: flavor %s has another catalogue in this folder", name, c.flavor)
		}
		flavors[c.flavor] = c
	}
	s.flavors.Store(&flavors)
	return nil
}

// Run reloads the folder whenever one of its files was written, put in place or
// removed, until ctx is done. changed hears of each reload, with its error.
func (s *Store) Run(ctx context.Context, changed func(error)) error {
	if s.dir == "" {
		<-ctx.Done()
		return nil
	}
	watch, err := s.watch()
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { watch.Close() })
	defer stop()
	defer watch.Close()
	// What changed between Open and the watch.
	changed(s.Reload())
	for buf := make([]byte, 64<<10); ; {
		if _, err := watch.Read(buf); err != nil {
			if ctx.Err() != nil || errors.Is(err, os.ErrClosed) {
				return nil
			}
			return fmt.Errorf("watch catalogues: %w", err)
		}
		changed(s.Reload())
	}
}

// watch returns a file that can be read when the folder has changed.
func (s *Store) watch() (*os.File, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("watch catalogues: %w", err)
	}
	const events = unix.IN_CLOSE_WRITE | unix.IN_MOVED_TO | unix.IN_MOVED_FROM | unix.IN_DELETE
	if _, err := unix.InotifyAddWatch(fd, s.dir, events); err != nil {
		return nil, errors.Join(fmt.Errorf("watch catalogues in %s: %w", s.dir, err), unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), "catalogues"), nil
}
