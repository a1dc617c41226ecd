package cli

import (
	"context"
	"fmt"
	"strings"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/gen/hearth/v1/hearthv1connect"
	"github.com/hearth-run/hearth/hearth/internal/output"
)

// filterFlags choose Runs.
type filterFlags struct {
	namespaceFlag
	AllNamespaces bool              `short:"A" help:"Runs of every namespace."`
	Label         map[string]string `short:"l" mapsep:"none" help:"Only Runs with this label; may be repeated." placeholder:"KEY=VALUE"`
	Phase         []string          `help:"Only Runs in this phase, as ready or failed; may be repeated."`
	Runtime       string            `short:"r" help:"Only Runs of this runtime."`
}

func (f filterFlags) filter() (*hearthv1.RunFilter, error) {
	filter := &hearthv1.RunFilter{Namespace: f.Namespace, Labels: f.Label, Runtime: f.Runtime}
	if f.AllNamespaces {
		filter.Namespace = ""
	}
	for _, name := range f.Phase {
		value, ok := hearthv1.RunPhase_value["RUN_PHASE_"+strings.ToUpper(name)]
		if !ok || value == 0 {
			return nil, usagef("--phase %s: want pending, scheduled, running, ready, succeeded, failed, timeout or cancelled", name)
		}
		filter.Phases = append(filter.Phases, hearthv1.RunPhase(value))
	}
	return filter, nil
}

// view is the table of Runs, with the namespace where there can be several.
func (f filterFlags) view() output.View[*hearthv1.Run] {
	view := runView()
	if !f.AllNamespaces {
		return view
	}
	row := view.Row
	view.Columns = append([]string{"NAMESPACE"}, view.Columns...)
	view.Row = func(r *hearthv1.Run) []string { return append([]string{r.GetNamespace()}, row(r)...) }
	return view
}

type runListCmd struct {
	filterFlags
	outputFlag
	controlFlags
}

func (c *runListCmd) Run(ctx context.Context, shell *Shell) error {
	filter, err := c.filter()
	if err != nil {
		return err
	}
	clients, err := c.dial()
	if err != nil {
		return err
	}
	defer clients.close()
	list, err := listRuns(ctx, clients.runs, filter)
	if err != nil {
		return err
	}
	return output.List(shell.Out, c.Output, c.view(), list)
}

// listRuns reads every page.
func listRuns(ctx context.Context, runs hearthv1connect.RunServiceClient, filter *hearthv1.RunFilter) ([]*hearthv1.Run, error) {
	var list []*hearthv1.Run
	req := &hearthv1.ListRunsRequest{Filter: filter, PageSize: 1000}
	for {
		res, err := runs.ListRuns(ctx, req)
		if err != nil {
			return nil, fmt.Errorf("list Runs: %w", err)
		}
		list = append(list, res.GetRuns()...)
		if res.GetNextPageToken() == "" {
			return list, nil
		}
		req = &hearthv1.ListRunsRequest{Filter: filter, PageSize: 1000, PageToken: res.GetNextPageToken()}
	}
}
