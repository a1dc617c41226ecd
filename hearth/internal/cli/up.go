package cli

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/hearth-run/hearth/hearth/internal/house"
	"github.com/hearth-run/hearth/internal/kit/logs"
)

type upCmd struct {
	house.Config `embed:""`
}

// Run runs everything in this process until it is told to stop.
func (c *upCmd) Run(ctx context.Context, shell *Shell, cfg *logs.Config) error {
	log, err := shell.log(*cfg)
	if err != nil {
		return err
	}
	tune(shell.Environ)
	start := time.Now()
	h, err := house.New(ctx, c.Config, log)
	if err != nil {
		return err
	}
	return h.Run(ctx, func(where house.Addresses) {
		fmt.Fprintf(shell.Err, "Hearth is ready after %v; data in %s\n", time.Since(start).Round(time.Millisecond), c.Data)
		announce(shell, where)
	})
}

// announce prints the addresses, one a line, for people and scripts.
func announce(shell *Shell, where house.Addresses) {
	fmt.Fprintf(shell.Out, "gateway        %s\n", where.Gateway)
	fmt.Fprintf(shell.Out, "controlplane   %s\n", where.ControlPlane)
	if where.Router != "" {
		fmt.Fprintf(shell.Out, "router         %s\n", where.Router)
	}
	for _, name := range slices.Sorted(maps.Keys(where.Runtimes)) {
		fmt.Fprintf(shell.Out, "%-14s %s\n", name, where.Runtimes[name])
	}
}

// Heap settings of a server whose garbage is mostly payloads: a collection at
// every doubling costs more than the memory that it saves, up to this much.
const (
	gcPercent   = 400
	memoryLimit = 2 << 30
)

// tune sets them unless the environment says otherwise.
func tune(environ []string) {
	if !has(environ, "GOGC") {
		debug.SetGCPercent(gcPercent)
	}
	if !has(environ, "GOMEMLIMIT") {
		debug.SetMemoryLimit(memoryLimit)
	}
}

func has(environ []string, name string) bool {
	return slices.ContainsFunc(environ, func(entry string) bool { return strings.HasPrefix(entry, name+"=") })
}

// defaultData is where `up` keeps its data if it is not told: the user's data
// folder by the XDG rules.
func defaultData(environ []string) string {
	for _, entry := range environ {
		if dir, ok := strings.CutPrefix(entry, "XDG_DATA_HOME="); ok && filepath.IsAbs(dir) {
			return filepath.Join(dir, "hearth")
		}
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "hearth-data"
	}
	return filepath.Join(home, ".local", "share", "hearth")
}

// log returns a logger on standard error.
func (s *Shell) log(cfg logs.Config) (*slog.Logger, error) {
	if file, ok := s.Err.(*os.File); ok {
		return logs.New(file, cfg)
	}
	return slog.New(slog.NewTextHandler(s.Err, nil)), nil
}
