package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/hearth-run/hearth/gen/serverless"
	"github.com/hearth-run/hearth/sandbox"
	"github.com/hearth-run/hearth/sandbox/process"
	"github.com/hearth-run/hearth/services/worker/internal/box"
	"github.com/hearth-run/hearth/services/worker/internal/hotset"
	"github.com/hearth-run/hearth/services/worker/internal/zygote"
	"github.com/hearth-run/hearth/services/worker/internal/zygotes"
)

// zygotesName begins the names of the zygotes' control groups; containers' ids begin
// with a c.
const zygotesName = "zygote"

// nursery makes the zygotes of the worker; nil where there shall be none.
func (w *Worker) nursery() *zygotes.Zygotes {
	driver, ok := w.driver.(*process.Driver)
	if w.cfg.ZygoteMemory == 0 || !ok {
		return nil
	}
	reserve := w.cfg.ZygoteMemory / 8
	cfg := zygotes.Config{Config: hotset.Default(w.cfg.ZygoteMemory - reserve), Reserve: reserve, GrowTimeout: 2 * time.Minute, FillTimeout: w.cfg.StartTimeout, FillPause: 10 * time.Millisecond}
	cfg.MaxPool, cfg.MinPool = w.cfg.ZygotePool, min(cfg.MinPool, w.cfg.ZygotePool)
	for _, pin := range w.cfg.Zygotes {
		cfg.Pins = append(cfg.Pins, pinned(pin))
	}
	return zygotes.New(cfg, zygotes.Deps{
		Log: w.log, Changed: w.announce,
		Root: func(ctx context.Context) (zygotes.Process, error) {
			root, err := zygote.Start(ctx, zygote.Config{
				Driver: driver, Name: zygotesName, Interpreter: w.starter.env.Python, Runner: w.starter.runner,
				OutputLimit: w.cfg.OutputLimit, MemoryLimit: w.cfg.ZygoteMemory, ImportTimeout: w.cfg.ImportTimeout, Log: w.log,
			})
			return sprung(root, nil, err)
		},
		Make: func(ctx context.Context, _ string, from zygotes.Process) (zygotes.Made, error) {
			return w.starter.ahead(ctx, from)
		},
	})
}

// sprout is a zygote with its measures, as package zygotes takes it.
type sprout struct {
	*zygote.Zygote
	facts zygotes.Facts
}

// sprung wraps what was grown from a parent's modules; nil for the root.
func sprung(z *zygote.Zygote, parent []string, err error) (zygotes.Process, error) {
	var unfit *zygote.UnfitError
	var wall *sandbox.WallError
	switch {
	case errors.As(err, &wall) && wall.Wall == "user": // it needs rights that the worker has not
		return nil, &zygotes.UnfitError{Why: wall.Error()}
	case errors.As(err, &unfit):
		return nil, &zygotes.UnfitError{Module: unfit.Module, Why: unfit.Why}
	case err != nil:
		return nil, err
	}
	facts := z.Facts()
	var took time.Duration
	for module, d := range facts.ImportTime {
		if !slices.Contains(parent, module) {
			took += d
		}
	}
	return &sprout{z, zygotes.Facts{Import: took, PrivateBytes: facts.PrivateBytes, SharedBytes: facts.SharedBytes, Loaded: facts.Loaded, Pid: facts.Pid}}, nil
}

// Grow implements zygotes.Process.
func (s *sprout) Grow(ctx context.Context, modules []string) (zygotes.Process, error) {
	grown, err := s.Zygote.Grow(ctx, modules)
	return sprung(grown, s.Zygote.Facts().Modules, err)
}

// Facts implements zygotes.Process.
func (s *sprout) Facts() zygotes.Facts { return s.facts }

// origin chooses what a call's new container starts from. Which packages the call
// brings decides too: a module that is loaded already cannot become another one.
func (w *Worker) origin(h *serverless.WorkerExecutionRequest, installed []string, cold bool) zygotes.Start {
	switch {
	case w.zygotes == nil || cold || h.GetDisableOptimizedExecution():
		return zygotes.Start{}
	case h.GetCheckpointId() != "":
		return w.zygotes.Named(h.GetCheckpointId(), installed)
	default:
		return w.zygotes.Take(h.GetResources(), installed)
	}
}

// announce tells every router that the worker's state is another.
func (w *Worker) announce() {
	for _, reporter := range w.reporters {
		reporter.Announce()
	}
}

// starts counts how calls came to their containers.
type starts struct{ cold, checkpoint, pooled, session atomic.Int64 }

// count notes how a call came to its container.
func (w *Worker) count(h *serverless.WorkerExecutionRequest, b *box.Box) {
	switch came(h, b) {
	case serverless.ContainerStart_CONTAINER_START_SESSION:
		w.starts.session.Add(1)
	case serverless.ContainerStart_CONTAINER_START_POOLED:
		w.starts.pooled.Add(1)
		w.zygotes.Started(b.Checkpoint, true)
	case serverless.ContainerStart_CONTAINER_START_CHECKPOINT:
		w.starts.checkpoint.Add(1)
		w.zygotes.Started(b.Checkpoint, false)
	default:
		w.starts.cold.Add(1)
	}
}

func (s *starts) counts() map[string]int64 {
	return map[string]int64{"cold": s.cold.Load(), "checkpoint": s.checkpoint.Load(), "pooled": s.pooled.Load(), "session": s.session.Load()}
}

// held are the zygotes that a router may send calls to.
func (w *Worker) held() ([]string, []*serverless.HeldZygote) {
	select {
	case <-w.ready:
	default:
		return nil, nil
	}
	if w.zygotes == nil {
		return nil, nil
	}
	var ids []string
	var list []*serverless.HeldZygote
	for _, v := range w.zygotes.Held() {
		ids = append(ids, v.ID)
		list = append(list, &serverless.HeldZygote{CheckpointId: v.ID, Modules: v.Needs, ImportNanos: int64(v.Import)})
	}
	return ids, list
}

// clash says which of the modules that packages bring a container has loaded
// already, "" if none.
func clash(b *box.Box, installed []string) string {
	for _, module := range installed {
		if b.Loaded[module] {
			return module
		}
	}
	return ""
}

// conflict is a clash, as an error.
func conflict(module string) error {
	return fmt.Errorf("%w: %s", errConflict, module)
}
