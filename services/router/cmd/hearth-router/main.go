// Command hearth-router runs a router.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/hearth-run/hearth/internal/kit/config"
	"github.com/hearth-run/hearth/internal/kit/logs"
	"github.com/hearth-run/hearth/services/router"
)

func main() {
	var flags struct {
		router.Process `embed:""`
		Log            logs.Config `embed:"" prefix:"log-"`
	}
	parser, err := config.Parser(&flags)
	parser.FatalIfErrorf(err)
	_, err = parser.Parse(os.Args[1:])
	parser.FatalIfErrorf(err)
	parser.FatalIfErrorf(config.CheckEnviron(parser, os.Environ()))
	log, err := logs.New(os.Stderr, flags.Log)
	parser.FatalIfErrorf(err)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	parser.FatalIfErrorf(flags.Run(ctx, log))
}
