package cli

import (
	"context"
	"fmt"
	"time"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/hearth/internal/output"
)

type runWaitCmd struct {
	Name    string        `arg:"" help:"Name of the Run."`
	For     string        `help:"What to wait for: ready (a function can be called) or end. A task is waited for to its end, and its exit code is the command's." enum:"ready,end" default:"ready"`
	Timeout time.Duration `help:"How long to wait; then the exit code is 124." default:"2m"`
	namespaceFlag
	outputFlag
	controlFlags
}

func (c *runWaitCmd) Run(ctx context.Context, shell *Shell) error {
	clients, err := c.dial()
	if err != nil {
		return err
	}
	defer clients.close()
	res, err := clients.runs.GetRun(ctx, &hearthv1.GetRunRequest{Namespace: c.Namespace, Name: c.Name})
	if err != nil {
		return fmt.Errorf("wait for Run %s: %w", c.Name, err)
	}
	run, err := await(ctx, clients.runs, res.GetRun(), c.Timeout, aim(res.GetRun(), c.For == "end"), progress(shell.Err))
	if err != nil {
		return verdict(run, err)
	}
	return output.One(shell.Out, c.Output, runView(), run)
}
