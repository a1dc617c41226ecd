package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/hearth/internal/output"
)

type runDeleteCmd struct {
	Names       []string      `arg:"" name:"name" help:"Names of Runs."`
	Wait        bool          `short:"w" help:"Return once the Run is removed."`
	WaitTimeout time.Duration `help:"How long --wait waits; then the exit code is 124." default:"2m"`
	namespaceFlag
	outputFlag
	controlFlags
}

func (c *runDeleteCmd) Run(ctx context.Context, shell *Shell) error {
	clients, err := c.dial()
	if err != nil {
		return err
	}
	defer clients.close()
	var runs []*hearthv1.Run
	for _, name := range c.Names {
		res, err := clients.runs.DeleteRun(ctx, &hearthv1.DeleteRunRequest{Namespace: c.Namespace, Name: name})
		if err != nil {
			return fmt.Errorf("delete Run %s: %w", name, err)
		}
		run := res.GetRun()
		if c.Wait {
			if run, err = await(ctx, clients.runs, run, c.WaitTimeout, toRemoval, progress(shell.Err)); !errors.Is(err, errRemoved) {
				return err
			}
		}
		runs = append(runs, run)
	}
	return output.List(shell.Out, c.Output, runView(), runs)
}
