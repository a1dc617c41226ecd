// Package packages owns the installed requirement sets of a worker: one folder a
// set, installed once however many calls ask for it at the same time, shared
// read-only by the containers that use it, removed when it is unused and the
// cache is full.
package packages

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// ErrInstall says that the installer failed; the *InstallError has its last lines.
var ErrInstall = errors.New("install packages")

// InstallError carries what the installer said last.
type InstallError struct {
	Requirements []string
	// Tail is at most 4 KiB.
	Tail string
}

func (e *InstallError) Error() string {
	return fmt.Sprintf("install %s: %s", strings.Join(e.Requirements, ", "), e.Tail)
}

// Unwrap lets errors.Is find ErrInstall.
func (e *InstallError) Unwrap() error { return ErrInstall }

// Public is the text for the caller.
func (e *InstallError) Public() string {
	return fmt.Sprintf("packages %s could not be installed: %s", strings.Join(e.Requirements, ", "), e.Tail)
}

// Config says where sets are kept and how they are installed.
type Config struct {
	// Root is the cache's folder.
	Root string
	// MaxSets is how many unused sets are kept; 0 is 100.
	MaxSets int
	// Timeout bounds one installation; 0 is 5 min.
	Timeout time.Duration
	// Install puts requirements into folder.
	Install func(ctx context.Context, folder string, requirements []string) error
}

// Cache is the sets of one worker. Safe for concurrent use.
type Cache struct {
	cfg Config
	log *slog.Logger
	mu  sync.Mutex // guards sets
	// sets are the installed and the installing ones, by key.
	sets map[string]*set
}

type set struct {
	users int
	used  time.Time
	// done is closed once the installation has ended, with err.
	done chan struct{}
	err  error
}

// Open returns the cache at cfg.Root, with what an earlier life installed whole;
// what it left half done is removed.
func Open(cfg Config, log *slog.Logger) (*Cache, error) {
	if cfg.MaxSets == 0 {
		cfg.MaxSets = 100
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = 5 * time.Minute
	}
	if err := os.MkdirAll(cfg.Root, 0o755); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(cfg.Root)
	if err != nil {
		return nil, err
	}
	c := &Cache{cfg: cfg, log: log, sets: map[string]*set{}}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), partial) {
			if err := os.RemoveAll(filepath.Join(cfg.Root, entry.Name())); err != nil {
				return nil, err
			}
			continue
		}
		done := make(chan struct{})
		close(done)
		c.sets[entry.Name()] = &set{done: done}
	}
	return c, nil
}

// Modules are the top-level modules that an installed set brings, sorted, each once.
// A namespace that several distributions share counts as a module.
func Modules(folder string) ([]string, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var modules []string
	for _, entry := range entries {
		name := entry.Name()
		if !entry.IsDir() {
			name, _, _ = strings.Cut(name, ".") // six.py, _x.cpython-311-x86_64-linux-gnu.so
		}
		if !strings.ContainsAny(name, ".-") && name != "bin" && name != "__pycache__" {
			modules = append(modules, name)
		}
	}
	slices.Sort(modules)
	return slices.Compact(modules), nil
}

const partial = ".installing-"

// Key names a requirement set: the same requirements in any order are one set.
func Key(requirements []string) string {
	sorted := slices.Clone(requirements)
	slices.Sort(sorted)
	sum := sha256.Sum256([]byte(strings.Join(slices.Compact(sorted), "\n")))
	return hex.EncodeToString(sum[:])
}

// Acquire returns the folder of a set, installing it first where that was not
// done yet, and a release to call once the folder is no longer used. Callers that
// ask for a set that is being installed wait for it; one that goes away does not
// end the installation for the others.
// Errors: *InstallError, ctx's cause.
func (c *Cache) Acquire(ctx context.Context, requirements []string) (folder string, release func(), err error) {
	key := Key(requirements)
	c.mu.Lock()
	s := c.sets[key]
	if s == nil {
		s = &set{done: make(chan struct{})}
		c.sets[key] = s
		go c.install(context.WithoutCancel(ctx), key, s, requirements)
	}
	s.users++
	c.mu.Unlock()
	release = sync.OnceFunc(func() { c.release(s) })
	select {
	case <-s.done:
	case <-ctx.Done():
		release()
		return "", nil, context.Cause(ctx)
	}
	if s.err != nil {
		release()
		return "", nil, s.err
	}
	return filepath.Join(c.cfg.Root, key), release, nil
}

// install runs once a set; a failed set is forgotten, so that the next call tries
// again.
func (c *Cache) install(ctx context.Context, key string, s *set, requirements []string) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	start := time.Now()
	s.err = c.build(ctx, key, requirements)
	if s.err != nil {
		c.mu.Lock()
		delete(c.sets, key)
		c.mu.Unlock()
	}
	c.log.Info("installed packages", "requirements", requirements, "took", time.Since(start), "err", s.err)
	close(s.done)
}

func (c *Cache) build(ctx context.Context, key string, requirements []string) error {
	temporary, err := os.MkdirTemp(c.cfg.Root, partial)
	if err != nil {
		return err
	}
	defer os.RemoveAll(temporary)
	if err := c.cfg.Install(ctx, temporary, requirements); err != nil {
		return err
	}
	if err := os.Chmod(temporary, 0o755); err != nil {
		return err
	}
	err = os.Rename(temporary, filepath.Join(c.cfg.Root, key))
	if errors.Is(err, fs.ErrExist) {
		return nil // another worker on this folder was first
	}
	return err
}

func (c *Cache) release(s *set) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.users--
	s.used = time.Now()
	c.evict()
}

// evict removes the longest unused sets above MaxSets; the caller holds mu.
func (c *Cache) evict() {
	var idle []string
	for key, s := range c.sets {
		if s.users == 0 {
			idle = append(idle, key)
		}
	}
	slices.SortFunc(idle, func(a, b string) int { return c.sets[a].used.Compare(c.sets[b].used) })
	for _, key := range idle[:max(0, len(idle)-c.cfg.MaxSets)] {
		delete(c.sets, key)
		// Renamed first: the set must not be found half removed.
		gone := filepath.Join(c.cfg.Root, partial+key)
		if err := os.Rename(filepath.Join(c.cfg.Root, key), gone); err != nil {
			c.log.Warn("evict packages", "err", err)
			continue
		}
		if err := os.RemoveAll(gone); err != nil {
			c.log.Warn("evict packages", "err", err)
		}
	}
}
