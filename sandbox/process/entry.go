//go:build linux && amd64

package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/hearth-run/hearth/sandbox"
	"github.com/hearth-run/hearth/sandbox/internal/initcode"
	"github.com/hearth-run/hearth/sandbox/internal/plan"
)

// Entry is how a process that is not cloned by this driver becomes the first process
// of a container: one that a template (a Python process with its imports done) has
// just forked, into a new pid namespace, and that has a single thread. In this order:
//
//  1. The template calls unshare(CLONE_NEWPID), forks, and goes back to its own pid
//     namespace with setns.
//  2. The child makes Files its descriptors 0, 1, 2, … in their order.
//  3. It makes the system calls of the plan (Plan, see plan.Plan.MarshalJSON for the
//     form), one after the other. When one fails that may not, it writes two 64-bit
//     little-endian words, the op's index and the errno, to descriptor Failures and
//     exits.
//     The same without what a hundred calls from Python cost (about 3 ms): it maps
//     Steps at StepsAddress (anonymous, private, fixed, readable and writable), Code
//     anywhere (executable; the same for every entry of a driver, so that a template
//     can have it mapped already), and calls the C function at CodeEntry within Code,
//     which takes nothing, returns 0, and does what is said above when a step fails.
//  4. It closes the descriptors from FirstControl on, Status excepted. Now it is
//     behind every wall. Argv, Env and Dir of the Spec are its own to interpret: Plan
//     ends before anything is executed.
//  5. Before it exits it may write to Status the 32-bit wait status to be told by
//     Wait; without it that is its own, where it is this process's child (a template
//     makes it one with CLONE_PARENT), and otherwise the container counts as killed.
//  6. The template hands a pidfd of the child to Adopt, or its number to whoever can
//     open one without a race: its parent.
type Entry struct {
	Steps        []byte `json:"steps"`
	StepsAddress uint64 `json:"steps_address"`
	Code         []byte `json:"code"`
	CodeEntry    int    `json:"code_entry"`
	FirstControl int    `json:"first_control"`
	Failures     int    `json:"failures"`
	Status       int    `json:"status"`
	// Env is the Spec's.
	Env []string `json:"-"`
	// Files are the caller's to hand over (SCM_RIGHTS keeps the order), and stay
	// open until Close.
	Files []*os.File `json:"-"`

	launch       *launch
	steps        plan.Plan
	status, told *os.File
}

// Enter begins the start of a created container from a forked process, in place of
// Start. It ends with Adopt or Close of the entry. Errors: ErrState, and a *WallError
// without the rights that it needs (in a user namespace a template's child cannot
// leave the template's).
func (c *Container) Enter() (*Entry, error) {
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
	e, err := l.entry()
	if err != nil {
		l.closeChildSide()
		return nil, fmt.Errorf("enter container %s: %w", c.spec.ID, err)
	}
	return e, nil
}

func (l *launch) entry() (e *Entry, err error) {
	e = &Entry{launch: l}
	if e.status, e.told, err = l.assemble(); err != nil {
		return nil, err
	}
	steps, err := l.plan()
	if err == nil {
		e.steps = steps.BeforeFork()
		err = e.encode()
	}
	if err != nil {
		_ = e.status.Close()
		_ = e.told.Close()
		return nil, err
	}
	return e, nil
}

// Plan is the system calls for an applier that makes them one by one.
func (e *Entry) Plan() (json.RawMessage, error) { return e.steps.MarshalJSON() }

// encode writes the steps down for an applier that calls Code.
func (e *Entry) encode() (err error) {
	site := e.launch.site
	e.Files, e.FirstControl = e.launch.files, site.FirstControl
	e.Failures, e.Status = site.Failures, site.FirstControl
	e.Env = e.launch.container.spec.Env
	e.StepsAddress = plan.Base
	if e.Steps, err = e.steps.Returning().Blob(e.Failures, e.Status); err != nil {
		return err
	}
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
	if c.phase == gone || e.status == nil {
		giveUp := adopted{pidfd}
		giveUp.kill()
		giveUp.wait()
		return fmt.Errorf("adopt into container %s: %w", c.spec.ID, sandbox.ErrState)
	}
	e.launch.closeChildSide() // the child has its own; the pipes' ends are told by it
	status, told := e.status, e.told
	e.status, e.told = nil, nil
	if err := e.launch.follow(ctx, adopted{pidfd}, e.steps, status, told); err != nil {
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
	e.launch.closeChildSide()
	if e.status != nil {
		_ = e.status.Close()
		_ = e.told.Close()
		e.status, e.told = nil, nil
	}
}
