package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/gen/hearth/v1/hearthv1connect"
)

// restart stores many Runs, measures what they cost a gateway, and how soon the
// control plane has their routes again after kill -9.
func restart(ctx context.Context, f flags, fleet *fleet) error {
	if err := fleet.start(ctx, "controlplane", "hearth", fleet.controlPlane("stored")...); err != nil {
		return err
	}
	gateway := []string{"gateway", "--listen", fleet.address("gateway"), "--control-plane", fleet.address("controlplane")}
	if err := fleet.start(ctx, "gateway", "hearth", gateway...); err != nil {
		return err
	}
	empty, err := resident(fleet.pid("gateway"))
	if err != nil {
		return err
	}
	runs, err := fleet.runs()
	if err != nil {
		return err
	}
	// No node has this runtime: the Runs are stored and wait.
	spec := echo("bash")
	spec.Runtime = "nobody"
	start := time.Now()
	if _, err := each(ctx, f.Stored, f.Callers, func(i int) error {
		_, err := runs.CreateRun(ctx, &hearthv1.CreateRunRequest{Name: fmt.Sprintf("stored-%d", i), Spec: spec})
		return err
	}); err != nil {
		return err
	}
	fmt.Printf("\n%d Runs stored in %v\n", f.Stored, time.Since(start).Round(time.Millisecond))
	if err := fleet.kill("controlplane"); err != nil {
		return err
	}
	start = time.Now()
	if err := fleet.launch("controlplane", "hearth", fleet.controlPlane("stored")...); err != nil {
		return err
	}
	if err := snapshot(ctx, fleet, f.Stored, start); err != nil {
		return err
	}
	// A new gateway, whose memory has no history but this one snapshot.
	if err := fleet.kill("gateway"); err != nil {
		return err
	}
	if err := fleet.start(ctx, "gateway", "hearth", gateway...); err != nil {
		return err
	}
	full, err := resident(fleet.pid("gateway"))
	if err != nil {
		return err
	}
	fmt.Printf("gateway: %d KiB resident empty, %d KiB with %d Runs: %d bytes a stored Run, garbage of the snapshot counted\n",
		empty>>10, full>>10, f.Stored, (full-empty)/int64(f.Stored))
	return nil
}

// snapshot asks for routes from the moment of the start on, and prints when the
// first and the last of them came.
func snapshot(ctx context.Context, fleet *fleet, want int, start time.Time) error {
	ctx, cancel := context.WithTimeoutCause(ctx, beginTime, errors.New("the control plane had no routes in time"))
	defer cancel()
	routes, err := fleet.routes()
	if err != nil {
		return err
	}
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		first, all, got, err := look(ctx, routes, start)
		if err == nil && got != want {
			return fmt.Errorf("%d routes came back of %d Runs", got, want)
		}
		if err == nil {
			fmt.Printf("restart after kill -9: first route after %v, all %d after %v\n", first.Round(time.Millisecond), got, all.Round(time.Millisecond))
			return nil
		}
		select {
		case <-tick.C: // it does not serve yet
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// look reads one snapshot of routes: when its first and its last message came.
func look(ctx context.Context, routes hearthv1connect.RouteServiceClient, start time.Time) (first, all time.Duration, got int, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := routes.WatchRoutes(ctx, &hearthv1.WatchRoutesRequest{})
	if err != nil {
		return 0, 0, 0, err
	}
	defer stream.Close()
	for {
		event, err := stream.Receive()
		if err != nil {
			return 0, 0, 0, err
		}
		if got += len(event.GetRoutes()); first == 0 {
			first = time.Since(start)
		}
		if event.GetSnapshotComplete() {
			return first, time.Since(start), got, nil
		}
	}
}

// resident is the memory that a process holds, in bytes.
func resident(pid int) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return kib << 10, err
		}
	}
	return 0, errors.New("no VmRSS in the process's status")
}
