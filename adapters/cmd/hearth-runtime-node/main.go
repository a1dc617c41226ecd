// Command hearth-runtime-node is the Runtime Server for functions in JavaScript.
package main

import (
	"context"
	"os/signal"
	"syscall"

	"github.com/hearth-run/hearth/adapters/internal/command"
	"github.com/hearth-run/hearth/adapters/node"
)

func main() {
	var flags struct {
		command.Flags
		Node string `help:"Program that runs functions: a path, or a name on PATH." default:"node"`
	}
	parser, log := command.Parse(&flags, &flags.Flags, "127.0.0.1:9093")
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	language, err := node.New(flags.Node)
	parser.FatalIfErrorf(err)
	parser.FatalIfErrorf(flags.Serve(ctx, log, language))
}
