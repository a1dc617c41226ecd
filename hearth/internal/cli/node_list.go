package cli

import (
	"context"
	"fmt"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/hearth/internal/output"
)

type nodeListCmd struct {
	outputFlag
	controlFlags
}

func (c *nodeListCmd) Run(ctx context.Context, shell *Shell) error {
	clients, err := c.dial()
	if err != nil {
		return err
	}
	defer clients.close()
	res, err := clients.nodes.ListNodes(ctx, &hearthv1.ListNodesRequest{})
	if err != nil {
		return fmt.Errorf("list nodes: %w", err)
	}
	return output.List(shell.Out, c.Output, nodeView(), res.GetNodes())
}
