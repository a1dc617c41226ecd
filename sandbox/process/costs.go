//go:build linux && amd64

package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/hearth-run/hearth/sandbox"
	"github.com/hearth-run/hearth/sandbox/internal/plan"
	"github.com/hearth-run/hearth/sandbox/internal/walls"
)

// Cost is what containers take that have some of the walls.
type Cost struct {
	// Walls are those that this one has and the one before it has not.
	Walls string
	// Start is from Start to the execution of the program, End from there until it has
	// ended and its namespaces are down; sorted. The first Cost is of a process without any
	// wall and has no End.
	Start, End []time.Duration
}

// rungs are the walls in the order in which they are added, beginning with what no
// container can do without.
var rungs = []struct {
	name  string
	walls []string
}{
	{"namespaces, init", []string{"init", walls.Program, walls.Descriptors, walls.ParentDeath}},
	{"control group", []string{walls.Cgroup}},
	{"network", []string{walls.Network}},
	{"root", []string{walls.Mounts, walls.Root}},
	{"proc", []string{walls.Proc}},
	{"host name, rlimits", []string{walls.Host, walls.Rlimits}},
	{"user, capabilities", []string{walls.Capabilities, walls.UserIDs}},
	{"no-new-privileges, landlock", []string{walls.NoNewPrivs, walls.Scopes}},
	{"seccomp", []string{walls.Seccomp}},
}

// Costs measures what each wall adds to a container of /usr/bin/true, in rounds in which
// every set of walls has its turn. Like Probe it uses a temporary folder of its own. On a
// busy machine a low percentile says more than the median. Errors: those of a container.
func Costs(ctx context.Context, rounds int) (costs []Cost, err error) {
	root, err := os.MkdirTemp("", "hearth-costs-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(root)) }()
	drivers, err := ladder(root)
	defer func() {
		for _, d := range drivers {
			err = errors.Join(err, d.Close())
		}
	}()
	if err != nil {
		return nil, err
	}
	costs = make([]Cost, 1+len(rungs))
	costs[0].Walls = "a bare process, start and end"
	for i, r := range rungs {
		costs[1+i].Walls = r.name
	}
	for range rounds {
		if err := climb(ctx, drivers, costs); err != nil {
			return nil, err
		}
	}
	for _, c := range costs {
		slices.Sort(c.Start)
		slices.Sort(c.End)
	}
	return costs, nil
}

// ladder opens a driver for each rung. On error it returns those that are open.
func ladder(root string) (drivers []*Driver, err error) {
	var missing []string
	for _, r := range rungs {
		missing = append(missing, r.walls...)
	}
	for i, r := range rungs {
		missing = missing[len(r.walls):]
		config := Default()
		config.Root = filepath.Join(root, fmt.Sprint(i))
		d, err := openWithout(config, slices.Clone(missing))
		if err != nil {
			return drivers, err
		}
		drivers = append(drivers, d)
	}
	return drivers, nil
}

// openWithout opens a driver whose containers lack some walls.
func openWithout(config Config, missing []string) (*Driver, error) {
	d, err := Open(config)
	if err != nil {
		return nil, err
	}
	d.reshape = func(p plan.Plan) plan.Plan {
		return p.Keep(func(op plan.Op) bool { return !slices.Contains(missing, op.Wall) })
	}
	return d, nil
}

// climb is one round.
func climb(ctx context.Context, drivers []*Driver, costs []Cost) error {
	began := time.Now()
	if err := exec.CommandContext(ctx, "/usr/bin/true").Run(); err != nil {
		return err
	}
	costs[0].Start = append(costs[0].Start, time.Since(began))
	for i, d := range drivers {
		c := &costs[1+i]
		if err := c.add(ctx, d); err != nil {
			return fmt.Errorf("walls up to %s: %w", c.Walls, err)
		}
	}
	return nil
}

// add takes a container through its life.
func (c *Cost) add(ctx context.Context, d *Driver) (err error) {
	made, err := d.Create(ctx, sandbox.Spec{
		ID: fmt.Sprint("cost", len(c.Start)), Argv: []string{"/usr/bin/true"}, Binds: sandbox.SystemBinds(),
		Scratch: []sandbox.Scratch{{Target: "/tmp", Bytes: 1 << 20}, {Target: "/dev/shm", Bytes: 1 << 20}},
		Limits:  sandbox.Limits{Memory: 64 << 20, Pids: 20},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, made.Destroy()) }()
	began := time.Now()
	if err := made.Start(ctx); err != nil {
		return err
	}
	started := time.Now()
	exit, err := made.Wait(ctx)
	if err == nil && exit != (sandbox.Exit{}) {
		err = fmt.Errorf("/usr/bin/true ended with %+v", exit)
	}
	c.Start, c.End = append(c.Start, started.Sub(began)), append(c.End, time.Since(started))
	return err
}
