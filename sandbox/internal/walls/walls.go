//go:build linux && amd64

// Package walls owns the judgement of which system calls, in which order, put a
// process behind the walls that a Spec asks for. It makes none of them: it writes a
// plan, which the init program or a forked template child applies to itself.
package walls

import (
	"fmt"
	"math"

	"golang.org/x/sys/unix"

	"github.com/hearth-run/hearth/sandbox"
	"github.com/hearth-run/hearth/sandbox/internal/plan"
	"github.com/hearth-run/hearth/sandbox/internal/seccomp"
)

// The names of walls: in failures, in Probe and in docs/security.md.
const (
	Cgroup       = "cgroup"
	Network      = "network-namespace"
	Mounts       = "mount-namespace"
	Root         = "root-file-system"
	Proc         = "proc"
	Host         = "uts-namespace"
	Rlimits      = "rlimits"
	Capabilities = "capabilities"
	UserIDs      = "user"
	NoNewPrivs   = "no-new-privileges"
	ParentDeath  = "parent-death-signal"
	Scopes       = "landlock-scopes"
	Seccomp      = "seccomp"
	Descriptors  = "descriptors"
	// Program is no wall: the working folder and the program itself.
	Program = "program"
)

// WallsStand is the byte written to Site.Failures when only the program is left to
// be executed.
const WallsStand = 'w'

// Site is what the machine and the driver contribute to a container's plan.
type Site struct {
	// MountPoint is an empty folder of the host on which the root is put together;
	// nothing shows there outside of the container's mount namespace.
	MountPoint string
	// User is who the program becomes.
	User sandbox.User
	// Mapped says that the process is already that user, in a user namespace of its
	// own: it cannot change ids and may not need to.
	Mapped bool
	// Unshare are CLONE_NEW* flags that the process itself must ask for (a forked
	// template child); a process that was cloned into its namespaces has none.
	Unshare uintptr
	// Place is how many descriptors the process has to bring from 3, 4, 5, … to their
	// numbers, 0, 1, 2, …, by the plan's first calls; 0 says that they are there.
	Place int
	// Network is the descriptor of the network namespace to join, or -1.
	Network int
	// Cgroups are descriptors of cgroup.procs files to write to.
	Cgroups []int
	// Failures is the descriptor of the pipe on which a failed step is told, and one
	// byte, WallsStand, when all walls do.
	Failures int
	// FirstControl is the lowest descriptor that the program must not have; from
	// there on all are closed when it is executed.
	FirstControl int
	// NoProc leaves /proc an empty folder: where parts of the machine's own /proc are
	// hidden (inside another container, say), the kernel lets nobody without rights
	// mount a whole one.
	NoProc bool
	// Scopes says that the kernel has Landlock's scopes (ABI 6).
	Scopes bool
	// LastCap is the highest capability that the kernel knows.
	LastCap int
	// MaxNoFile is the highest descriptor limit that may be set here.
	MaxNoFile uint64
	// MaxProcesses is set as a per-user limit where no cgroup counts; 0 is none.
	MaxProcesses uint64
}

// Build writes the plan of one container.
func Build(spec sandbox.Spec, site Site) (plan.Plan, error) {
	var p plan.Plan
	place(&p, site.Place)
	dieWithParent(&p)
	if site.Unshare != 0 {
		p.Call(Mounts, unix.SYS_UNSHARE, plan.Int(site.Unshare))
	}
	p.Call(Program, unix.SYS_UMASK, plan.Int(0o022))
	for _, fd := range site.Cgroups {
		p.Call(Cgroup, unix.SYS_WRITE, plan.Int(fd), plan.Text("0"), plan.Int(1))
	}
	if site.Network >= 0 {
		p.Call(Network, unix.SYS_SETNS, plan.Int(site.Network), plan.Int(unix.CLONE_NEWNET))
	}
	if err := root(&p, spec, site); err != nil {
		return nil, err
	}
	name := []byte(spec.ID)
	p.Call(Host, unix.SYS_SETHOSTNAME, plan.Bytes(name), plan.Int(len(name)))
	rlimits(&p, spec.Limits, site)
	identity(&p, site)
	p.Call(NoNewPrivs, unix.SYS_PRCTL, plan.Int(unix.PR_SET_NO_NEW_PRIVS), plan.Int(1), plan.Int(0), plan.Int(0), plan.Int(0))
	if site.Scopes {
		scopes(&p)
	}
	p.Call(Program, unix.SYS_CHDIR, plan.Text(folder(spec)))
	filter := seccomp.Filter(seccomp.Options{Netlink: spec.Network == sandbox.NetworkHost})
	p.Call(Seccomp, unix.SYS_SECCOMP, plan.Int(unix.SECCOMP_SET_MODE_FILTER), plan.Int(0), plan.Program(filter))
	// A parent that died before the signal was asked for has closed its end: then this
	// write fails, and so does the start.
	p.Call(ParentDeath, unix.SYS_WRITE, plan.Int(site.Failures), plan.Bytes([]byte{WallsStand}), plan.Int(1))
	program(&p, spec, site)
	return p, nil
}

// place brings descriptors to their numbers and closes all others; standard streams are
// those that an execve leaves open.
func place(p *plan.Plan, count int) {
	for fd := range count {
		flags := 0
		if fd > 2 {
			flags = unix.O_CLOEXEC
		}
		p.Call(Descriptors, unix.SYS_DUP3, plan.Int(fd+3), plan.Int(fd), plan.Int(flags))
	}
	if count > 0 {
		p.Call(Descriptors, unix.SYS_CLOSE_RANGE, plan.Int(count), plan.Int(uint32(math.MaxUint32)), plan.Int(0))
	}
}

