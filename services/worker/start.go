package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/hearth-run/hearth/pyrunner"
	"github.com/hearth-run/hearth/sandbox"
	"github.com/hearth-run/hearth/services/worker/internal/box"
	"github.com/hearth-run/hearth/services/worker/internal/ledger"
	"github.com/hearth-run/hearth/services/worker/internal/pyenv"
	"github.com/hearth-run/hearth/services/worker/internal/zygote"
	"github.com/hearth-run/hearth/services/worker/internal/zygotes"
)

// insidePackages is where a container sees the installed requirement sets. The
// folder cannot be listed inside: a set is found only by who asked for it.
const insidePackages = "/opt/hearth/packages"

// starter is the one place where the start of a container is chosen.
type starter struct {
	cfg      Config
	driver   sandbox.Driver
	env      pyenv.Environment
	runner   pyrunner.Package
	run      string // folder of the sockets
	packages string // folder of the installed sets
	log      *slog.Logger
}

// newContainer is a fresh name.
func newContainer() string { return "c" + strings.ToLower(ulid.Make().String()) }

// start makes a container that runs an executor, in the quickest way that there is:
// one that stands ready, a child of a zygote, a fresh interpreter. A way that fails
// is no failure: the next is taken, and the container says which it was.
func (s *starter) start(ctx context.Context, id string, demand ledger.Demand, from zygotes.Start) (box.Running, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.StartTimeout)
	defer cancel()
	if from.Ready != nil {
		running, err := s.ready(from, demand)
		if err == nil {
			return running, nil
		}
		s.log.Warn("container that stood ready is of no use", "container_id", id, "checkpoint_id", from.ID, "err", err)
	}
	if from.From != nil {
		running, err := s.fork(ctx, id, demand, from)
		if err == nil {
			return running, nil
		}
		s.log.Warn("container starts cold, its zygote failed", "container_id", id, "checkpoint_id", from.ID, "err", err)
	}
	return s.cold(ctx, id, demand)
}

// ready gives a container that was made ahead the call's own memory limit.
func (s *starter) ready(from zygotes.Start, demand ledger.Demand) (box.Running, error) {
	watch := newStopwatch()
	running := from.Ready.Running
	if demand.Memory != s.cfg.DefaultMemory {
		if err := running.Walls.Grow(demand.Memory); err != nil && !errors.Is(err, sandbox.ErrNoMeter) {
			running.Executor.Close()
			return box.Running{}, errors.Join(err, running.Walls.Destroy())
		}
	}
	watch.lap("limit")
	running.Checkpoint, running.Ahead, running.Loaded, running.Steps = from.ID, true, from.Loaded, watch.steps
	return running, nil
}

// ahead makes a container for whatever call comes first.
func (s *starter) ahead(ctx context.Context, from zygotes.Process) (zygotes.Made, error) {
	id := newContainer()
	running, err := s.fork(ctx, id, ledger.Demand{Memory: s.cfg.DefaultMemory}, zygotes.Start{From: from})
	return zygotes.Made{ID: id, Running: running}, err
}

// fork starts a child of a zygote behind fresh walls.
func (s *starter) fork(ctx context.Context, id string, demand ledger.Demand, from zygotes.Start) (box.Running, error) {
	sprout, ok := from.From.(*sprout)
	if !ok {
		return box.Running{}, fmt.Errorf("%w: a zygote of another kind", errStart)
	}
	running, err := s.build(ctx, id, demand, "fork", func(walls sandbox.Container) error {
		return sprout.Enter(ctx, walls, zygote.Begin{Env: environment})
	})
	running.Checkpoint, running.Loaded = from.ID, from.Loaded
	return running, err
}

// cold starts an interpreter behind fresh walls.
func (s *starter) cold(ctx context.Context, id string, demand ledger.Demand) (box.Running, error) {
	return s.build(ctx, id, demand, "exec", func(walls sandbox.Container) error { return walls.Start(ctx) })
}

