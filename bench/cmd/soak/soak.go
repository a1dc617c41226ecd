package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hearth-run/hearth/bench/internal/load"
	"github.com/hearth-run/hearth/bench/internal/peer"
	"github.com/hearth-run/hearth/internal/kit/dial"
)

// soak starts a house, calls it and prints the series.
func soak(ctx context.Context, f flags) (err error) {
	if f.Calls < 1 || f.Every < 1 || f.Callers < 1 {
		return fmt.Errorf("calls %d, every %d, callers %d: each must be at least 1", f.Calls, f.Every, f.Callers)
	}
	dir, err := os.MkdirTemp("", "hearth-soak-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	program, err := peer.Build(ctx, f.Hearth, dir)
	if err != nil {
		return err
	}
	house, err := start(ctx, f, program, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, house.Stop()) }()
	dialer := dial.New(nil)
	defer dialer.Close()
	callers, err := open(ctx, f, dialer, house)
	if err != nil {
		return err
	}
	fmt.Printf("%s, %d cores, %s; %s, %d calls, callers: %d\n\n", runtime.Version(), runtime.NumCPU(), time.Now().UTC().Format(time.DateOnly), f.Plane, f.Calls, f.Callers)
	return series(ctx, f, callers, house.PID(), dir)
}

// series makes the calls and prints a line before the first and after every
// f.Every of them. The first calls of a house fill its caches, so that the line
// after them is the one to compare with.
func series(ctx context.Context, f flags, callers []load.Caller, pid int, dir string) error {
	fmt.Println(header)
	begin := time.Now()
	var looks []held
	for done := 0; ; {
		held, err := look(pid, dir)
		if err != nil {
			return err
		}
		fmt.Println(held.row(done, time.Since(begin)))
		looks = append(looks, held)
		if done == f.Calls {
			if f.Chart {
				fmt.Print(chart(f, looks[1:]))
			}
			return nil
		}
		n := min(f.Every, f.Calls-done)
		if err := share(ctx, callers, n); err != nil {
			return fmt.Errorf("after %d calls: %w", done, err)
		}
		done += n
	}
}

// share has the callers make n calls together; the first error ends it.
func share(ctx context.Context, callers []load.Caller, n int) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var left atomic.Int64
	left.Store(int64(n))
	var all sync.WaitGroup
	for _, call := range callers {
		all.Go(func() {
			for ctx.Err() == nil && left.Add(-1) >= 0 {
				if err := call(ctx); err != nil {
					cancel(err)
				}
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// start starts a house with what the calls need and nothing more.
func start(ctx context.Context, f flags, program, dir string) (*peer.Process, error) {
	args := []string{"up", "--log-level", "warn", "--data", filepath.Join(dir, "data"), "--gateway", "127.0.0.1:0", "--control-plane", "127.0.0.1:0"}
	if f.Plane == "functions" {
		return peer.Start(ctx, []string{"gateway", "controlplane"}, program, append(args, "--runtimes", f.Runtime, "--router", "")...)
	}
	args = append(args, "--router", "127.0.0.1:0")
	if f.Python != "" {
		args = append(args, "--executor-python", f.Python)
	}
	return peer.Start(ctx, []string{"router"}, program, args...)
}
