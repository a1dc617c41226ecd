package zygote

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/hearth-run/hearth/pyrunner"
	"github.com/hearth-run/hearth/sandbox"
	"github.com/hearth-run/hearth/sandbox/process"
)

// Config is what all zygotes of a tree have in common.
type Config struct {
	// Driver makes the containers, and the zygotes' processes too: they end with it.
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

// UnfitError says why a set of imports is no zygote.
type UnfitError struct {
	// Module is the one that was named and is at fault.
	Module string
	// Why is a sentence for people: not there, failed, threads, descriptors, time.
	Why string
}

func (e *UnfitError) Error() string {
	return fmt.Sprintf("module %s cannot be imported ahead: %s", e.Module, e.Why)
}

// Facts are what is known of a zygote. Times and sets are fixed from its beginning,
// sizes are measured when asked.
type Facts struct {
	// Pid is the process.
	Pid int
	// Modules are all that were asked for, here or in those that it grew from, sorted.
	Modules []string
	// ImportTime is how long each of them took: a module that was there already, since
	// another one imports it, took next to nothing.
	ImportTime map[string]time.Duration
	// Loaded are the top-level modules that the process has in sys.modules, sorted.
	Loaded []string
	// PrivateBytes are in memory for this process alone, SharedBytes with others too.
	PrivateBytes, SharedBytes int64
}

// Begin is what the executor of an entered container is told when it begins.
type Begin struct {
	// Env is the whole environment, as NAME=VALUE, at most 60 KiB.
	Env []string
}

// Zygote is one process. It is safe for concurrent use.
type Zygote struct{}

// Start starts the root of a tree: an interpreter with the executor's own modules.
func Start(ctx context.Context, cfg Config) (*Zygote, error) { panic("not yet") }

// Grow makes a zygote that has further modules. The zygote that it grows from serves
// calls to Enter meanwhile. Errors: *UnfitError, ctx's, ErrEnded.
func (z *Zygote) Grow(ctx context.Context, modules []string) (*Zygote, error) { panic("not yet") }

// Facts says what is known of the zygote.
func (z *Zygote) Facts() Facts { panic("not yet") }

// Enter forks a process into a created container, in place of its Start. Descriptors 3
// and 4 of the container (Spec.Files) are the executor's control socket and listener,
// on which it says Ready. Errors: as Start, ErrEnded. After an error only Destroy is
// left to do with the container.
func (z *Zygote) Enter(ctx context.Context, container sandbox.Container, begin Begin) error {
	panic("not yet")
}

// Ended is closed when the process is gone, however it ended.
func (z *Zygote) Ended() <-chan struct{} { panic("not yet") }

// Close ends the process and waits for that. It may be repeated.
func (z *Zygote) Close() error { panic("not yet") }
