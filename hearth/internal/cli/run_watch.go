package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"connectrpc.com/connect/v2"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/gen/hearth/v1/hearthv1connect"
	"github.com/hearth-run/hearth/hearth/internal/output"
)

type runWatchCmd struct {
	Name string `arg:"" optional:"" help:"Only the Run of this name."`
	filterFlags
	outputFlag
	controlFlags
}

// Run prints the Runs that there are and then each change, until it is stopped.
func (c *runWatchCmd) Run(ctx context.Context, shell *Shell) error {
	filter, err := c.filter()
	if err != nil {
		return err
	}
	if c.Output == output.YAML {
		return usagef("-o yaml does not fit a watch: use json, which prints a line for each change")
	}
	clients, err := c.dial()
	if err != nil {
		return err
	}
	defer clients.close()
	err = watchRuns(ctx, clients.runs, filter, func(event *hearthv1.WatchRunsResponse) error {
		if event.GetRun() == nil || c.Name != "" && event.GetRun().GetName() != c.Name {
			return nil
		}
		return c.print(shell, event)
	})
	if ctx.Err() != nil {
		return nil // that is how a watch ends
	}
	return err
}

func (c *runWatchCmd) print(shell *Shell, event *hearthv1.WatchRunsResponse) error {
	switch c.Output {
	case output.JSON:
		return output.Line(shell.Out, event)
	case output.Name:
		_, err := fmt.Fprintln(shell.Out, event.GetRun().GetName())
		return err
	}
	kind := strings.TrimPrefix(event.GetType().String(), "RUN_EVENT_TYPE_")
	_, err := fmt.Fprintf(shell.Out, "%-9s %s\n", kind, story(event.GetRun()))
	return err
}

// watchRuns follows from the beginning and, where the watch breaks off, from
// where it was; a control plane that forgot that point is asked for all again.
func watchRuns(ctx context.Context, runs hearthv1connect.RunServiceClient, filter *hearthv1.RunFilter, each func(*hearthv1.WatchRunsResponse) error) error {
	version := int64(0)
	for {
		from := version
		err := watchOnce(ctx, runs, filter, &version, each)
		switch {
		case connect.CodeOf(err) == connect.CodeOutOfRange:
			version = 0
		case errors.Is(err, errCut) && version > from:
		default:
			return err
		}
	}
}

// errCut is a watch that broke off after it had worked.
var errCut = errors.New("watch was cut")

func watchOnce(ctx context.Context, runs hearthv1connect.RunServiceClient, filter *hearthv1.RunFilter, version *int64, each func(*hearthv1.WatchRunsResponse) error) error {
	stream, err := runs.WatchRuns(ctx, &hearthv1.WatchRunsRequest{Filter: filter, ResourceVersion: *version})
	if err != nil {
		return fmt.Errorf("watch Runs: %w", err)
	}
	defer stream.Close()
	for {
		event, err := stream.Receive()
		if err != nil {
			return errors.Join(errCut, fmt.Errorf("watch Runs: %w", err))
		}
		*version = max(*version, event.GetResourceVersion())
		if err := each(event); err != nil {
			return err
		}
	}
}
