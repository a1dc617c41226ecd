package worker

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/hearth-run/hearth/gen/serverless"
	"github.com/hearth-run/hearth/pyrunner"
	"github.com/hearth-run/hearth/services/worker/internal/packages"
	"github.com/hearth-run/hearth/services/worker/internal/pyenv"
)

// Run tells the routers, prepares the Python environment and serves until ctx is
// done; then it refuses calls, lets those that run go on for Config.Drain, ends
// every container and says goodbye. A worker whose environment cannot be made
// stays, reports ERROR and says why.
func (w *Worker) Run(ctx context.Context) error {
	telling, hush := context.WithCancel(context.WithoutCancel(ctx))
	defer hush()
	var tellers sync.WaitGroup
	for _, reporter := range w.reporters {
		tellers.Go(func() { reporter.Run(telling) })
	}
	w.prepare(ctx)
	forked, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	if w.zygotes != nil {
		tellers.Go(func() { w.zygotes.Run(forked) })
	}
	<-ctx.Done()
	w.refuse()
	w.announce()
	w.drain()
	close(w.stop)
	w.owners.Wait()
	cut()
	hush()
	tellers.Wait()
	for _, reporter := range w.reporters {
		reporter.Leave(context.WithoutCancel(ctx))
	}
	return w.driver.Close()
}

// prepare equips the worker and tells what came of it. Routers know it meanwhile as
// BUSY, so that calls can wait for it.
func (w *Worker) prepare(ctx context.Context) {
	err := w.equip(ctx)
	if err != nil && ctx.Err() == nil {
		w.log.Error("the worker cannot start containers", "err", err)
	}
	w.mu.Lock()
	w.broken, w.prepared = err, true
	w.mu.Unlock()
	close(w.ready)
	w.log.Info("worker is prepared")
	w.announce()
}

// equip makes what every container needs.
func (w *Worker) equip(ctx context.Context) error {
	run, sets, err := folders(w.cfg.DataDir)
	if err != nil {
		return fmt.Errorf("make the worker's folders: %w", err)
	}
	runner, err := pyrunner.Install(filepath.Join(w.cfg.DataDir, "pyrunner"))
	if err != nil {
		return err
	}
	env, err := pyenv.Prepare(ctx, pyenv.Config{
		Folder: filepath.Join(w.cfg.DataDir, "python"), Python: w.cfg.Python, InstallArgs: w.cfg.InstallArgs,
		Packages: w.cfg.EnvPackages,
	}, w.log)
	if err != nil {
		return err
	}
	uv, _ := exec.LookPath("uv") // absent: pip
	installer := packages.Installer{Python: env.Python, UV: uv, CacheDir: filepath.Join(w.cfg.DataDir, "wheels"), Args: w.cfg.InstallArgs}
	w.cache, err = packages.Open(packages.Config{Root: sets, Install: installer.Install}, w.log)
	if err != nil {
		return fmt.Errorf("open package cache: %w", err)
	}
	// The cache makes its folder listable; containers must not list it.
	if err := os.Chmod(sets, 0o711); err != nil {
		return err
	}
	w.starter = &starter{cfg: w.cfg, driver: w.driver, env: env, runner: runner, run: run, packages: sets, log: w.log}
	w.zygotes = w.nursery()
	return nil
}

// refuse lets no further call in.
func (w *Worker) refuse() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopping = true
}

// drain waits for the calls that run, no longer than Config.Drain.
func (w *Worker) drain() {
	w.mu.Lock()
	running := len(w.flights)
	if running > 0 {
		w.drained = make(chan struct{})
	}
	drained := w.drained
	w.mu.Unlock()
	if running == 0 {
		return
	}
	timer := time.NewTimer(w.cfg.Drain)
	defer timer.Stop()
	select {
	case <-drained:
	case <-timer.C:
		w.log.Warn("drain cut short", "after", w.cfg.Drain)
	}
}

// Worker implements reports.Source.
func (w *Worker) Worker() *serverless.WorkerStatus {
	address := w.cfg.Address
	if address == "" {
		address = w.address()
	}
	ids, list := w.held()
	w.mu.Lock()
	defer w.mu.Unlock()
	status := serverless.Status_STATUS_READY
	switch {
	case !w.prepared:
		status = serverless.Status_STATUS_BUSY
	case w.stopping:
		status = serverless.Status_STATUS_REMOVED
	case w.broken != nil:
		status = serverless.Status_STATUS_ERROR
	}
	return &serverless.WorkerStatus{
		WorkerId: w.cfg.ID, WorkerUri: address, Status: status, MemTotal: w.cfg.Memory,
		MaxExecutors: int32(w.cfg.MaxContainers), Flavor: w.cfg.Flavor, GpuMemTotal: w.cfg.GPUMemory, Incarnation: w.life,
		CheckpointIds: ids, Zygotes: list,
	}
}

// Containers implements reports.Source.
func (w *Worker) Containers() []*serverless.ExecutorStatus {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := make([]*serverless.ExecutorStatus, 0, len(w.boxes))
	for _, e := range w.boxes {
		out = append(out, e.status)
	}
	return out
}
