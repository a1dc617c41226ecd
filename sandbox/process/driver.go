//go:build linux && amd64

package process

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/hearth-run/hearth/sandbox"
	"github.com/hearth-run/hearth/sandbox/internal/initcode"
	"github.com/hearth-run/hearth/sandbox/internal/plan"
)

// Driver makes containers out of processes of this machine.
type Driver struct {
	config  Config
	machine machine
	state   *state
	null    *os.File
	network *os.File // the empty network namespace; nil without privileges
	// hostNetwork is this process's, which templates are not in; nil without privileges.
	hostNetwork *os.File
	starter     *starter
	guard       *guard                    // nil where there is nothing to guard
	reshape     func(plan.Plan) plan.Plan // tests leave walls out by it; nil otherwise
	watches     sync.WaitGroup            // the goroutines of containers' memory watches

	mu         sync.Mutex // guards what follows
	closed     bool
	containers map[string]*Container
	templates  map[string]*Template
	users      users
}

var _ sandbox.Driver = (*Driver)(nil)

// Open takes the root folder, sweeps what an earlier life left in it, and finds out
// what the machine allows. Errors: Config.Validate's, *InUseError, and a
// *sandbox.WallError where not even namespaces can be made.
func Open(config Config) (*Driver, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	state, err := takeState(config.Root)
	if err != nil {
		return nil, err
	}
	d := &Driver{config: config, state: state, containers: map[string]*Container{}, templates: map[string]*Template{},
		users: users{first: config.FirstUID, count: config.Users}}
	if err := d.open(); err != nil {
		return nil, errors.Join(err, d.release())
	}
	return d, nil
}

func (d *Driver) open() error {
	swept, err := d.state.sweep(d.config.Patience)
	if err != nil {
		return fmt.Errorf("sweep %s: %w", d.config.Root, err)
	}
	if swept.Any() {
		d.config.Log.Info("swept what an earlier life left", "processes", swept.Processes, "cgroups", swept.Cgroups, "mounts", swept.Mounts)
	}
	d.machine = readMachine(cgroupName(d.config.Root))
	if d.machine.cgroupErr != nil {
		d.config.Log.Warn("not every limit can be held", slog.Any("cause", d.machine.cgroupErr))
	}
	if err := d.state.remember(d.machine.cgroups); err != nil {
		return err
	}
	if d.guard, err = d.state.startGuard(d.machine.cgroups, d.config.Transient); err != nil {
		return err
	}
	code, err := initcode.ELF()
	if err != nil {
		return err
	}
	if err := d.state.writeInit(code); err != nil {
		return err
	}
	if d.null, err = os.OpenFile(os.DevNull, os.O_RDWR, 0); err != nil {
		return err
	}
	if d.machine.privileged {
		// Before the other one is made: its maker may be the thread that /proc/self names.
		if d.hostNetwork, err = os.Open("/proc/thread-self/ns/net"); err != nil {
			return err
		}
		if d.network, err = emptyNetwork(); err != nil {
			return &sandbox.WallError{Wall: "network-namespace", Cause: err}
		}
	}
	d.starter = newStarter()
	return d.settle()
}

// settle finds out by an attempt what cannot be known otherwise.
func (d *Driver) settle() error {
	err := d.try(context.Background(), &procAttempt)
	var wall *sandbox.WallError
	if errors.As(err, &wall) && wall.Wall == procAttempt.wall {
		d.machine.noProc = wall.Cause
		d.config.Log.Warn("containers have no /proc", slog.Any("cause", wall.Cause))
		return nil
	}
	// Another wall's failure is told by the first Start, and by Probe; what the attempt
	// could not remove would be a fault of the driver itself.
	if errors.Is(err, sandbox.ErrNotEmpty) {
		return err
	}
	return nil
}

// cgroupName is the same in every life of a driver on this root, and no other's.
func cgroupName(root string) string {
	sum := sha256.Sum256([]byte(root))
	return "hearth-" + hex.EncodeToString(sum[:6])
}

// Create prepares a container; see sandbox.Driver.
func (d *Driver) Create(ctx context.Context, spec sandbox.Spec) (sandbox.Container, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	c, err := d.admit(copySpec(spec))
	if err != nil {
		return nil, fmt.Errorf("create container %s: %w", spec.ID, err)
	}
	if err := c.prepare(); err != nil {
		return nil, errors.Join(fmt.Errorf("create container %s: %w", spec.ID, err), c.Destroy())
	}
	return c, nil
}

func copySpec(s sandbox.Spec) sandbox.Spec {
	s.Argv, s.Env, s.Files = slices.Clone(s.Argv), slices.Clone(s.Env), slices.Clone(s.Files)
	s.Binds, s.Scratch = slices.Clone(s.Binds), slices.Clone(s.Scratch)
	return s
}

// admit gives the container its name and its user.
func (d *Driver) admit(spec sandbox.Spec) (*Container, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, sandbox.ErrClosed
	}
	if d.containers[spec.ID] != nil || d.templates[spec.ID] != nil {
		return nil, sandbox.ErrExists
	}
	c := newContainer(d, spec)
	if spec.User == (sandbox.User{}) {
		uid, err := d.users.take()
		if err != nil {
			return nil, err
		}
		c.lent, c.spec.User = true, sandbox.User{UID: uid, GID: uid}
	}
	d.containers[spec.ID] = c
	return c, nil
}

// forget ends the container's claim to its name and user.
func (d *Driver) forget(c *Container) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.containers[c.spec.ID] != c {
		return
	}
	delete(d.containers, c.spec.ID)
	if c.lent {
		d.users.give(c.spec.User.UID)
	}
}

// Close destroys every container and releases the driver; see sandbox.Driver.
func (d *Driver) Close() error {
	d.mu.Lock()
	d.closed = true
	var ends []func() error
	for _, c := range d.containers {
		ends = append(ends, c.Destroy)
	}
	for _, t := range d.templates {
		ends = append(ends, t.Kill)
	}
	d.mu.Unlock()
	errs := make([]error, len(ends))
	var wait sync.WaitGroup
	for i, end := range ends {
		wait.Go(func() { errs[i] = end() })
	}
	wait.Wait()
	return errors.Join(append(errs, d.release())...)
}

func (d *Driver) release() error {
	d.watches.Wait()
	if d.starter != nil {
		d.starter.close()
	}
	for _, f := range []*os.File{d.null, d.network, d.hostNetwork} {
		if f != nil {
			_ = f.Close()
		}
	}
	return errors.Join(d.state.release(d.machine.cgroups), d.guard.close())
}

// mountPoint is the empty folder that every container's root is put together on.
func (d *Driver) mountPoint() string { return filepath.Join(d.config.Root, "root") }
