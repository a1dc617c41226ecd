package cli

import (
	"context"

	"github.com/hearth-run/hearth/internal/kit/logs"
	"github.com/hearth-run/hearth/services/runtimed"
)

// runtimedCmd is the service as a process of its own, with its own settings.
type runtimedCmd struct {
	runtimed.Process `embed:""`
}

func (c *runtimedCmd) Run(ctx context.Context, shell *Shell, cfg *logs.Config) error {
	log, err := shell.log(*cfg)
	if err != nil {
		return err
	}
	tune(shell.Environ)
	return c.Process.Run(ctx, log)
}
