//go:build linux

package sandboxtest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/hearth-run/hearth/sandbox"
)

// breakoutTests: a program inside tries to see or touch what is not its own.
var breakoutTests = map[string]func(*testing.T, *suite){
	"HostFiles":             hostFiles,
	"HostProcesses":         hostProcesses,
	"Identity":              identity,
	"ForbiddenCalls":        forbiddenCalls,
	"Network":               network,
	"HostNetwork":           hostNetwork,
	"UsersDiffer":           usersDiffer,
	"AbstractSockets":       abstractSockets,
	"OtherContainersMemory": otherContainersMemory,
	"Descriptors":           descriptors,
}

func hostFiles(t *testing.T, s *suite) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("s3cret"), 0o644); err != nil {
		t.Fatal(err)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		home = "/root"
	}
	p, err := findPython()
	if err != nil {
		t.Fatal(err)
	}
	visible := slices.Concat(p.topFolders(), []string{"dev", "etc", "proc", "tmp"})
	held(t, s, s.open(t), python(t, "files", secret, home, strings.Join(visible, ",")))
}

func hostProcesses(t *testing.T, s *suite) {
	victim := exec.Command("sleep", "1000")
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = victim.Process.Kill(); _ = victim.Wait() }()
	held(t, s, s.open(t), python(t, "processes", strconv.Itoa(victim.Process.Pid)))
	if err := victim.Process.Signal(unix.Signal(0)); err != nil {
		t.Errorf("the host's process is gone: %v", err)
	}
}

func identity(t *testing.T, s *suite) {
	user := "mapped-user"
	if s.OwnUser {
		user = "own-user"
	}
	held(t, s, s.open(t), python(t, "identity", user))
}

func forbiddenCalls(t *testing.T, s *suite) { held(t, s, s.open(t), python(t, "calls")) }

func network(t *testing.T, s *suite) {
	held(t, s, s.open(t), python(t, "network", listeners(t)...))
}

// hostNetwork: the host's network is there where it is asked for, its abstract
// sockets are not.
func hostNetwork(t *testing.T, s *suite) {
	spec := python(t, "hostnetwork", listeners(t)...)
	spec.Network = sandbox.NetworkHost
	held(t, s, s.open(t), spec)
}

// listeners are a TCP port and the name of an abstract unix socket of the host.
func listeners(t *testing.T) []string {
	t.Helper()
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tcp.Close() })
	name := fmt.Sprintf("hearth-sandboxtest-%d", os.Getpid())
	abstract, err := net.Listen("unix", "@"+name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = abstract.Close() })
	return []string{strconv.Itoa(tcp.Addr().(*net.TCPAddr).Port), name}
}

// usersDiffer: two containers that live at one time share no user id, so that the
// kernel's counts by user are not shared either.
func usersDiffer(t *testing.T, s *suite) {
	d := s.open(t)
	ids := map[string]bool{}
	for range 3 {
		ids[start(t, d, shell("id -u; id -g; read x")).line(t)] = true
	}
	if len(ids) != 3 || ids["0"] {
		t.Errorf("user ids %v", ids)
	}
}

// abstractSockets: containers may share a network namespace, in which such names
// live, and still do not meet.
func abstractSockets(t *testing.T, s *suite) {
	d := s.open(t)
	listener := start(t, d, python(t, "listen", "meeting-point"))
	if line := listener.line(t); line != "ready" {
		t.Fatal(line, listener.rest(t))
	}
	held(t, s, d, python(t, "abstract", "meeting-point"))
}

func otherContainersMemory(t *testing.T, s *suite) {
	d := s.open(t)
	maker := start(t, d, python(t, "sysv", "make"))
	if line := maker.line(t); line != "ready" {
		t.Fatal(line, maker.rest(t))
	}
	held(t, s, d, python(t, "sysv", "find"))
}

// descriptors: this process holds some that an exec would inherit, writable, and
// gives one on purpose.
func descriptors(t *testing.T, s *suite) {
	precious := filepath.Join(t.TempDir(), "precious")
	f, err := os.OpenFile(precious, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	for _, at := range []int{77, 300} {
		leaked, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD, at) // without close-on-exec
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = unix.Close(leaked) }()
	}
	given, _ := pipe(t)
	spec := python(t, "descriptors", "4", "512")
	spec.Files = []*os.File{given}
	held(t, s, s.open(t), spec)
	if text, err := os.ReadFile(precious); err != nil || len(text) != 0 {
		t.Errorf("the host's file holds %q (%v)", text, err)
	}
}
