//go:build linux && amd64

package seccomp

import (
	"encoding/binary"
	"testing"

	"golang.org/x/sys/unix"
)

// call is what the kernel shows a filter.
type call struct {
	number, arch uint32
	args         [2]uint64
}

func (c call) word(at uint32) uint32 {
	data := make([]byte, 64)
	binary.LittleEndian.PutUint32(data[0:], c.number)
	binary.LittleEndian.PutUint32(data[4:], c.arch)
	binary.LittleEndian.PutUint64(data[16:], c.args[0])
	binary.LittleEndian.PutUint64(data[24:], c.args[1])
	return binary.LittleEndian.Uint32(data[at:])
}

// run interprets the few instructions that the assembler knows, as the kernel would.
func run(t *testing.T, filter []byte, c call) uint32 {
	t.Helper()
	var accumulator uint32
	for at := 0; at < len(filter)/8; at++ {
		code := filter[at*8:]
		op, yes, no := binary.LittleEndian.Uint16(code), int(code[2]), int(code[3])
		k := binary.LittleEndian.Uint32(code[4:])
		branch := func(truth bool) {
			if truth {
				at += yes
			} else {
				at += no
			}
		}
		switch op {
		case load:
			accumulator = c.word(k)
		case jump:
			at += int(k)
		case jumpEqual:
			branch(accumulator == k)
		case jumpAtLeast:
			branch(accumulator >= k)
		case jumpAnyBit:
			branch(accumulator&k != 0)
		case answer:
			return k
		default:
			t.Fatalf("instruction %d: unknown code %#x", at, op)
		}
	}
	t.Fatal("the program ended without an answer")
	return 0
}

const allow = unix.SECCOMP_RET_ALLOW

// TestEveryNumber: each listed call gets its verdict and every other is allowed, up to
// the newest that was judged; none lies above it.
func TestEveryNumber(t *testing.T) {
	filter := Filter(Options{})
	table := calls()
	for n := uint32(0); n < 2000; n++ {
		want := uint32(allow)
		switch v := table[n]; {
		case n > newestJudged, v == absent:
			want = refuse(unix.ENOSYS)
		case v == deny, v == personality:
			want = refuse(unix.EPERM)
		case v == socketFamily:
			want = refuse(unix.EAFNOSUPPORT)
		}
		// An argument that every judged call has to refuse, and ioctl and clone not.
		c := call{n, auditArch, [2]uint64{99, 0}}
		if got := run(t, filter, c); got != want {
			t.Errorf("call %d: %#x, want %#x", n, got, want)
		}
	}
}

func TestArguments(t *testing.T) {
	rows := []struct {
		name string
		call call
		want uint32
	}{
		{"i386 getpid", call{20, 0x40000003, [2]uint64{}}, unix.SECCOMP_RET_KILL_PROCESS},
		{"x32 getpid", call{0x40000000 + 39, auditArch, [2]uint64{}}, refuse(unix.ENOSYS)},
		{"fork by clone", call{unix.SYS_CLONE, auditArch, [2]uint64{17}}, allow},
		{"thread", call{unix.SYS_CLONE, auditArch, [2]uint64{0x3d0f00}}, allow},
		{"clone newuser", call{unix.SYS_CLONE, auditArch, [2]uint64{unix.CLONE_NEWUSER | 17}}, refuse(unix.EPERM)},
		{"clone newnet", call{unix.SYS_CLONE, auditArch, [2]uint64{unix.CLONE_NEWNET}}, refuse(unix.EPERM)},
		{"clone newpid", call{unix.SYS_CLONE, auditArch, [2]uint64{unix.CLONE_NEWPID}}, refuse(unix.EPERM)},
		{"unix socket", call{unix.SYS_SOCKET, auditArch, [2]uint64{unix.AF_UNIX}}, allow},
		{"inet6 socket", call{unix.SYS_SOCKET, auditArch, [2]uint64{unix.AF_INET6}}, allow},
		{"netlink socket", call{unix.SYS_SOCKET, auditArch, [2]uint64{unix.AF_NETLINK}}, refuse(unix.EAFNOSUPPORT)},
		{"vsock", call{unix.SYS_SOCKET, auditArch, [2]uint64{unix.AF_VSOCK}}, refuse(unix.EAFNOSUPPORT)},
		{"personality, asked", call{unix.SYS_PERSONALITY, auditArch, [2]uint64{0xffffffff}}, allow},
		{"personality, default", call{unix.SYS_PERSONALITY, auditArch, [2]uint64{0}}, allow},
		{"terminal injection", call{unix.SYS_IOCTL, auditArch, [2]uint64{0, unix.TIOCSTI}}, refuse(unix.EPERM)},
		// The kernel looks at the lower half of the request alone, and so does the filter.
		{"terminal injection, high bits", call{unix.SYS_IOCTL, auditArch, [2]uint64{0, 1<<32 | unix.TIOCSTI}}, refuse(unix.EPERM)},
		{"console paste", call{unix.SYS_IOCTL, auditArch, [2]uint64{0, unix.TIOCLINUX}}, refuse(unix.EPERM)},
		{"window size", call{unix.SYS_IOCTL, auditArch, [2]uint64{0, unix.TIOCGWINSZ}}, allow},
		{"execve", call{unix.SYS_EXECVE, auditArch, [2]uint64{}}, allow},
	}
	filter := Filter(Options{})
	for _, r := range rows {
		if got := run(t, filter, r.call); got != r.want {
			t.Errorf("%s: %#x, want %#x", r.name, got, r.want)
		}
	}
	if got := run(t, Filter(Options{Netlink: true}), call{unix.SYS_SOCKET, auditArch, [2]uint64{unix.AF_NETLINK}}); got != allow {
		t.Errorf("netlink where it is allowed: %#x", got)
	}
}

// TestDepth: the kernel walks the filter for every number when it is installed, and
// for some calls each time; bisection keeps the way short.
func TestDepth(t *testing.T) {
	if n := len(Filter(Options{Netlink: true})) / 8; n > 256 {
		t.Errorf("%d instructions", n)
	}
}
