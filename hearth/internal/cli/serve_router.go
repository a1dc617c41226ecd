package cli

import (
	"context"

	"github.com/hearth-run/hearth/internal/kit/logs"
	"github.com/hearth-run/hearth/services/router"
)

// routerCmd is the service as a process of its own, with its own settings.
type routerCmd struct {
	router.Process `embed:""`
}

func (c *routerCmd) Run(ctx context.Context, shell *Shell, cfg *logs.Config) error {
	log, err := shell.log(*cfg)
	if err != nil {
		return err
	}
	// Not tuned: what streams through shall not be held, garbage included.
	return c.Process.Run(ctx, log)
}