func folder(spec sandbox.Spec) string {
	if spec.Dir == "" {
		return "/"
	}
	return spec.Dir
}

// program leaves the first process behind and executes Argv in a session of its own.
func program(p *plan.Plan, spec sandbox.Spec, site Site) {
	p.Fork()
	p.Call(Descriptors, unix.SYS_CLOSE_RANGE, plan.Int(site.FirstControl), plan.Int(uint32(math.MaxUint32)), plan.Int(unix.CLOSE_RANGE_CLOEXEC))
	p.Call(Program, unix.SYS_SETSID)
	p.Call(Program, unix.SYS_EXECVE, plan.Text(spec.Argv[0]), plan.Table(spec.Argv), plan.Table(spec.Env))
}

// identity drops what the process may do, and asks to be killed with its parent.
// The order matters: dropping from the bounding set needs a capability that setresuid
// takes away, and setresuid clears the parent-death signal.
func identity(p *plan.Plan, site Site) {
	for c := 0; c <= site.LastCap; c++ {
		p.Call(Capabilities, unix.SYS_PRCTL, plan.Int(unix.PR_CAPBSET_DROP), plan.Int(c), plan.Int(0), plan.Int(0), plan.Int(0))
	}
	if !site.Mapped {
		uid, gid := plan.Int(site.User.UID), plan.Int(site.User.GID)
		p.Call(UserIDs, unix.SYS_SETGROUPS, plan.Int(0), plan.Int(0))
		p.Call(UserIDs, unix.SYS_SETRESGID, gid, gid, gid)
		p.Call(UserIDs, unix.SYS_SETRESUID, uid, uid, uid)
	}
	p.Call(Capabilities, unix.SYS_PRCTL, plan.Int(unix.PR_CAP_AMBIENT), plan.Int(unix.PR_CAP_AMBIENT_CLEAR_ALL), plan.Int(0), plan.Int(0), plan.Int(0))
	p.Call(Capabilities, unix.SYS_CAPSET, plan.Bytes(capabilityHeader()), plan.Bytes(make([]byte, 24)))
	dieWithParent(p)
	p.Call(Proc, unix.SYS_PRCTL, plan.Int(unix.PR_SET_DUMPABLE), plan.Int(0), plan.Int(0), plan.Int(0), plan.Int(0))
}

func dieWithParent(p *plan.Plan) {
	p.Call(ParentDeath, unix.SYS_PRCTL, plan.Int(unix.PR_SET_PDEATHSIG), plan.Int(unix.SIGKILL), plan.Int(0), plan.Int(0), plan.Int(0))
}

// capabilityHeader is struct __user_cap_header_struct: version 3, this process.
func capabilityHeader() []byte { return words32(unix.LINUX_CAPABILITY_VERSION_3, 0) }

// scopes keep the container from abstract unix sockets and processes of others that
// share its network namespace.
func scopes(p *plan.Plan) {
	attr := words64(0, 0, unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET|unix.LANDLOCK_SCOPE_SIGNAL)
	fd := p.Call(Scopes, unix.SYS_LANDLOCK_CREATE_RULESET, plan.Bytes(attr), plan.Int(len(attr)), plan.Int(0))
	p.Call(Scopes, unix.SYS_LANDLOCK_RESTRICT_SELF, plan.Answer(fd), plan.Int(0))
	p.Call(Scopes, unix.SYS_CLOSE, plan.Answer(fd))
}

func rlimits(p *plan.Plan, l sandbox.Limits, site Site) {
	set := func(resource int, value uint64) {
		p.Call(Rlimits, unix.SYS_PRLIMIT64, plan.Int(0), plan.Int(resource), plan.Bytes(words64(value, value)), plan.Int(0))
	}
	noFile := l.NoFile
	if noFile == 0 {
		noFile = 1024
	}
	set(unix.RLIMIT_NOFILE, min(noFile, site.MaxNoFile))
	// One byte, not 0: a core_pattern that pipes to a program of the host ignores 0 and
	// would hand it the container's memory; 1 is the value that it does respect, and no
	// core file is that small.
	set(unix.RLIMIT_CORE, 1)
	set(unix.RLIMIT_MEMLOCK, 64<<10)
	set(unix.RLIMIT_MSGQUEUE, 0)
	if l.FileBytes > 0 {
		set(unix.RLIMIT_FSIZE, l.FileBytes)
	}
	if site.MaxProcesses > 0 {
		set(unix.RLIMIT_NPROC, site.MaxProcesses)
	}
}

// Explain names the wall and the cause of a plan's failed op.
func Explain(p plan.Plan, spec sandbox.Spec, index int, errno unix.Errno) error {
	if index < 0 || index >= len(p) {
		return fmt.Errorf("init program told a failure at step %d of %d", index, len(p))
	}
	op := p[index]
	switch {
	case op.Wall == Program && op.Call == unix.SYS_CHDIR:
		return &sandbox.StartError{Path: folder(spec), Cause: errno}
	case op.Wall == Program:
		return &sandbox.StartError{Path: spec.Argv[0], Cause: errno}
	default:
		return &sandbox.WallError{Wall: op.Wall, Cause: fmt.Errorf("step %d %s: %w", index, op, errno)}
	}
}
