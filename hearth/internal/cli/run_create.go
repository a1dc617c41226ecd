package cli

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/hearth/internal/output"
)

type runCreateCmd struct {
	Name        string            `arg:"" help:"Name of the Run: a-z, 0-9 and -, at most 63 bytes."`
	Runtime     string            `required:"" short:"r" help:"Runtime that runs it: python or bash." placeholder:"RUNTIME"`
	Handler     string            `required:"" help:"What to call: FILE.FUNCTION, without the file's extension." placeholder:"FILE.FUNCTION"`
	Source      string            `required:"" help:"Folder or file with the code, at most 1 MiB." placeholder:"PATH"`
	Env         map[string]string `short:"e" mapsep:"none" help:"Variable for the function; may be repeated." placeholder:"NAME=VALUE"`
	Label       map[string]string `short:"l" mapsep:"none" help:"Label of the Run; may be repeated." placeholder:"KEY=VALUE"`
	IdleTimeout time.Duration     `help:"End the Run after this time without a call; 0 is never." default:"0s"`
	Timeout     time.Duration     `help:"End the Run after this time in any case; 0 is never." default:"0s"`
	MaxAttempts int32             `help:"How often its start may be tried." default:"1"`
	Wait        bool              `short:"w" help:"Return once the function can be called."`
	WaitTimeout time.Duration     `help:"How long --wait waits; then the exit code is 124." default:"2m"`
	namespaceFlag
	outputFlag
	controlFlags
}

func (c *runCreateCmd) Run(ctx context.Context, shell *Shell) error {
	source, err := readSource(c.Source)
	if err != nil {
		return err
	}
	clients, err := c.dial()
	if err != nil {
		return err
	}
	defer clients.close()
	res, err := clients.runs.CreateRun(ctx, &hearthv1.CreateRunRequest{
		Namespace: c.Namespace, Name: c.Name, Labels: c.Label, Spec: c.spec(source),
	})
	if err != nil {
		return fmt.Errorf("create Run %s: %w", c.Name, err)
	}
	run := res.GetRun()
	fmt.Fprintf(shell.Err, "created %s/%s\n", run.GetNamespace(), run.GetName())
	if c.Wait {
		if run, err = await(ctx, clients.runs, run, c.WaitTimeout, toReady, progress(shell.Err)); err != nil {
			return err
		}
	}
	return output.One(shell.Out, c.Output, runView(), run)
}

func (c *runCreateCmd) spec(source *hearthv1.Source) *hearthv1.RunSpec {
	spec := &hearthv1.RunSpec{
		Runtime: c.Runtime, Source: source, Env: c.Env,
		Mode: &hearthv1.RunSpec_Function{Function: &hearthv1.FunctionMode{Handler: c.Handler, IdleTimeout: duration(c.IdleTimeout)}},
	}
	spec.Timeout = duration(c.Timeout)
	if c.MaxAttempts != 1 {
		spec.RetryPolicy = &hearthv1.RetryPolicy{MaxAttempts: c.MaxAttempts}
	}
	return spec
}

func duration(d time.Duration) *durationpb.Duration {
	if d == 0 {
		return nil
	}
	return durationpb.New(d)
}
