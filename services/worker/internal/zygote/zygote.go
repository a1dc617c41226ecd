package zygote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hearth-run/hearth/pyrunner"
	"github.com/hearth-run/hearth/pyrunner/template"
	"github.com/hearth-run/hearth/sandbox/process"
)

// Config is what all zygotes of a tree have in common.
type Config struct {
	// Driver makes the containers, and is the parent of the zygotes' processes: they end
	// with it.
	Driver *process.Driver
	// Name begins the names of the zygotes' control groups: 1 to 40 of [a-z0-9-], first
	// and last alphanumeric. No container's id may begin with it and a "-".
	Name string
	// Interpreter is absolute and has cloudpickle.
	Interpreter string
	Runner      pyrunner.Package
	// OutputLimit is as for an executor that starts cold, in bytes.
	OutputLimit int64
	// MemoryLimit bounds each zygote, in bytes; 0 is no bound.
	MemoryLimit int64
	// ImportTimeout bounds the import of each module.
	ImportTimeout time.Duration
	Log           *slog.Logger
}

const (
	// forkBound is how long a fork may take; a zygote that takes longer is of no use.
	forkBound = 10 * time.Second
	// startBound is how long an interpreter may take to be there.
	startBound = 30 * time.Second
)

// environment is all that a zygote has of one. It can be read in every container that
// was forked from it (/proc/self/environ is the memory that a process began with), so
// that nothing of a caller's or of the worker's may be in it.
var environment = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/tmp", "LANG=C.UTF-8"}

// tree is what the zygotes of one root share.
type tree struct {
	Config
	count atomic.Int64
}

func (t *tree) nextID() string { return fmt.Sprintf("%s-%d", t.Name, t.count.Add(1)) }

// Zygote is one process. It is safe for concurrent use.
type Zygote struct {
	tree    *tree
	process *process.Template
	// Fixed once Start or Grow has returned.
	imports map[string]time.Duration
	loaded  []string

	asking sync.Mutex // one question at a time; guards asked
	asked  *template.Template
}

// Start starts the root of a tree: an interpreter with the executor's own modules.
func Start(ctx context.Context, cfg Config) (*Zygote, error) {
	t := &tree{Config: cfg}
	ours, theirs, err := template.Pair(0)
	if err != nil {
		return nil, fmt.Errorf("start zygote: %w", err)
	}
	defer theirs.Close()
	said, stderr, err := listen(cfg.Log)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start zygote: %w", err), ours.Close())
	}
	defer stderr.Close()
	command := cfg.Runner.Command(cfg.Interpreter, "zygote", "4")
	spec := process.TemplateSpec{ID: t.nextID(), Path: cfg.Interpreter, Argv: command.Args, Env: environment, Stderr: stderr, Memory: cfg.MemoryLimit}
	spec.Files = append(spec.Files, theirs)
	z := &Zygote{tree: t, asked: template.New(ours), imports: map[string]time.Duration{}}
	if z.process, err = cfg.Driver.StartTemplate(spec); err != nil {
		return nil, errors.Join(err, ours.Close())
	}
	said.start()
	ctx, cancel := context.WithTimeout(ctx, startBound)
	defer cancel()
	// Every child has it already: the answer shows that the interpreter is there, and
	// what it has imported so far is collected and frozen.
	if err := errors.Join(z.load(ctx, "cloudpickle"), z.list(ctx)); err != nil {
		return nil, errors.Join(fmt.Errorf("start zygote: %w", err), z.Close())
	}
	clear(z.imports) // nobody asked for it
	return z, nil
}

// Grow makes a zygote that has further modules, imported in their order. The zygote that
// it grows from serves Enter and Grow meanwhile. Errors: *UnfitError, ctx's, ErrEnded.
func (z *Zygote) Grow(ctx context.Context, modules []string) (*Zygote, error) {
	ours, theirs, err := template.Pair(0)
	if err != nil {
		return nil, fmt.Errorf("grow zygote: %w", err)
	}
	pid, err := z.fork(func(ctx context.Context, t *template.Template) (int, error) {
		return t.Grow(ctx, theirs, template.Surroundings{Sibling: true, Env: environment})
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("grow zygote: %w", err), ours.Close())
	}
	grown := &Zygote{tree: z.tree, asked: template.New(ours), imports: maps.Clone(z.imports)}
	grown.process, err = z.tree.Driver.AdoptTemplate(pid, z.tree.nextID(), z.tree.MemoryLimit)
	if err != nil {
		return nil, errors.Join(err, ours.Close())
	}
	for _, module := range modules {
		if _, done := grown.imports[module]; done {
			continue
		}
		if err := grown.measure(ctx, module); err != nil {
			return nil, errors.Join(err, grown.Close())
		}
	}
	if err := grown.list(ctx); err != nil {
		return nil, errors.Join(err, grown.Close())
	}
	return grown, nil
}

// fork asks for a process, whatever becomes of the caller: an answer that nobody waits
// for would leave a process that nobody knows.
func (z *Zygote) fork(ask func(context.Context, *template.Template) (int, error)) (int, error) {
	z.asking.Lock()
	defer z.asking.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), forkBound)
	defer cancel()
	pid, err := ask(ctx, z.asked)
	if _, refused := errors.AsType[*template.RefusedError](err); err == nil || refused {
		return pid, err
	}
	// It has ended, or speaks out of order and is ended. What it forked and told nobody
	// about is in its process group and ends with it.
	return 0, errors.Join(fmt.Errorf("%w: %w", ErrEnded, err), z.process.Kill())
}

// Facts are what is known of a zygote.
type Facts struct {
	// Pid is the process.
	Pid int
	// Modules are all that were asked for, here or in those that it grew from, sorted.
	Modules []string
	// ImportTime is how long each of them took: a module that was there already, since
	// another one imports it, took next to nothing.
	ImportTime map[string]time.Duration
	// Loaded are the names of all top-level modules that are loaded, sorted: what the
	// modules import themselves, the executor's own and the interpreter's included.
	Loaded []string
	// PrivateBytes are in memory for this process alone, SharedBytes with others too.
	// Both are 0 once it has ended.
	PrivateBytes, SharedBytes int64
}

// Facts says what is known of the zygote; sizes are measured now, which takes about
// 1 ms for 100 MiB.
func (z *Zygote) Facts() Facts {
	f := Facts{Pid: z.process.Pid(), ImportTime: maps.Clone(z.imports), Loaded: z.loaded, Modules: slices.Sorted(maps.Keys(z.imports))}
	select {
	case <-z.process.Ended():
	default:
		f.PrivateBytes, f.SharedBytes = memoryOf(f.Pid)
	}
	return f
}

// Ended is closed when the process is gone, however it ended.
func (z *Zygote) Ended() <-chan struct{} { return z.process.Ended() }

// Close ends the process and waits for that. Its containers live on, and so does what
// has grown from it. It may be repeated.
func (z *Zygote) Close() error {
	err := z.process.Kill()
	// A question that waits for an answer reads the end of the stream.
	z.asking.Lock()
	defer z.asking.Unlock()
	return errors.Join(err, z.asked.Close())
}

// hungUp says that the other side of a socket has gone.
func hungUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET)
}
