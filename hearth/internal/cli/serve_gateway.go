package cli

import (
	"context"

	"github.com/hearth-run/hearth/internal/kit/logs"
	"github.com/hearth-run/hearth/services/gateway"
)

// gatewayCmd is the service as a process of its own, with its own settings.
type gatewayCmd struct {
	gateway.Process `embed:""`
}

func (c *gatewayCmd) Run(ctx context.Context, shell *Shell, cfg *logs.Config) error {
	log, err := shell.log(*cfg)
	if err != nil {
		return err
	}
	tune(shell.Environ)
	return c.Process.Run(ctx, log)
}
