package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/gen/hearth/v1/hearthv1connect"

	"github.com/hearth-run/hearth/bench/internal/peer"
)

// creates measures create → Ready on nodes of one runtime, beside a control plane
// of their own, and ends them all.
func creates(ctx context.Context, f flags, fleet *fleet, runtime string) (err error) {
	defer func() { err = errors.Join(err, fleet.stop()) }()
	if err := fleet.start(ctx, "controlplane", "hearth", fleet.controlPlane(runtime)...); err != nil {
		return err
	}
	for i := range f.Nodes {
		if err := fleet.node(ctx, runtime, i); err != nil {
			return err
		}
	}
	runs, err := fleet.runs()
	if err != nil {
		return err
	}
	board := newBoard(runs)
	ctx, cancel := context.WithCancelCause(ctx)
	var watching sync.WaitGroup
	watching.Go(func() {
		if err := board.follow(ctx); ctx.Err() == nil {
			cancel(fmt.Errorf("watch Runs: %w", err))
		}
	})
	defer watching.Wait()
	defer cancel(nil)
	spec := echo(runtime)
	before, err := fleet.spent()
	if err != nil {
		return err
	}
	start := time.Now()
	took, err := each(ctx, f.Runs, f.Callers, func(i int) error {
		return board.create(ctx, fmt.Sprintf("%s-%d", runtime, i), spec, hearthv1.RunPhase_RUN_PHASE_READY)
	})
	elapsed := time.Since(start)
	if err != nil {
		return err
	}
	fmt.Printf("%-6s create → Ready: p50 %v, p95 %v; %d Runs in %v, %.0f Runs/s\n", runtime,
		quantile(took, 0.5), quantile(took, 0.95), f.Runs, elapsed.Round(time.Millisecond), float64(f.Runs)/elapsed.Seconds())
	after, err := fleet.spent()
	if err != nil {
		return err
	}
	fmt.Printf("%-6s CPU a Run: %s\n", runtime, after.minus(before).per(f.Runs))
	if !f.Delete {
		return nil
	}
	start = time.Now()
	if _, err := each(ctx, f.Runs, f.Callers, func(i int) error { return board.remove(ctx, fmt.Sprintf("%s-%d", runtime, i)) }); err != nil {
		return err
	}
	fmt.Printf("%-6s delete → gone: %d Runs in %v\n", runtime, f.Runs, time.Since(start).Round(time.Millisecond))
	return nil
}

func echo(runtime string) *hearthv1.RunSpec {
	for _, fn := range peer.Functions() {
		if fn.Runtime == runtime {
			return fn.Spec()
		}
	}
	return nil
}

// each does a piece of work n times, by so many callers at once, and returns how
// long each took, in order of length.
func each(ctx context.Context, n, callers int, work func(i int) error) ([]time.Duration, error) {
	var next atomic.Int64
	var group sync.WaitGroup
	took, errs := make([]time.Duration, n), make([]error, callers)
	for c := range callers {
		group.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && errs[c] == nil && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				start := time.Now()
				errs[c] = work(i)
				took[i] = time.Since(start)
			}
		})
	}
	group.Wait()
	slices.Sort(took)
	return took, errors.Join(append(errs, context.Cause(ctx))...)
}

func quantile(sorted []time.Duration, share float64) time.Duration {
	return sorted[int(share*float64(len(sorted)-1))].Round(100 * time.Microsecond)
}

// board tells callers what the one watch says about their Runs.
type board struct {
	runs hearthv1connect.RunServiceClient

	mu sync.Mutex // guards waits
	// waits are by name.
	waits map[string]wait
}

type wait struct {
	phase hearthv1.RunPhase // 0 is for its removal
	done  chan error
}

func newBoard(runs hearthv1connect.RunServiceClient) *board {
	return &board{runs: runs, waits: map[string]wait{}}
}

func (b *board) follow(ctx context.Context) error {
	stream, err := b.runs.WatchRuns(ctx, &hearthv1.WatchRunsRequest{})
	if err != nil {
		return err
	}
	defer stream.Close()
	for {
		event, err := stream.Receive()
		if err != nil {
			return err
		}
		if event.GetRun() != nil {
			b.tell(event)
		}
	}
}

func (b *board) tell(event *hearthv1.WatchRunsResponse) {
	b.mu.Lock()
	defer b.mu.Unlock()
	run := event.GetRun()
	w, waited := b.waits[run.GetName()]
	phase := run.GetStatus().GetPhase()
	switch {
	case !waited:
		return
	case event.GetType() == hearthv1.RunEventType_RUN_EVENT_TYPE_DELETED && w.phase == 0, w.phase != 0 && phase == w.phase:
		w.done <- nil
	case w.phase != 0 && phase > hearthv1.RunPhase_RUN_PHASE_READY:
		w.done <- fmt.Errorf("run %s has ended: %s", run.GetName(), run.GetStatus().GetMessage())
	default:
		return
	}
	delete(b.waits, run.GetName())
}

// expect waits for the phase that begin leads to.
func (b *board) expect(ctx context.Context, name string, phase hearthv1.RunPhase, begin func() error) error {
	done := make(chan error, 1)
	b.mu.Lock()
	b.waits[name] = wait{phase, done}
	b.mu.Unlock()
	if err := begin(); err != nil {
		return err
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("wait for Run %s: %w", name, context.Cause(ctx))
	}
}

func (b *board) create(ctx context.Context, name string, spec *hearthv1.RunSpec, phase hearthv1.RunPhase) error {
	return b.expect(ctx, name, phase, func() error {
		_, err := b.runs.CreateRun(ctx, &hearthv1.CreateRunRequest{Name: name, Spec: spec})
		return err
	})
}

func (b *board) remove(ctx context.Context, name string) error {
	return b.expect(ctx, name, 0, func() error {
		_, err := b.runs.DeleteRun(ctx, &hearthv1.DeleteRunRequest{Name: name})
		return err
	})
}
