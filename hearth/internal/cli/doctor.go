package cli

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"text/tabwriter"

	"github.com/hearth-run/hearth/sandbox"
	"github.com/hearth-run/hearth/sandbox/process"
)

// doctorCmd says what this machine allows.
type doctorCmd struct{}

// programs are what parts of Hearth call, and what for.
var programs = []struct{ name, args, use string }{
	{"python3", "--version", "Python functions and executions"},
	{"bash", "--version", "Bash functions"},
	{"git", "--version", "sources from repositories"},
	{"uv", "--version", "installs packages of executions faster; pip does without"},
}

func (c *doctorCmd) Run(ctx context.Context, shell *Shell) error {
	table := tabwriter.NewWriter(shell.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "PROGRAM\tFOUND\tFOR")
	for _, p := range programs {
		fmt.Fprintf(table, "%s\t%s\t%s\n", p.name, programVersion(ctx, p.name, p.args), p.use)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	walls, err := process.Probe(ctx)
	if err != nil {
		return fmt.Errorf("look for walls: %w", err)
	}
	fmt.Fprintln(shell.Out)
	fmt.Fprintln(table, "WALL\tSTANDS\tREQUIRED\tHOW, OR WHY NOT")
	for _, w := range walls {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", w.Name, yes(w.Stands), yes(w.Required), w.Detail)
	}
	return errors.Join(table.Flush(), sandbox.RequireIsolation(walls))
}

func programVersion(ctx context.Context, name string, args string) string {
	path, err := exec.LookPath(name)
	if err != nil {
		return "no"
	}
	out, err := exec.CommandContext(ctx, path, args).Output()
	if err != nil {
		return path + " (it does not run)"
	}
	first, _, _ := strings.Cut(string(out), "\n")
	return first
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