// build makes a container, begins what runs in it and waits for its executor. When it
// fails it has left nothing behind.
func (s *starter) build(ctx context.Context, id string, demand ledger.Demand, how string, begin func(sandbox.Container) error) (box.Running, error) {
	watch := newStopwatch()
	sockets, err := box.NewSockets(s.run, id)
	if err != nil {
		return box.Running{}, fmt.Errorf("%w: %w", errStart, err)
	}
	walls, err := s.driver.Create(ctx, s.spec(id, demand, sockets))
	if err != nil {
		return box.Running{}, errors.Join(fmt.Errorf("%w: %w", errStart, err), sockets.Close())
	}
	watch.lap("create")
	executor := box.NewExecutor(sockets)
	err = begin(walls)
	sockets.Started()
	watch.lap(how)
	if err == nil {
		err = executor.AwaitReady(ctx)
		watch.lap("ready")
	}
	if err != nil {
		executor.Close()
		return box.Running{}, errors.Join(fmt.Errorf("%w: %w", errStart, err), walls.Destroy())
	}
	return box.Running{Walls: walls, Executor: executor, Steps: watch.steps}, nil
}

// environment is all that an executor gets of it.
var environment = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/tmp", "LANG=C.UTF-8", "TMPDIR=/tmp", "PYTHONDONTWRITEBYTECODE=1"}

// spec says what the container of an executor is.
func (s *starter) spec(id string, demand ledger.Demand, sockets *box.Sockets) sandbox.Spec {
	command := s.runner.Command(s.env.Python, "executor", "3", "4", strconv.FormatInt(s.cfg.OutputLimit, 10))
	return sandbox.Spec{
		ID:    id,
		Argv:  append([]string{s.env.Python}, command.Args[1:]...),
		Env:   environment,
		Dir:   "/tmp",
		Binds: s.binds(),
		Scratch: []sandbox.Scratch{
			{Target: "/tmp", Bytes: s.cfg.ScratchBytes},
			{Target: "/dev/shm", Bytes: s.cfg.ScratchBytes},
		},
		Limits: sandbox.Limits{
			Memory: demand.Memory, Pids: s.cfg.MaxPids, MilliCPU: s.cfg.MilliCPU, NoFile: 1024,
			FileBytes: uint64(s.cfg.ScratchBytes),
		},
		Network: networks[s.cfg.Network],
		Files:   sockets.Files,
	}
}

var networks = map[string]sandbox.Network{"none": sandbox.NetworkNone, "host": sandbox.NetworkHost}

// binds are the read-only parts of the host that an executor sees.
func (s *starter) binds() []sandbox.Bind {
	binds := sandbox.SystemBinds()
	for _, path := range s.env.Binds {
		if !beneath(path, "/usr") {
			binds = append(binds, sandbox.Bind{Source: path})
		}
	}
	return append(binds,
		sandbox.Bind{Source: s.runner.Dir},
		sandbox.Bind{Source: s.packages, Target: insidePackages})
}

func beneath(path, folder string) bool {
	rel, err := filepath.Rel(folder, path)
	return err == nil && rel != ".." && !filepath.IsAbs(rel) && (len(rel) < 3 || rel[:3] != "../")
}

// folders makes the worker's folders and returns them: data, sockets, packages.
func folders(data string) (run, packages string, err error) {
	run, packages = filepath.Join(data, "run"), filepath.Join(data, "packages")
	// What an earlier life left of its sockets is of no use to anybody.
	err = errors.Join(os.RemoveAll(run), os.MkdirAll(run, 0o700), os.MkdirAll(packages, 0o711), os.Chmod(packages, 0o711))
	return run, packages, err
}

// stopwatch notes where time goes.
type stopwatch struct {
	last  time.Time
	steps []box.Step
}

func newStopwatch() *stopwatch { return &stopwatch{last: time.Now()} }

// lap ends a step.
func (w *stopwatch) lap(name string) {
	now := time.Now()
	w.steps = append(w.steps, box.Step{Name: name, Took: now.Sub(w.last)})
	w.last = now
}
