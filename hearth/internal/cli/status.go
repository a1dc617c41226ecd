package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/hearth/internal/output"
	"github.com/hearth-run/hearth/internal/kit/dial"
)

type statusCmd struct {
	Output output.Format `short:"o" help:"How to print: table, json or yaml." enum:"table,json,yaml" default:"table"`
	controlFlags
	gatewayFlags
}

// state is what status prints.
type state struct {
	ControlPlane string         `json:"controlPlane" yaml:"controlPlane"`
	Gateway      string         `json:"gateway" yaml:"gateway"`
	Nodes        map[string]int `json:"nodes" yaml:"nodes"`
	Runs         map[string]int `json:"runs" yaml:"runs"`
}

// statusTime bounds the whole look.
const statusTime = 10 * time.Second

// Run fails where a service cannot be reached or is not ready, after it has said
// all that it found.
func (c *statusCmd) Run(ctx context.Context, shell *Shell) error {
	ctx, cancel := context.WithTimeout(ctx, statusTime)
	defer cancel()
	s := state{Nodes: map[string]int{}, Runs: map[string]int{}}
	var bad error
	s.ControlPlane, bad = health(ctx, c.ControlPlane, nil)
	s.Gateway, bad = health(ctx, c.Gateway, bad)
	bad = errors.Join(bad, c.count(ctx, &s))
	if err := s.print(shell, c.Output); err != nil {
		return err
	}
	return bad
}

// health asks a service whether it is ready.
func health(ctx context.Context, address string, before error) (string, error) {
	dialer := dial.New(nil)
	defer dialer.Close()
	err := ready(ctx, dialer, address)
	if err == nil {
		return address + " ready", before
	}
	return address + " not ready", errors.Join(before, err)
}

func (c *statusCmd) count(ctx context.Context, s *state) error {
	clients, err := c.dial()
	if err != nil {
		return err
	}
	defer clients.close()
	nodes, err := clients.nodes.ListNodes(ctx, &hearthv1.ListNodesRequest{})
	if err != nil {
		return fmt.Errorf("list nodes: %w", err)
	}
	for _, n := range nodes.GetNodes() {
		s.Nodes[n.GetRuntime()+" "+strings.ToLower(nodeState(n))]++
	}
	runs, err := listRuns(ctx, clients.runs, nil)
	if err != nil {
		return err
	}
	for _, r := range runs {
		s.Runs[strings.ToLower(phase(r))]++
	}
	return nil
}

func (s state) print(shell *Shell, f output.Format) error {
	if f != output.Table {
		return output.Value(shell.Out, f, s)
	}
	return output.Rows(shell.Out, nil, [][]string{
		{"Control plane:", s.ControlPlane},
		{"Gateway:", s.Gateway},
		{"Nodes:", counts(s.Nodes)},
		{"Runs:", counts(s.Runs)},
	})
}

func counts(m map[string]int) string {
	var list []string
	for what, n := range m {
		list = append(list, fmt.Sprintf("%d %s", n, what))
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}
