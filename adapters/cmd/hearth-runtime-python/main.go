// Command hearth-runtime-python is the Runtime Server for functions in Python.
package main

import (
	"context"
	"os/signal"
	"syscall"

	"github.com/hearth-run/hearth/adapters/internal/command"
	"github.com/hearth-run/hearth/adapters/python"
)

func main() {
	var flags struct {
		command.Flags
		python.Config `embed:""`
	}
	parser, log := command.Parse(&flags, &flags.Flags, "127.0.0.1:9090")
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	language, err := python.New(ctx, flags.Config, python.Deps{Log: log})
	parser.FatalIfErrorf(err)
	parser.FatalIfErrorf(flags.Serve(ctx, log, language))
}
