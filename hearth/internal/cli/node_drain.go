package cli

import (
	"context"
	"fmt"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
)

type nodeDrainCmd struct {
	Node string `arg:"" help:"Name or UID of the node."`
	controlFlags
}

func (c *nodeDrainCmd) Run(ctx context.Context, shell *Shell) error {
	clients, err := c.dial()
	if err != nil {
		return err
	}
	defer clients.close()
	uid, err := c.find(ctx, clients)
	if err != nil {
		return err
	}
	res, err := clients.nodes.DrainNode(ctx, &hearthv1.DrainNodeRequest{NodeUid: uid})
	if err != nil {
		return fmt.Errorf("drain node %s: %w", c.Node, err)
	}
	fmt.Fprintf(shell.Err, "node %s takes no new Runs; %d still on it\n", c.Node, res.GetRemaining())
	return nil
}

// find returns the UID of the node that is meant; of several processes with one
// name, the one that is not lost.
func (c *nodeDrainCmd) find(ctx context.Context, clients *clients) (string, error) {
	res, err := clients.nodes.ListNodes(ctx, &hearthv1.ListNodesRequest{})
	if err != nil {
		return "", fmt.Errorf("list nodes: %w", err)
	}
	for _, n := range res.GetNodes() {
		if n.GetUid() == c.Node || n.GetName() == c.Node && n.GetState() != hearthv1.NodeState_NODE_STATE_LOST {
			return n.GetUid(), nil
		}
	}
	return "", fmt.Errorf("no live node has the name or UID %s; see `hearth node list`", c.Node)
}
