package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/hearth-run/hearth/adapters/runtimetest"
)

type conformanceCmds struct {
	Runtime conformanceRuntimeCmd `cmd:"" help:"Hold a Runtime Server to its contract; the exit code is 1 if a MUST fails."`
}

type conformanceRuntimeCmd struct {
	Target    string   `required:"" help:"Address of the Runtime Server: HOST:PORT, a URL or unix:PATH." placeholder:"URL"`
	Workspace string   `required:"" help:"Folder that the Runtime Server sees under the same path." type:"path" placeholder:"DIR"`
	Language  string   `help:"Fixtures to register: python, bash, node, or a folder with a fixture.json." default:"python" placeholder:"NAME|DIR"`
	Protocol  []string `help:"Protocols to run over, each a whole run." enum:"connect,grpc" default:"connect,grpc"`
	Output    string   `short:"o" help:"How to print: table, json or junit." enum:"table,json,junit" default:"table"`
	Only      []string `help:"Run only cases whose ID starts so, such as FR-REG." placeholder:"ID"`

	Restart     string        `help:"Shell command that kills the Runtime Server and starts it again; without it the cases about a crash are skipped." placeholder:"COMMAND"`
	LoadTimeout time.Duration `help:"The Runtime Server's own limit of a load." default:"60s"`
	Patience    time.Duration `help:"Longest wait for a limit of the Runtime Server; cases about longer ones are skipped." default:"5s"`
	Soon        time.Duration `help:"How long something may take that has to happen at once." default:"10s"`
	Parallel    int           `help:"Cases to run side by side." default:"8"`
}

func (c *conformanceRuntimeCmd) Run(ctx context.Context, shell *Shell) error {
	fixtures, err := c.fixtures()
	if err != nil {
		return usageError{fmt.Errorf("--language: %w", err)}
	}
	if err := os.MkdirAll(c.Workspace, 0o755); err != nil {
		return usagef("--workspace: %w", err)
	}
	target := runtimetest.Target{
		URL: c.Target, Workspace: c.Workspace, Fixtures: fixtures,
		Times: runtimetest.Times{Load: c.LoadTimeout, Patience: c.Patience},
	}
	for _, p := range c.Protocol {
		target.Protocols = append(target.Protocols, runtimetest.Protocol(p))
	}
	if c.Restart != "" {
		target.Restart = c.restart
	}
	results, err := runtimetest.Run(ctx, target, runtimetest.Options{
		Only: c.Only, Parallel: c.Parallel, Soon: c.Soon, Done: func(r runtimetest.Result) {
			if r.Verdict == runtimetest.Fail {
				fmt.Fprintf(shell.Err, "%s failed over %s: expected %s, saw %s\n", r.ID, r.Protocol, r.Expected, r.Seen)
			}
		},
	})
	if len(results) > 0 {
		if err := runtimetest.Write(shell.Out, runtimetest.Format(c.Output), results); err != nil {
			return err
		}
	}
	switch {
	case err != nil:
		// Its words stand alone: the advice for an unreachable Hearth is not meant.
		return fmt.Errorf("test %s: %v", c.Target, err)
	case len(results) == 0:
		return usagef("--only: no case starts with %q", c.Only)
	case runtimetest.Tally(results).FailedMust > 0:
		return errors.New(runtimetest.Summary(results))
	}
	return nil
}

// fixtures are those of a folder, or those that ship with the suite.
func (c *conformanceRuntimeCmd) fixtures() (*runtimetest.Fixtures, error) {
	if !slices.Contains(runtimetest.Languages(), c.Language) {
		if _, err := os.Stat(filepath.Join(c.Language, runtimetest.ManifestFile)); err == nil {
			return runtimetest.Load(c.Language)
		}
	}
	return runtimetest.Builtin(c.Language)
}

// restart runs the command of --restart, which has to leave the Runtime Server
// running in the background.
func (c *conformanceRuntimeCmd) restart(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, "sh", "-c", c.Restart)
	cmd.Stdout, cmd.Stderr = nil, nil
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("restart the target: %w", err)
	}
	return nil
}
