package python

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hearth-run/hearth/adapters/internal/process"
	"github.com/hearth-run/hearth/pyrunner/template"
)

// How long no base is started after one that failed: doubled with each failure.
const (
	firstRest = time.Second
	maxRest   = time.Minute
)

// errNoBase says that a load has to start an interpreter of its own.
var errNoBase = errors.New("there is no base to grow from")

// base keeps one template process that has loaded nothing: an interpreter's start,
// paid for once. Every registration's template grows from it, as a child of this
// process: what becomes of the base later is nothing to it. User code never runs
// in a base. Safe for concurrent use.
type base struct {
	lang   *Language
	group  *process.Group
	starts chan func() // to the thread that starts bases
	over   chan struct{}
	ends   sync.WaitGroup

	mu      sync.Mutex // guards the fields below; held while one grows
	present *root      // nil without one
	count   int
	rest    time.Duration
	until   time.Time // no base is started before
	closed  bool
}

// root is one process.
type root struct {
	group  *process.Group
	leader *process.Leader
	tmpl   *template.Template
	proven bool // that it has one thread, after its start
}

// openBase starts the first process in the background.
func openBase(l *Language, group *process.Group) *base {
	b := &base{lang: l, group: group, starts: make(chan func()), over: make(chan struct{})}
	b.ends.Go(b.thread)
	b.ends.Go(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		_ = b.ready() // whoever needs it will hear
	})
	return b
}

// thread starts the processes, on one thread that lives as long as the base: what
// grows from them is killed when the thread ends that started them.
func (b *base) thread() {
	runtime.LockOSThread() // and never unlocked: the thread ends with this function
	for {
		select {
		case start := <-b.starts:
			start()
		case <-b.over:
			return
		}
	}
}

// close ends the process. Nothing that grew from it is left by then.
func (b *base) close() error {
	b.mu.Lock()
	b.closed = true
	err := b.drop()
	b.mu.Unlock()
	close(b.over)
	b.ends.Wait()
	return err
}

// grow makes a template process in a group of its own, which is asked over theirs.
// Errors: errNoBase, whatever it was: an interpreter of its own may do better.
func (b *base) grow(group *process.Group, theirs *os.File, s template.Surroundings) (*process.Leader, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.ready(); err != nil {
		return nil, err
	}
	// Not the caller's: a call that is cut short costs the base.
	ctx, cancel := context.WithTimeout(context.Background(), forkBound)
	defer cancel()
	pid, err := b.present.tmpl.Grow(ctx, theirs, s)
	if err == nil {
		err = b.present.prove()
	}
	if err != nil {
		return nil, b.fail(err)
	}
	b.rest = 0
	leader, err := group.Foster(pid)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoBase, err)
	}
	return leader, nil
}

// ready sees to a living process. The lock is held.
func (b *base) ready() error {
	if b.present != nil {
		select {
		case <-b.present.leader.Done():
			_ = b.fail(errors.New("the process has ended"))
		default:
			return nil
		}
	}
	if b.closed || time.Now().Before(b.until) {
		return errNoBase
	}
	if err := b.start(); err != nil {
		return b.fail(err)
	}
	return nil
}

// fail gives up the process. The lock is held.
func (b *base) fail(err error) error {
	b.rest = min(max(2*b.rest, firstRest), maxRest)
	b.until = time.Now().Add(b.rest)
	err = errors.Join(err, b.drop())
	b.lang.log.Warn("the warm interpreter is lost; functions load in one of their own", "cause", err, "again_in", b.rest)
	return fmt.Errorf("%w: %w", errNoBase, err)
}

// drop ends the process, if there is one, with all that grew from it and was not
// taken over. The lock is held.
func (b *base) drop() error {
	if b.present == nil {
		return nil
	}
	r := b.present
	b.present = nil
	return errors.Join(r.group.Close(), r.tmpl.Close())
}

// start starts a process. The lock is held.
func (b *base) start() error {
	b.count++
	group, err := b.group.Sub(fmt.Sprintf("base-%d", b.count))
	if err != nil {
		return err
	}
	if err := group.Nurse(); err != nil {
		return errors.Join(err, group.Close())
	}
	ours, theirs, err := template.Pair(maxMessage)
	if err != nil {
		return errors.Join(err, group.Close())
	}
	cmd := b.lang.pkg.Command(b.lang.interpreter.Path, "base")
	cmd.Dir = "/"
	cmd.ExtraFiles = append(cmd.ExtraFiles, theirs)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	r := &root{group: group, tmpl: template.New(ours)}
	started := make(chan error, 1)
	b.starts <- func() {
		r.leader, err = start(group, cmd)
		started <- err
	}
	if err := <-started; err != nil {
		return errors.Join(err, ours.Close(), group.Close())
	}
	b.present = r
	return nil
}

// prove makes sure, once, that the process may be forked: it has begun with what
// its interpreter does at its start, which can be made to do anything.
func (r *root) prove() error {
	if r.proven {
		return nil
	}
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", r.leader.Pid()))
	if err == nil && len(threads) != 1 {
		err = fmt.Errorf("the interpreter starts with %d threads: look at the .pth files of its site-packages", len(threads))
	}
	r.proven = err == nil
	return err
}

// readOnce are the beginnings of names that the C library, its loader or other
// libraries may read only when a process starts.
var readOnce = []string{"LD_", "MALLOC_", "GLIBC_", "GCONV_", "LOCPATH", "PYTHON", "OPENSSL_"}

// ownStart says whether an environment takes effect only in an interpreter that
// was started with it.
func ownStart(env []string) bool {
	for _, variable := range env {
		for _, beginning := range readOnce {
			if strings.HasPrefix(variable, beginning) {
				return true
			}
		}
	}
	return false
}
