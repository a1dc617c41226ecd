// Command hearth-runtime-bash is the Runtime Server for functions in Bash.
package main

import (
	"context"
	"os/signal"
	"syscall"

	"github.com/hearth-run/hearth/adapters/bash"
	"github.com/hearth-run/hearth/adapters/internal/command"
)

func main() {
	var flags struct {
		command.Flags
		bash.Config `embed:""`
	}
	parser, log := command.Parse(&flags, &flags.Flags, "127.0.0.1:9091")
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	language, err := bash.New(flags.Config)
	parser.FatalIfErrorf(err)
	parser.FatalIfErrorf(flags.Serve(ctx, log, language))
}
