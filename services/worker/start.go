package worker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/hearth-run/hearth/pyrunner"
	"github.com/hearth-run/hearth/sandbox"
	"github.com/hearth-run/hearth/services/worker/internal/box"
	"github.com/hearth-run/hearth/services/worker/internal/ledger"
	"github.com/hearth-run/hearth/services/worker/internal/pyenv"
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
}

// start makes a container that runs an executor. A checkpoint that the worker does
// not hold is no failure: the container starts cold and says so.
func (s *starter) start(ctx context.Context, id string, demand ledger.Demand) (box.Running, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.StartTimeout)
	defer cancel()
	return s.cold(ctx, id, demand)
}

// cold starts an interpreter behind fresh walls.
func (s *starter) cold(ctx context.Context, id string, demand ledger.Demand) (box.Running, error) {
	sockets, err := box.NewSockets(s.run, id)
	if err != nil {
		return box.Running{}, fmt.Errorf("%w: %w", errStart, err)
	}
	walls, err := s.driver.Create(ctx, s.spec(id, demand, sockets))
	if err != nil {
		return box.Running{}, errors.Join(fmt.Errorf("%w: %w", errStart, err), sockets.Close())
	}
	executor := box.NewExecutor(sockets)
	err = walls.Start(ctx)
	sockets.Started()
	if err == nil {
		err = executor.AwaitReady(ctx)
	}
	if err != nil {
		executor.Close()
		return box.Running{}, errors.Join(fmt.Errorf("%w: %w", errStart, err), walls.Destroy())
	}
	return box.Running{Walls: walls, Executor: executor}, nil
}

// spec says what the container of an executor is.
func (s *starter) spec(id string, demand ledger.Demand, sockets *box.Sockets) sandbox.Spec {
	command := s.runner.Command(s.env.Python, "executor", "3", "4", strconv.FormatInt(s.cfg.OutputLimit, 10))
	return sandbox.Spec{
		ID:    id,
		Argv:  append([]string{s.env.Python}, command.Args[1:]...),
		Env:   []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/tmp", "LANG=C.UTF-8", "TMPDIR=/tmp", "PYTHONDONTWRITEBYTECODE=1"},
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
