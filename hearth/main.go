// Command hearth runs Hearth and drives it.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/hearth-run/hearth/hearth/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	os.Exit(cli.Main(ctx, cli.Shell{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Environ: os.Environ(),
	}, os.Args[1:]))
}
