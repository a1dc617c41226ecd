//go:build linux && amd64

package walls

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/hearth-run/hearth/sandbox"
	"github.com/hearth-run/hearth/sandbox/internal/plan"
)

var update = flag.Bool("update", false, "write testdata anew")

var names = map[int]string{
	unix.SYS_PRCTL: "prctl", unix.SYS_UMASK: "umask", unix.SYS_WRITE: "write", unix.SYS_SETNS: "setns", unix.SYS_MOUNT: "mount",
	unix.SYS_CHDIR: "chdir", unix.SYS_MKDIR: "mkdir", unix.SYS_MKNOD: "mknod", unix.SYS_SYMLINK: "symlink", unix.SYS_OPEN: "open",
	unix.SYS_CLOSE: "close", unix.SYS_MOUNT_SETATTR: "mount_setattr", unix.SYS_PIVOT_ROOT: "pivot_root", unix.SYS_UMOUNT2: "umount2",
	unix.SYS_SETHOSTNAME: "sethostname", unix.SYS_PRLIMIT64: "prlimit64", unix.SYS_SETGROUPS: "setgroups", unix.SYS_SETRESGID: "setresgid",
	unix.SYS_SETRESUID: "setresuid", unix.SYS_CAPSET: "capset", unix.SYS_LANDLOCK_CREATE_RULESET: "landlock_create_ruleset",
	unix.SYS_LANDLOCK_RESTRICT_SELF: "landlock_restrict_self", unix.SYS_SECCOMP: "seccomp", unix.SYS_CLOSE_RANGE: "close_range",
	unix.SYS_SETSID: "setsid", unix.SYS_EXECVE: "execve", unix.SYS_UNSHARE: "unshare", unix.SYS_DUP3: "dup3",
}

// TestOrder compares whole plans with the stories in testdata: what is called, for
// which wall, in which order. go test -update writes them anew, to be read in review.
func TestOrder(t *testing.T) {
	host := t.TempDir()
	for _, name := range []string{"usr", "pkg"} {
		if err := os.Mkdir(filepath.Join(host, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("usr/bin", filepath.Join(host, "bin")); err != nil {
		t.Fatal(err)
	}
	spec := sandbox.Spec{
		ID: "c1", Argv: []string{"/usr/bin/true", "x"}, Env: []string{"A=1"}, Dir: "/tmp",
		Binds: []sandbox.Bind{{Source: host + "/usr", Target: "/usr"}, {Source: host + "/bin", Target: "/bin"},
			{Source: host + "/pkg", Target: "/data/packages", Writable: true}, {Source: host + "/none", Optional: true}},
		Scratch: []sandbox.Scratch{{Target: "/tmp", Bytes: 1 << 20}, {Target: "/dev/shm", Bytes: 4096}},
		Limits:  sandbox.Limits{FileBytes: 9},
	}
	site := Site{MountPoint: "/state/root", User: sandbox.User{UID: 5000, GID: 5000}, Network: 6, Cgroups: []int{7, 8},
		Failures: 5, FirstControl: 4, Scopes: true, LastCap: 1, MaxNoFile: 512}
	forked := site
	forked.Unshare, forked.Scopes = unix.CLONE_NEWNS|unix.CLONE_NEWNET, false
	forked.Network, forked.Place = -1, 10
	mapped := site
	mapped.Mapped, mapped.Network, mapped.Cgroups, mapped.MaxProcesses = true, -1, nil, 20
	for file, site := range map[string]Site{"privileged.plan": site, "forked.plan": forked, "mapped.plan": mapped} {
		p, err := Build(spec, site)
		if err != nil {
			t.Fatal(err)
		}
		compare(t, filepath.Join("testdata", file), strings.ReplaceAll(story(t, p), host, "HOST"))
	}
}

func story(t *testing.T, p plan.Plan) string {
	t.Helper()
	var b strings.Builder
	for _, op := range p {
		name := names[op.Call]
		if op.Fork {
			name = "fork: pid 1 reaps from here, what follows is the program"
		}
		if name == "" {
			t.Errorf("%v has no name in this test", op)
		}
		args, _ := strings.CutPrefix(op.String(), fmt.Sprintf("call %d", op.Call))
		fmt.Fprintf(&b, "%-20s %s%s\n", op.Wall, name, args)
	}
	return b.String()
}

func compare(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; got\n%s", file, got)
	}
}

func TestBuildRefuses(t *testing.T) {
	spec := sandbox.Spec{ID: "a", Argv: []string{"/x"}, Binds: []sandbox.Bind{{Source: "/nonexistent"}}}
	if _, err := Build(spec, Site{Network: -1}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

// TestExplain: a failed step is told as its wall, as the program, or as nonsense.
func TestExplain(t *testing.T) {
	spec := sandbox.Spec{ID: "a", Argv: []string{"/x"}, Dir: "/d"}
	p, err := Build(spec, Site{Network: 3, Failures: 5})
	if err != nil {
		t.Fatal(err)
	}
	find := func(call int) int {
		for i, op := range p {
			if op.Call == call && op.Wall != Root {
				return i
			}
		}
		t.Fatal("no such call", call)
		return 0
	}
	for call, want := range map[int]string{
		unix.SYS_SETNS:   "build wall network-namespace: step",
		unix.SYS_SECCOMP: "build wall seccomp: step",
		unix.SYS_EXECVE:  "execute /x in the container: no such file",
		unix.SYS_CHDIR:   "execute /d in the container: no such file",
	} {
		if err := Explain(p, spec, find(call), unix.ENOENT); !strings.HasPrefix(err.Error(), want) || !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if err := Explain(p, spec, 1<<40, unix.ENOENT); err == nil {
		t.Error("a step that is not there")
	}
}
