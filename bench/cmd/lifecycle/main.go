// Command lifecycle measures the life of Runs on a real set of processes, one
// control plane, some nodes, each with its Runtime Server, and a gateway: how long
// a Run takes from its creation to Ready, how many a second there are, how soon a
// control plane with many stored Runs has routes again after kill -9, and what a
// stored Run costs a gateway.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
)

type flags struct {
	Runs     int           `help:"Runs to create for each runtime." default:"1000"`
	Callers  int           `help:"How many creates at once." default:"25"`
	Nodes    int           `help:"Nodes, each with a Runtime Server of its own." default:"4"`
	Runtimes []string      `help:"Runtimes to measure." default:"bash,python"`
	Delete   bool          `help:"Measure also how long it takes until all are deleted."`
	Stored   int           `help:"Runs that are stored when the control plane restarts; 0 leaves that out." default:"10000"`
	Programs string        `help:"Folder with hearth and hearth-runtime-*, built already; empty builds them." type:"existingdir"`
	Within   time.Duration `help:"How long the whole may take." default:"15m"`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	var f flags
	kong.Parse(&f, kong.Description("Measures the life of Runs on a set of processes."))
	ctx, cancel := context.WithTimeout(ctx, f.Within)
	defer cancel()
	if err := measure(ctx, f); err != nil {
		fmt.Fprintln(os.Stderr, "lifecycle:", err)
		os.Exit(1)
	}
}

func measure(ctx context.Context, f flags) (err error) {
	dir, err := os.MkdirTemp("", "hearth-lifecycle-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	fleet := newFleet(dir)
	defer func() { err = errors.Join(err, fleet.close()) }()
	if f.Programs != "" {
		fleet.programs = f.Programs
	} else if err := fleet.build(ctx, f.Runtimes); err != nil {
		return err
	}
	fmt.Printf("%s, %d cores, %s; %d callers, %d nodes\n\n", runtime.Version(), runtime.NumCPU(), time.Now().UTC().Format(time.DateOnly), f.Callers, f.Nodes)
	for _, name := range f.Runtimes {
		if err := creates(ctx, f, fleet, name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if f.Stored == 0 {
		return nil
	}
	return restart(ctx, f, fleet)
}
