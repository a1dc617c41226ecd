//go:build linux && amd64

package process

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/hearth-run/hearth/sandbox/internal/cgroup"
)

// machine is what this machine and this process's rights allow; read once by Open.
type machine struct {
	// privileged: this process may make namespaces and change users. Otherwise
	// every container gets a user namespace, in which only its own id exists.
	privileged bool
	scopes     bool
	noProc     error // why no /proc can be mounted; nil: it can
	lastCap    int
	maxNoFile  uint64
	cgroups    *cgroup.Parent // nil: none can be made
	cgroupErr  error
}

func readMachine(cgroupName string) machine {
	m := machine{privileged: privileged(), scopes: landlockABI() >= 6, lastCap: lastCap()}
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) == nil {
		m.maxNoFile = limit.Max
	}
	layout, err := cgroup.ReadLayout()
	if err != nil {
		m.cgroupErr = err
		return m
	}
	m.cgroups, m.cgroupErr = cgroup.Find(layout, cgroupName)
	return m
}

// privileged is told by the effective capabilities: being root in a container of
// somebody else's is not enough.
func privileged() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if os.Geteuid() != 0 || unix.Capget(&header, &data[0]) != nil {
		return false
	}
	need := uint32(1<<unix.CAP_SYS_ADMIN | 1<<unix.CAP_SETUID | 1<<unix.CAP_SETGID | 1<<unix.CAP_SETPCAP)
	return data[0].Effective&need == need
}

// landlockABI is 0 where the kernel has no Landlock.
func landlockABI() int {
	const versionFlag = 1
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, versionFlag)
	if errno != 0 {
		return 0
	}
	return int(abi)
}

func lastCap() int {
	text, err := os.ReadFile("/proc/sys/kernel/cap_last_cap")
	if n, bad := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && bad == nil {
		return n
	}
	return unix.CAP_LAST_CAP
}

// memoryFile puts data into a file that only descriptors reach.
func memoryFile(name string, data []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make a file in memory: %w", err)
	}
	f := os.NewFile(uintptr(fd), name)
	if _, err := f.Write(data); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
