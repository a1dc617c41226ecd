package python

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/hearth-run/hearth/adapters/runtimeserver"
	"github.com/hearth-run/hearth/pyrunner/message"
	"github.com/hearth-run/hearth/pyrunner/template"
)

// reloadBound is how long a fresh load may take that succeeds a killed instance.
const reloadBound = 60 * time.Second

// errReload is the cause of a fresh load that took longer.
var errReload = &runtimeserver.LoadError{Text: fmt.Sprintf("the module was loaded afresh after a kill, and its import took longer than %v", reloadBound)}

// errClosed is the cause of a call that Close has ended.
var errClosed = errors.New("the instance is closed")

// Instance is one loaded handler: the present generation and its present child.
type Instance struct {
	lang         *Language
	function     runtimeserver.Function
	module, name string
	stdout       *stream
	stderr       *stream

	life context.Context // ends with Close
	end  context.CancelCauseFunc

	// work is held by whoever runs a call, makes a successor, or closes for good;
	// it guards the fields below.
	work     sync.Mutex
	gen      *generation
	child    *child
	failure  error // why there is no child and will be none
	sequence int64
	loads    int

	mu      sync.Mutex // guards the fields below
	current *generation
	ready   chan struct{} // closed when a successor stands or cannot
	closing sync.Once
	closed  error
}

// Load starts a generation; see runtimeserver.Language. Its first child is forked by
// the first call: a function that nobody has called yet has one process.
func (l *Language) Load(ctx context.Context, f runtimeserver.Function) (runtimeserver.Instance, error) {
	module, name, err := resolve(f.Dir, f.Handler)
	if err != nil {
		return nil, err
	}
	i := &Instance{lang: l, function: f, module: module, name: name, ready: make(chan struct{})}
	i.life, i.end = context.WithCancelCause(context.Background())
	if err := i.open(); err != nil {
		return nil, err
	}
	err = i.load(ctx)
	if err == nil && !i.gen.loaded.CanFork() {
		i.child, err = i.bear(ctx)
	}
	i.failure = err
	i.stdout.end()
	i.stderr.end()
	close(i.ready)
	if err != nil {
		return nil, errors.Join(err, i.Close())
	}
	i.announce()
	return i, nil
}

func (i *Instance) open() error {
	var err error
	if i.stdout, err = newStream(runtimeserver.Stdout, i.function.Logs); err != nil {
		return err
	}
	if i.stderr, err = newStream(runtimeserver.Stderr, i.function.Logs); err != nil {
		return errors.Join(err, i.stdout.close())
	}
	return nil
}

// announce tells the function's author what the import has done to it.
func (i *Instance) announce() {
	l := i.gen.loaded
	if !l.CanFork() {
		i.function.Logs.Entry("", "warn", fmt.Sprintf("the import of module %s left %d threads running, and a process with threads cannot be forked: after a timeout the module is loaded afresh, which takes as long as now; start threads in the handler to avoid that", i.module, l.Threads-1))
	}
	if l.Ended > 0 {
		i.function.Logs.Entry("", "warn", fmt.Sprintf("the import of module %s left %d processes running; they were ended", i.module, l.Ended))
	}
}

// Invoke runs one call; see runtimeserver.Instance.
func (i *Instance) Invoke(ctx context.Context, call runtimeserver.Call) (runtimeserver.Result, error) {
	if err := checkContentType(call.ContentType); err != nil {
		return runtimeserver.Result{}, err
	}
	if err := i.admit(ctx); err != nil {
		return runtimeserver.Result{}, err
	}
	defer i.work.Unlock()
	if i.child == nil {
		return runtimeserver.Result{}, i.unable()
	}
	i.stdout.begin(call.InvocationID)
	i.stderr.begin(call.InvocationID)
	v, err := i.exchange(ctx, i.child, call)
	if err != nil {
		v.err = i.lose(ctx, err)
	}
	i.stdout.end()
	i.stderr.end()
	return v.result, v.err
}

// unable says why there is no child. What the module cannot help is tried again
// for the next call. The work lock is held.
func (i *Instance) unable() error {
	if i.life.Err() != nil {
		return context.Cause(i.life)
	}
	err := i.failure
	if _, permanent := errors.AsType[*runtimeserver.LoadError](err); !permanent {
		i.succeed(false)
	}
	return err
}

// admit returns with the work lock held and a child that is alive, as far as one
// can know: one that died between two calls has harmed none of them.
func (i *Instance) admit(ctx context.Context) error {
	for {
		if err := i.await(ctx); err != nil {
			return err
		}
		i.work.Lock()
		switch {
		case i.child == nil && i.failure == nil && i.life.Err() == nil:
			i.succeed(true) // the first call
		case i.child == nil || !i.gen.gone(i.child, 0):
			return nil
		default:
			_ = i.lose(ctx, io.EOF) // of no call
		}
		i.work.Unlock()
	}
}

