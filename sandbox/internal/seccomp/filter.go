//go:build linux && amd64

// Package seccomp owns the list of system calls that a container may not make, and
// the BPF program that refuses them.
package seccomp

import (
	"encoding/binary"
	"math"
	"slices"

	"golang.org/x/sys/unix"
)

// verdict is what happens to one system call.
type verdict int

const (
	permit       verdict = iota
	deny                 // EPERM
	absent               // ENOSYS, so that libraries take their older way
	cloneFlags           // EPERM with a namespace flag
	personality          // EPERM but for the two harmless values
	ioctlRequest         // EPERM for terminal injection
	socketFamily         // EAFNOSUPPORT but for a few families
)

// Options change the list.
type Options struct {
	// Netlink allows AF_NETLINK sockets (name resolution on a real network asks it
	// for addresses).
	Netlink bool
}

// namespaceFlags are all CLONE_NEW* but CLONE_NEWTIME, whose bit belongs to the exit
// signal in clone (it can only be asked of unshare and clone3).
const namespaceFlags = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS |
	unix.CLONE_NEWIPC | unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

// Offsets in struct seccomp_data.
const (
	atCall = 0
	atArch = 4
	atArg0 = 16
	atArg1 = 24
)

// Filter is the BPF program, 8 bytes an instruction. Numbers are found by bisection of
// the ranges that are judged alike: the kernel translates the program and walks every
// possible number when a filter is installed, so that each start pays for its length.
func Filter(o Options) []byte {
	a := &assembler{options: o}
	a.emit(load, 0, 0, atArch)
	a.emit(jumpEqual, 1, 0, auditArch)
	a.emit(answer, 0, 0, unix.SECCOMP_RET_KILL_PROCESS)
	a.emit(load, 0, 0, atCall)
	a.code = append(a.code, a.bisect(ranges(calls()))...)
	return a.code
}

// judged is a range of numbers from first to the next one's first.
type judged struct {
	first uint32
	as    verdict
}

// ranges cover every number. Above the newest that was judged lie the x32 convention's
// numbers, and calls that are younger than this list: they do not exist here.
func ranges(table map[uint32]verdict) []judged {
	all := []judged{{0, table[0]}}
	for n := uint32(1); n <= newestJudged; n++ {
		if as := table[n]; as != all[len(all)-1].as {
			all = append(all, judged{n, as})
		}
	}
	return append(all, judged{newestJudged + 1, absent})
}

func refuse(e unix.Errno) uint32 { return unix.SECCOMP_RET_ERRNO | uint32(e) }

const (
	load        = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	jumpEqual   = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	jumpAtLeast = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
	jumpAnyBit  = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
	jump        = unix.BPF_JMP | unix.BPF_JA
	answer      = unix.BPF_RET | unix.BPF_K
)

type assembler struct {
	options Options
	code    []byte
}

func (a *assembler) emit(op uint16, yes, no uint8, k uint32) {
	a.code = binary.LittleEndian.AppendUint16(a.code, op)
	a.code = append(a.code, yes, no)
	a.code = binary.LittleEndian.AppendUint32(a.code, k)
}

// bisect is a search among ranges; every path ends in an answer.
func (a *assembler) bisect(among []judged) []byte {
	part := &assembler{options: a.options}
	if len(among) == 1 {
		part.verdict(among[0].as)
		return part.code
	}
	middle := len(among) / 2
	below, above := a.bisect(among[:middle]), a.bisect(among[middle:])
	if n := len(below) / 8; n <= math.MaxUint8 {
		part.emit(jumpAtLeast, uint8(n), 0, among[middle].first)
	} else {
		part.emit(jumpAtLeast, 0, 1, among[middle].first)
		part.emit(jump, 0, 0, uint32(n))
	}
	return slices.Concat(part.code, below, above)
}

// verdict emits the judgement of one call, its number known.
func (a *assembler) verdict(v verdict) {
	switch v {
	case permit:
		a.emit(answer, 0, 0, unix.SECCOMP_RET_ALLOW)
	case deny:
		a.emit(answer, 0, 0, refuse(unix.EPERM))
	case absent:
		a.emit(answer, 0, 0, refuse(unix.ENOSYS))
	case cloneFlags:
		a.emit(load, 0, 0, atArg0)
		a.emit(jumpAnyBit, 0, 1, namespaceFlags)
		a.emit(answer, 0, 0, refuse(unix.EPERM))
		a.emit(answer, 0, 0, unix.SECCOMP_RET_ALLOW)
	case personality:
		a.oneOf(atArg0, refuse(unix.EPERM), 0, 0xffffffff)
	case ioctlRequest:
		a.noneOf(atArg1, refuse(unix.EPERM), unix.TIOCSTI, unix.TIOCLINUX)
	case socketFamily:
		families := []uint32{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6}
		if a.options.Netlink {
			families = append(families, unix.AF_NETLINK)
		}
		a.oneOf(atArg0, refuse(unix.EAFNOSUPPORT), families...)
	}
}

func (a *assembler) oneOf(at uint32, otherwise uint32, values ...uint32) {
	a.emit(load, 0, 0, at)
	for _, v := range values {
		a.emit(jumpEqual, 0, 1, v)
		a.emit(answer, 0, 0, unix.SECCOMP_RET_ALLOW)
	}
	a.emit(answer, 0, 0, otherwise)
}

func (a *assembler) noneOf(at uint32, verdict uint32, values ...uint32) {
	a.emit(load, 0, 0, at)
	for _, v := range values {
		a.emit(jumpEqual, 0, 1, v)
		a.emit(answer, 0, 0, verdict)
	}
	a.emit(answer, 0, 0, unix.SECCOMP_RET_ALLOW)
}
