// Package daemon owns what the small binaries do alike, each of which runs one
// service and nothing else.
package daemon

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/hearth-run/hearth/internal/kit/config"
	"github.com/hearth-run/hearth/internal/kit/logs"
)

// Process is a service as a process of its own: its fields are the settings.
type Process interface {
	// Run serves until ctx is done.
	Run(ctx context.Context, log *slog.Logger) error
}

// Main is the whole of a command: it reads the settings of P from flags, HEARTH_*
// variables and defaults, logs to standard error and runs until SIGINT or SIGTERM.
// Settings that are wrong and a service that fails end the process with a message
// and a status that is not 0.
func Main[P Process]() {
	var flags struct {
		Process P           `embed:""`
		Log     logs.Config `embed:"" prefix:"log-"`
	}
	parser, err := config.Parser(&flags)
	if err != nil {
		panic(err) // a mistake in the tags of P
	}
	_, err = parser.Parse(os.Args[1:])
	parser.FatalIfErrorf(err)
	parser.FatalIfErrorf(config.CheckEnviron(parser, os.Environ()))
	log, err := logs.New(os.Stderr, flags.Log)
	parser.FatalIfErrorf(err)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	parser.FatalIfErrorf(flags.Process.Run(ctx, log))
}