// await waits for a child.
func (i *Instance) await(ctx context.Context) error {
	i.mu.Lock()
	ready := i.ready
	i.mu.Unlock()
	select {
	case <-ready:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-i.life.Done():
	}
	return context.Cause(i.life)
}

// lose ends the child of a call that did not come to an end, begins to make its
// successor, and returns what the caller is told. The work lock is held.
func (i *Instance) lose(ctx context.Context, err error) error {
	c := i.child
	i.child = nil
	how, buried := i.gen.bury(c, ctx.Err() == nil && hungUp(err))
	if buried != nil {
		i.lang.log.Warn("bury instance", "run_uid", i.function.RunUID, "cause", buried)
	}
	i.succeed(buried == nil && i.gen.loaded.CanFork())
	switch {
	case i.life.Err() != nil:
		return context.Cause(i.life)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case hungUp(err):
		return how.handlerError(i.stderr.last())
	}
	broken := &exitError{}
	return broken.handlerError(i.stderr.last())
}

// succeed makes a child in the background: from the present generation where that
// can fork, else from a fresh one. The work lock is held, and passes on.
func (i *Instance) succeed(fork bool) {
	if i.life.Err() != nil {
		return
	}
	ready := make(chan struct{})
	i.mu.Lock()
	i.ready = ready
	i.mu.Unlock()
	go func() {
		defer close(ready)
		i.work.Lock()
		defer i.work.Unlock()
		if fork {
			if c, err := i.gen.beget(i.life); err == nil {
				i.child = c
				return
			} else if i.life.Err() == nil {
				i.lang.log.Warn("fork instance", "run_uid", i.function.RunUID, "cause", err)
			}
		}
		if i.life.Err() != nil {
			return
		}
		ctx, cancel := context.WithTimeoutCause(i.life, reloadBound, errReload)
		defer cancel()
		i.replace(ctx)
	}()
}

// replace makes a generation and its child in place of the present ones.
func (i *Instance) replace(ctx context.Context) {
	if i.gen != nil {
		i.expose(nil)
		err := i.gen.close()
		i.gen = nil
		if err != nil {
			i.lang.log.Warn("close generation", "run_uid", i.function.RunUID, "cause", err)
		}
	}
	i.child, i.failure = i.renew(ctx)
	i.stdout.end()
	i.stderr.end()
}

// expose names the generation that Close may kill at any moment; nobody else
// closes it then.
func (i *Instance) expose(gen *generation) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.current = gen
}

func (i *Instance) renew(ctx context.Context) (*child, error) {
	if err := i.load(ctx); err != nil {
		return nil, err
	}
	return i.bear(ctx)
}

// load makes a generation.
func (i *Instance) load(ctx context.Context) error {
	gen, err := i.launch(ctx)
	if err != nil {
		return i.explain(ctx, err)
	}
	i.gen = gen
	i.expose(gen)
	return nil
}

// bear makes the child of the present generation.
func (i *Instance) bear(ctx context.Context) (*child, error) {
	c, err := i.gen.beget(ctx)
	if err != nil {
		return nil, i.explain(ctx, i.gen.explain(ctx, err))
	}
	return c, nil
}

// explain translates what a load ended with.
func (i *Instance) explain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	i.stderr.end()
	if r, ok := errors.AsType[*template.RefusedError](err); ok {
		return refused(r)
	}
	if e, ok := errors.AsType[*exitError](err); ok {
		return e.loadError(i.stderr.last())
	}
	return err
}

// Close ends every process of the instance, a call that runs included. It may be
// repeated.
func (i *Instance) Close() error {
	i.closing.Do(func() {
		i.end(errClosed)
		i.closed = errors.Join(i.interrupt(), i.release())
	})
	return i.closed
}

// interrupt ends what runs now, so that the work lock becomes free.
func (i *Instance) interrupt() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.current == nil {
		return nil
	}
	return i.current.group.Kill()
}

func (i *Instance) release() error {
	// Under the work lock no successor can begin any more; one that has is waited for.
	i.work.Lock()
	i.mu.Lock()
	ready := i.ready
	i.mu.Unlock()
	i.work.Unlock()
	<-ready
	i.work.Lock()
	defer i.work.Unlock()
	i.failure = errClosed
	var err error
	if i.child != nil {
		err = i.child.close()
	}
	if i.gen != nil {
		i.expose(nil)
		err = errors.Join(err, i.gen.close())
	}
	return errors.Join(err, i.stdout.close(), i.stderr.close())
}

func malformed(err error) bool { return errors.Is(err, message.ErrMalformed) }
