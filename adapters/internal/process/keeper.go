package process

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"sync"

	"golang.org/x/sys/unix"
)

// Config says whose processes a keeper keeps.
type Config struct {
	// Dir is where the keeper notes how to find its processes after a crash; made
	// if it is missing.
	Dir string
	// Name tells keepers with one Dir apart: lower case letters, digits, dashes.
	Name string
	// NoCgroup uses process groups and /proc even where cgroups can be used.
	NoCgroup bool
}

var namePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,31}$`)

// Keeper owns every group of one server. Safe for concurrent use.
type Keeper struct {
	cfg   Config
	lock  *os.File
	base  string // prefix of our names, the same in every life
	id    string // this life's name: base and a random part
	root  cgroup // "" without cgroups
	guard *guard
	// written is root as /proc/PID/cgroup writes it.
	written string

	leading leading
	nursing sync.Map // paths of nurseries, as /proc writes them, to nothing

	mu     sync.Mutex // guards the fields below
	groups map[*Group]struct{}
	closed bool
}

// ErrInUse says that another process keeps the same Dir and Name.
var ErrInUse = errors.New("another server is at work here")

// Open ends what an earlier life with the same Dir and Name has left, and
// returns a keeper that can start groups.
// Errors: ErrInUse, and those of the file system.
func Open(cfg Config) (*Keeper, error) {
	if !namePattern.MatchString(cfg.Name) {
		return nil, fmt.Errorf("keeper name %q: use lower case letters, digits and dashes", cfg.Name)
	}
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return nil, err
	}
	cfg.Dir = dir
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make keeper's folder: %w", err)
	}
	sum := sha256.Sum256([]byte(dir + "\x00" + cfg.Name))
	k := &Keeper{cfg: cfg, base: "hearth-" + hex.EncodeToString(sum[:6]) + "-", groups: map[*Group]struct{}{}}
	k.id = k.base + rand.Text()[:10]
	if k.lock, err = lock(filepath.Join(dir, cfg.Name+".lock")); err != nil {
		return nil, err
	}
	if err := k.open(); err != nil {
		return nil, errors.Join(err, k.lock.Close())
	}
	return k, nil
}

func (k *Keeper) open() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become child subreaper: %w", err)
	}
	// What this process was itself given and did not ask for must not reach user
	// code. Go marks its own descriptors; kernels before 5.11 cannot do it for all.
	if err := unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil && !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("mark descriptors: %w", err)
	}
	if err := k.sweep(); err != nil {
		return err
	}
	if !k.cfg.NoCgroup {
		k.root, k.written = newRoot(k.id)
	}
	if err := k.note(); err != nil {
		return err
	}
	guard, err := startGuard(k.root, k.id, &k.leading)
	if err != nil {
		return err
	}
	k.guard = guard
	return nil
}

// lock takes the file, which the kernel releases when this process ends.
func lock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = fmt.Errorf("lock %s: %w", path, ErrInUse)
		}
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Cgroups says whether groups are cgroups here.
func (k *Keeper) Cgroups() bool { return k.root != "" }

// Group makes an empty group. The name is for people who look at the system.
func (k *Keeper) Group(name string) (*Group, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return nil, errors.New("make process group: the keeper is closed")
	}
	g := &Group{keeper: k, name: name + "-" + rand.Text()[:8]}
	if k.Cgroups() {
		g.dir = k.root.child(g.name)
		if err := g.dir.make(); err != nil {
			return nil, err
		}
	}
	g.mark = k.id + "/" + g.name
	k.groups[g] = struct{}{}
	return g, nil
}

func (k *Keeper) forget(g *Group) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.groups, g)
}

func (k *Keeper) list() []*Group {
	k.mu.Lock()
	defer k.mu.Unlock()
	groups := make([]*Group, 0, len(k.groups))
	for g := range k.groups {
		groups = append(groups, g)
	}
	return groups
}

// Close ends every process of every group and returns when none is left. It may
// be repeated.
func (k *Keeper) Close() error {
	k.mu.Lock()
	was := k.closed
	k.closed = true
	k.mu.Unlock()
	if was {
		return nil
	}
	var errs []error
	for _, g := range k.list() {
		errs = append(errs, g.Close())
	}
	if k.Cgroups() {
		errs = append(errs, k.root.remove())
	}
	// The lock is given back by word, not by the close: a process that is just being
	// started has a copy of the descriptor until its program begins.
	errs = append(errs, k.guard.close(), k.unnote(), unix.Flock(int(k.lock.Fd()), unix.LOCK_UN), k.lock.Close())
	return errors.Join(errs...)
}
