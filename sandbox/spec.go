package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Spec says what a container is. It is read by Create and not kept by the caller's
// reference: a driver copies what it needs.
type Spec struct {
	// ID names the container within its driver: 1 to 63 of [a-z0-9-], first and last
	// alphanumeric. Two living containers never share one.
	ID string
	// Argv is the program and its arguments. Argv[0] is an absolute path inside the
	// container; there is no search.
	Argv []string
	// Env is the whole environment, as KEY=VALUE. Nothing is added or inherited.
	Env []string
	// Dir is the working directory inside; "" is "/".
	Dir string
	// Binds are the parts of the host's tree that are visible inside. Everything
	// else of it is not there.
	Binds []Bind
	// Scratch are the writable, memory-backed folders. Their bytes also count
	// against Limits.Memory.
	Scratch []Scratch
	// User is who the program runs as; the zero value lets the driver choose one
	// that no other living container has.
	User User
	// Limits bound what the container may use.
	Limits Limits
	// Network is NetworkNone unless said otherwise.
	Network Network
	// Stdin, Stdout and Stderr become descriptors 0, 1 and 2; nil is /dev/null.
	// The caller keeps its own copies and closes them.
	Stdin, Stdout, Stderr *os.File
	// Files become descriptors 3, 4, … in this order (a control socket, say). No
	// other descriptor of the owning process is visible inside.
	Files []*os.File
}

// Bind makes a file or folder of the host visible inside.
type Bind struct {
	// Source is an absolute path on the host. A symbolic link is made again as a
	// link with the same text, not followed.
	Source string
	// Target is the absolute, clean path inside; "" is Source.
	Target string
	// Writable lets the container write. A writable folder must belong to Spec.User.
	Writable bool
	// Optional leaves the bind out, silently, where Source is not there.
	Optional bool
}

// Scratch is an empty, writable folder that ends with the container.
type Scratch struct {
	// Target is the absolute, clean path inside.
	Target string
	// Bytes is the most that it holds; writing more is ENOSPC.
	Bytes int64
}

// User is a pair of numeric ids inside the container.
type User struct{ UID, GID uint32 }

// Network says which network a container sees.
type Network int

const (
	// NetworkNone is no network at all, the loopback included.
	NetworkNone Network = iota
	// NetworkHost is the network of the host, the services on its loopback included.
	NetworkHost
)

// Limits bound a container. Zero leaves a bound out, except where a field says so.
type Limits struct {
	// Memory is in bytes: processes, page cache and scratch together. It can be
	// raised while the container runs (Container.Grow).
	Memory int64
	// Pids is the most processes and threads at one time, the driver's own first
	// process included (one).
	Pids int64
	// MilliCPU is in thousandths of a core: 1500 is one core and a half.
	MilliCPU int64
	// NoFile is the most open descriptors of one process; 0 is 1024.
	NoFile uint64
	// FileBytes is the biggest file that a process may write; 0 is no bound.
	FileBytes uint64
}

// MinMemory is the least that Limits.Memory may be: below it not even the walls fit.
const MinMemory = 4 << 20

var idPattern = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// Validate names every bad field at once.
func (s Spec) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if !idPattern.MatchString(s.ID) {
		bad("id %q: want 1 to 63 of [a-z0-9-], first and last alphanumeric", s.ID)
	}
	if len(s.Argv) == 0 || !filepath.IsAbs(s.Argv[0]) {
		bad("argv: the first entry must be an absolute path inside the container")
	}
	for _, text := range slices.Concat(s.Argv, s.Env) {
		if strings.ContainsRune(text, 0) {
			bad("argv, env: an entry holds a NUL byte; encode it differently")
			break
		}
	}
	if s.Dir != "" && !filepath.IsAbs(s.Dir) {
		bad("dir %q: must be absolute or empty", s.Dir)
	}
	if (s.User.UID == 0) != (s.User.GID == 0) {
		bad("user %d:%d: give both ids, none of them 0, or none", s.User.UID, s.User.GID)
	}
	if s.Network != NetworkNone && s.Network != NetworkHost {
		bad("network %d: want NetworkNone or NetworkHost", s.Network)
	}
	return errors.Join(append(errs, s.badPaths(), s.Limits.validate())...)
}

func (s Spec) badPaths() error {
	var errs []error
	for _, b := range s.Binds {
		if !filepath.IsAbs(b.Source) {
			errs = append(errs, fmt.Errorf("bind %q: source must be absolute", b.Source))
		}
		if !insideRoot(b.Inside()) {
			errs = append(errs, fmt.Errorf("bind %q: target %q must be absolute, clean and not /", b.Source, b.Inside()))
		}
	}
	for _, m := range s.Scratch {
		if !insideRoot(m.Target) || m.Bytes <= 0 {
			errs = append(errs, fmt.Errorf("scratch %q, %d bytes: target must be absolute, clean and not /, bytes above 0", m.Target, m.Bytes))
		}
	}
	return errors.Join(errs...)
}

// Inside is where the bind is seen in the container.
func (b Bind) Inside() string {
	if b.Target != "" {
		return b.Target
	}
	return b.Source
}

func insideRoot(path string) bool {
	return filepath.IsAbs(path) && filepath.Clean(path) == path && path != "/" && !strings.ContainsRune(path, 0)
}

func (l Limits) validate() error {
	var errs []error
	if l.Memory != 0 && l.Memory < MinMemory {
		errs = append(errs, fmt.Errorf("limits.memory %d: must be 0 or at least %d", l.Memory, MinMemory))
	}
	if l.Pids < 0 || l.Pids == 1 {
		errs = append(errs, fmt.Errorf("limits.pids %d: must be 0 or at least 2", l.Pids))
	}
	if l.MilliCPU != 0 && l.MilliCPU < 10 {
		errs = append(errs, fmt.Errorf("limits.milli_cpu %d: must be 0 or at least 10", l.MilliCPU))
	}
	return errors.Join(errs...)
}
