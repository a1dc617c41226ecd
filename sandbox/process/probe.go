//go:build linux && amd64

package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/hearth-run/hearth/sandbox"
	"github.com/hearth-run/hearth/sandbox/internal/plan"
	"github.com/hearth-run/hearth/sandbox/internal/walls"
)

// attempt builds a few of the walls around nothing, to see whether they can be built.
type attempt struct {
	wall     string
	required bool
	how      string   // told where it stands
	steps    []string // walls whose steps are taken
	flags    uintptr  // clone flags; 0 is a container's
	limits   sandbox.Limits
}

var procAttempt = attempt{wall: walls.Proc, required: true, how: "a /proc of its own processes, read-only",
	steps: []string{walls.Mounts, walls.Root, walls.Proc}}

// attempts are told in this order.
var attempts = []attempt{
	{wall: "pid-namespace", required: true, how: "sees and signals only its own processes", flags: unix.CLONE_NEWPID},
	{wall: "mount-namespace", required: true, how: "its own mount table", flags: unix.CLONE_NEWNS},
	{wall: "ipc-namespace", required: true, how: "its own System V and message-queue names", flags: unix.CLONE_NEWIPC},
	{wall: "uts-namespace", required: true, how: "its own host name", flags: unix.CLONE_NEWUTS},
	{wall: walls.Network, required: true, how: "no network device that is up", steps: []string{walls.Network}},
	{wall: walls.Root, required: true, how: "pivot_root into read-only binds and scratch", steps: []string{walls.Mounts, walls.Root}},
	procAttempt,
	{wall: walls.UserIDs, required: true, how: "a user without rights", steps: []string{walls.Capabilities, walls.UserIDs}},
	{wall: walls.Capabilities, required: true, how: "none in any set, the bounding set included", steps: []string{walls.Capabilities}},
	{wall: walls.NoNewPrivs, required: true, how: "set-user-id programs give nothing", steps: []string{walls.NoNewPrivs}},
	{wall: walls.Seccomp, required: true, how: "a list of refused system calls", steps: []string{walls.NoNewPrivs, walls.Seccomp}},
	{wall: walls.Rlimits, required: true, how: "descriptors, core files, file sizes", steps: []string{walls.Rlimits}},
	{wall: "memory-limit", required: true, how: "control group", steps: []string{walls.Cgroup}, limits: sandbox.Limits{Memory: 64 << 20}},
	{wall: "pids-limit", required: true, how: "control group", steps: []string{walls.Cgroup}, limits: sandbox.Limits{Pids: 16}},
	{wall: "cpu-limit", how: "control group", steps: []string{walls.Cgroup}, limits: sandbox.Limits{MilliCPU: 1000}},
	{wall: walls.Scopes, how: "no abstract sockets or signals across containers", steps: []string{walls.NoNewPrivs, walls.Scopes}},
}

// Probe says which walls this machine lets this process build, each by building it
// around nothing and throwing it away. It uses a temporary folder of its own, beside
// whatever drivers live.
func Probe(ctx context.Context) ([]sandbox.Wall, error) {
	root, err := os.MkdirTemp("", "hearth-probe-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(root) }()
	config := Default()
	if config.Root, err = filepath.EvalSymlinks(root); err != nil {
		return nil, err
	}
	d, err := Open(config)
	if err != nil {
		return unbuilt(err), nil
	}
	found := make([]sandbox.Wall, 0, len(attempts))
	for i := range attempts {
		found = append(found, d.probe(ctx, &attempts[i]))
	}
	return found, d.Close()
}

// unbuilt is the answer where not even a driver can be opened.
func unbuilt(cause error) []sandbox.Wall {
	var all []sandbox.Wall
	for _, a := range attempts {
		all = append(all, sandbox.Wall{Name: a.wall, Required: a.required, Detail: cause.Error()})
	}
	return all
}

func (d *Driver) probe(ctx context.Context, a *attempt) sandbox.Wall {
	w := sandbox.Wall{Name: a.wall, Required: a.required, Stands: true, Detail: a.how}
	if err := d.try(ctx, a); err != nil {
		w.Stands, w.Detail = false, detail(a.wall, err)+d.hint(err)
		return w
	}
	if a.wall == walls.Proc && d.machine.noProc != nil {
		w.Detail = "none at all: mounting one is refused (" + d.machine.noProc.Error() + "); programs that read it will miss it"
	}
	if !d.machine.privileged && (a.wall == walls.UserIDs || a.flags != 0) {
		w.Detail += ", in a user namespace"
	}
	return w
}

// detail is why a wall does not stand, in one line; of several control groups that
// could not be made, its own.
func detail(wall string, err error) string {
	lines := strings.Split(err.Error(), "\n")
	if controller, isLimit := strings.CutSuffix(wall, "-limit"); isLimit {
		own := slices.DeleteFunc(slices.Clone(lines), func(l string) bool {
			return !strings.HasPrefix(l, "cgroup controller "+controller+":") && !strings.HasPrefix(l, "cgroup controller "+controller+" ")
		})
		if len(own) > 0 {
			lines = own
		}
	}
	return strings.Join(lines, "; ")
}

// try builds the walls of one attempt.
func (d *Driver) try(ctx context.Context, a *attempt) error {
	if err := d.lacks(a); err != nil {
		return err
	}
	c, err := d.Create(ctx, sandbox.Spec{ID: "probe", Argv: []string{"/nothing"}, Limits: a.limits})
	if err != nil {
		return err
	}
	own := c.(*Container)
	own.mu.Lock()
	own.phase = failed // whatever comes, it is not started again
	l := &launch{container: own, attempt: a}
	err = l.run(ctx)
	l.closeChildSide()
	own.mu.Unlock()
	return errors.Join(err, c.Destroy())
}

// lacks names what is known to be missing without an attempt: a step that is not in
// the plan would count as taken.
func (d *Driver) lacks(a *attempt) error {
	has := d.machine.cgroups.Has()
	missing := a.limits.Memory > 0 && !has.Memory || a.limits.Pids > 0 && !has.Pids || a.limits.MilliCPU > 0 && !has.CPU
	switch {
	case missing && d.machine.cgroupErr != nil:
		return d.machine.cgroupErr
	case missing:
		return errors.New("no control group for it")
	case a.wall == walls.Scopes && !d.machine.scopes:
		return errors.New("the kernel has no Landlock with scopes (Linux 6.12); each container gets a network namespace of its own instead, which costs about 10 ms")
	default:
		return nil
	}
}

// reshape keeps the attempt's steps, tells that they were taken, and exits.
func (a *attempt) reshape(p plan.Plan) plan.Plan {
	steps := append(slices.Clone(a.steps), walls.ParentDeath)
	kept := p.Keep(func(op plan.Op) bool { return slices.Contains(steps, op.Wall) })
	kept.Call(walls.Program, unix.SYS_EXIT_GROUP, plan.Int(0))
	return kept
}

// hint says what a refusal usually comes from.
func (d *Driver) hint(err error) string {
	if d.machine.privileged || !(errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.ENOSPC)) {
		return ""
	}
	var off []string
	for file, bad := range map[string]string{
		"/proc/sys/kernel/unprivileged_userns_clone":             "0",
		"/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1",
		"/proc/sys/user/max_user_namespaces":                     "0",
	} {
		text, readErr := os.ReadFile(file)
		if readErr == nil && strings.TrimSpace(string(text)) == bad {
			off = append(off, fmt.Sprintf("%s is %s", file, bad))
		}
	}
	if len(off) == 0 {
		return "; run as root, or with a delegated control group"
	}
	return "; " + strings.Join(off, ", ") + ": change it, or run as root"
}
