package runtimetest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect/v2"

	"github.com/hearth-run/hearth/internal/kit/edge"
)

// caseLimit ends a case whatever it waits for.
const caseLimit = 3 * time.Minute

// T is what a case works with. Methods that fail the case panic with *failure
// and belong to the case's own goroutine.
type T struct {
	*wire
	ctx      context.Context
	cancel   context.CancelFunc
	target   *Target
	soon     time.Duration
	crowd    int // how many calls a storm has
	root     string
	calls    sync.WaitGroup // every call that was started
	cleanups []func(context.Context)
}

func newT(ctx context.Context, r *runner) (*T, error) {
	root, err := os.MkdirTemp(r.target.Workspace, "conformance-")
	if err != nil {
		return nil, fmt.Errorf("make a folder in the workspace: %w", err)
	}
	// The target may run as another user.
	if err := os.Chmod(root, 0o777); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, caseLimit)
	return &T{wire: r.wire, ctx: ctx, cancel: cancel, target: r.target, soon: r.options.Soon, crowd: r.options.Storm, root: root}, nil
}

// close undoes what the case did: registrations, calls, files.
func (t *T) close() error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), t.soon)
	defer cancel()
	for _, cleanup := range slices.Backward(t.cleanups) {
		cleanup(ctx)
	}
	t.cancel()
	t.calls.Wait()
	// Processes that are about to end may still write a file or two.
	var err error
	for range 5 {
		if err = os.RemoveAll(t.root); err == nil {
			return nil
		}
	}
	return fmt.Errorf("remove the case's folder: %w", err)
}

func (t *T) fail(expected, seen string, args ...any) {
	panic(&failure{expected: expected, seen: fmt.Sprintf(seen, args...)})
}

// must fails the case when something of the suite's own went wrong.
func (t *T) must(err error) {
	if err != nil {
		t.fail("the suite to work", "%v", err)
	}
}

// check fails the case unless ok.
func (t *T) check(ok bool, expected, seen string, args ...any) {
	if !ok {
		t.fail(expected, seen, args...)
	}
}

// ok fails the case unless the call that does what succeeded.
func (t *T) ok(err error, what string) {
	if err != nil {
		t.fail(what+" to succeed", "%s", verdict(err))
	}
}

// refused fails the case unless the server said code, with one of the reasons if
// there are any.
func (t *T) refused(err error, what string, code connect.Code, reasons ...string) {
	expected := fmt.Sprintf("%s to be refused with %v %s", what, code, strings.Join(reasons, " or "))
	if err == nil || connect.CodeOf(err) != code || !answered(err) {
		t.fail(strings.TrimSpace(expected), "%s", verdict(err))
	}
	if len(reasons) > 0 && !slices.Contains(reasons, edge.Reason(err)) {
		t.fail(expected, "%s", verdict(err))
	}
}

// eventually waits until cond holds. A Runtime Server tells by answers to
// questions and a fixture by files: there is nothing to wait on but to ask again,
// at a bounded cadence.
func (t *T) eventually(what string, cond func() bool) {
	t.within(t.soon, what, cond)
}

func (t *T) within(limit time.Duration, what string, cond func() bool) {
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	tick := time.NewTicker(3 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-deadline.C:
			t.fail(what, "nothing of it within %v", limit)
		case <-t.ctx.Done():
			t.fail(what, "nothing of it when the suite was stopped")
		case <-tick.C:
		}
	}
}

// pending is a call under way.
type pending[R any] struct {
	done   chan struct{}
	cancel context.CancelFunc
	res    R
	err    error
}

var errTooLate = errors.New("no answer")

// begin starts a call with no deadline of its own: a server that relies on its
// caller's patience has to be seen.
func begin[R any](t *T, rpc func(context.Context) (R, error)) *pending[R] {
	ctx, cancel := context.WithCancel(t.ctx)
	p := &pending[R]{done: make(chan struct{}), cancel: cancel}
	t.calls.Go(func() {
		defer close(p.done)
		p.res, p.err = rpc(ctx)
	})
	return p
}

// ended says whether the call has been answered.
func (p *pending[R]) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// wait returns the answer, which has to come soon.
func (p *pending[R]) wait(t *T) (R, error) { return p.waitFor(t, t.soon) }

func (p *pending[R]) waitFor(t *T, limit time.Duration) (R, error) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-p.done:
		return p.res, p.err
	case <-timer.C:
		p.cancel()
		<-p.done
		var none R
		return none, fmt.Errorf("%w within %v", errTooLate, limit)
	}
}

// call makes a call that has to be answered soon.
func call[Q, R any](t *T, rpc func(context.Context, Q) (R, error), req Q) (R, error) {
	return begin(t, func(ctx context.Context) (R, error) { return rpc(ctx, req) }).wait(t)
}

// name returns a name that was never used.
func name(prefix string) string { return prefix + "-" + strings.ToLower(rand.Text()[:16]) }

// path returns a file of the case's folder.
func (t *T) path(elem ...string) string { return filepath.Join(append([]string{t.root}, elem...)...) }

func isLate(err error) bool { return errors.Is(err, errTooLate) }
