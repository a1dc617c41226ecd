//go:build linux && amd64

package process

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/hearth-run/hearth/sandbox"
	"github.com/hearth-run/hearth/sandbox/internal/initcode"
	"github.com/hearth-run/hearth/sandbox/internal/plan"
	"github.com/hearth-run/hearth/sandbox/internal/walls"
)

// Entry is how a process that is not cloned by this driver becomes the first process
// of a container: one that a template (a Python process with its imports done) has
// just forked, into a new pid namespace, and that has a single thread. In this order:
//
//  1. The template forks it with CLONE_NEWPID, and with CLONE_PARENT where it is itself a
//     child of the driver (StartTemplate): then the container lives on without the
//     template, and Wait tells the process's own wait status; otherwise it counts as
//     killed.
//  2. The process brings Files to 3, 4, 5, … in their order, where they are not there
//     anyway. It maps the last of them, StepsBytes long, at StepsAddress (private, fixed,
//     readable and writable) and Code anywhere (executable; the same for every entry of a
//     driver, so that a template can have it mapped already), and calls the C function at
//     CodeEntry within Code, which takes nothing and returns 0. That makes the files but
//     the last the descriptors 0, 1, 2, …, closes all others, puts up the walls and closes
//     what it needed for that. When a step fails it says so and ends the process.
//  3. Now the process is behind every wall; it has the Spec's standard streams and Files,
//     and after them, from Extra on, the files that were given to Enter. Argv and Env of
//     the Spec are its own to interpret.
//  4. A pidfd of the process goes to Adopt: from the template, or opened by whoever can
//     do so without a race, its parent.
type Entry struct {
	StepsAddress uint64 `json:"steps_address"`
	StepsBytes   int    `json:"steps_bytes"`
	Code         []byte `json:"code"`
	CodeEntry    int    `json:"code_entry"`
	Extra        int    `json:"extra"`
	// Env is the Spec's.
	Env []string `json:"-"`
	// Files are the caller's to hand over (SCM_RIGHTS keeps the order), and stay
	// open until Close.
	Files []*os.File `json:"-"`

	launch *launch
	steps  plan.Plan
	told   *os.File // nil once adopted or closed
}

// Enter begins the start of a created container from a forked process, in place of
// Start. It ends with Adopt or Close of the entry; extra stay the caller's. Errors:
// ErrState, and a *WallError without the rights that it needs (in a user namespace a
// template's child cannot leave the template's).
func (c *Container) Enter(extra ...*os.File) (*Entry, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.phase != created {
		return nil, fmt.Errorf("enter container %s, which is %s: %w", c.spec.ID, c.phase, sandbox.ErrState)
	}
	if !c.driver.machine.privileged {
		return nil, &sandbox.WallError{Wall: "user", Cause: errors.New("starts from a template need root's rights; start cold instead")}
	}
	c.phase = failed
	l := &launch{container: c, entered: true}
	l.site.Unshare = namespaces &^ unix.CLONE_NEWPID
	if c.spec.Network == sandbox.NetworkNone && !l.sharesNetwork() {
		l.site.Unshare |= unix.CLONE_NEWNET
	}
	e := &Entry{launch: l, Env: c.spec.Env}
	if err := e.write(extra); err != nil {
		e.close()
		return nil, fmt.Errorf("enter container %s: %w", c.spec.ID, err)
	}
	return e, nil
}

// write writes the steps down.
func (e *Entry) write(extra []*os.File) (err error) {
	l := e.launch
	if _, e.told, err = l.assemble(); err != nil {
		return err
	}
	e.Extra = len(l.files)
	e.Files = append(l.files, extra...)
	l.site.Place = len(e.Files)
	steps, err := l.plan()
	if err != nil {
		return err
	}
	e.steps = steps.BeforeFork()
	e.steps.Call(walls.Descriptors, unix.SYS_CLOSE_RANGE, plan.Int(l.site.FirstControl), plan.Int(e.Extra-1), plan.Int(0))
	blob, err := e.steps.Returning().Blob(l.site.Failures, l.site.Failures)
	if err != nil {
		return err
	}
	file, err := memoryFile("steps", blob)
	if err != nil {
		return err
	}
	l.ours = append(l.ours, file)
	e.Files = append(e.Files, file)
	e.StepsAddress, e.StepsBytes = plan.Base, len(blob)
	e.Code, e.CodeEntry, err = initcode.Apply()
	return err
}

// Adopt takes the forked process over, whose pidfd the driver keeps and closes, and
// returns once it stands behind its walls. From then on the container is like one that
// was started. Errors: as Start; the process has ended or is about to then.
func (e *Entry) Adopt(ctx context.Context, pidfd *os.File) error {
	c := e.launch.container
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.phase == gone || e.told == nil {
		giveUp := adopted{pidfd}
		giveUp.kill()
		giveUp.wait()
		return fmt.Errorf("adopt into container %s: %w", c.spec.ID, sandbox.ErrState)
	}
	e.launch.closeChildSide() // the child has its own; the pipes' ends are told by it
	told := e.told
	e.told = nil
	if err := e.launch.follow(ctx, adopted{pidfd}, e.steps, nil, told); err != nil {
		return fmt.Errorf("adopt into container %s: %w", c.spec.ID, err)
	}
	c.phase = running
	return nil
}

// Close gives up an entry that nobody was adopted by; after Adopt it does nothing.
func (e *Entry) Close() {
	c := e.launch.container
	c.mu.Lock()
	defer c.mu.Unlock()
	e.close()
}

func (e *Entry) close() {
	e.launch.closeChildSide()
	if e.told != nil {
		_ = e.told.Close()
		e.told = nil
	}
}
