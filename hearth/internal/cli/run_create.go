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
	Name       string   `arg:"" help:"Name of the Run: a-z, 0-9 and -, at most 63 bytes."`
	Command    []string `arg:"" optional:"" help:"With --task: what to run, after --." placeholder:"COMMAND"`
	Runtime    string   `required:"" short:"r" help:"Runtime that runs it: python or bash." placeholder:"RUNTIME"`
	Handler    string   `help:"What to call: FILE.FUNCTION, without the file's extension." placeholder:"FILE.FUNCTION"`
	Task       bool     `help:"Run a command once, instead of a function that is called."`
	Entrypoint string   `help:"With --task: the file of the source to run; the command is its arguments." placeholder:"FILE"`
	sourceFlags
	Env         map[string]string `short:"e" mapsep:"none" help:"Variable for the function; may be repeated." placeholder:"NAME=VALUE"`
	Label       map[string]string `short:"l" mapsep:"none" help:"Label of the Run; may be repeated." placeholder:"KEY=VALUE"`
	IdleTimeout time.Duration     `help:"End the Run after this time without a call; 0 is never." default:"0s"`
	Timeout     time.Duration     `help:"End the Run after this time in any case; 0 is never." default:"0s"`
	MaxAttempts int32             `help:"How often its start may be tried; of a task, how often it may run." default:"1"`
	RetryOn     []string          `help:"Reasons that are tried again, such as EXIT_NONZERO; without it every one that is not permanent." placeholder:"REASON"`
	TTL         *time.Duration    `name:"ttl" help:"Remove the Run when it has ended this long ago; without it, it is kept until it is deleted."`
	Wait        bool              `short:"w" help:"Return once the function can be called, or the task has ended, then with its exit code."`
	WaitTimeout time.Duration     `help:"How long --wait waits; then the exit code is 124." default:"2m"`
	namespaceFlag
	outputFlag
	controlFlags
}

func (c *runCreateCmd) Run(ctx context.Context, shell *Shell) error {
	if err := c.check(); err != nil {
		return err
	}
	clients, err := c.dial()
	if err != nil {
		return err
	}
	defer clients.close()
	source, err := c.source(ctx, clients.runs)
	if err != nil {
		return err
	}
	res, err := clients.runs.CreateRun(ctx, &hearthv1.CreateRunRequest{
		Namespace: c.Namespace, Name: c.Name, Labels: c.Label, Spec: c.spec(source),
	})
	if err != nil {
		return fmt.Errorf("create Run %s: %w", c.Name, err)
	}
	run := res.GetRun()
	fmt.Fprintf(shell.Err, "created %s/%s\n", run.GetNamespace(), run.GetName())
	if c.Wait {
		if run, err = await(ctx, clients.runs, run, c.WaitTimeout, aim(run, false), progress(shell.Err)); err != nil {
			return verdict(run, err)
		}
	}
	return output.One(shell.Out, c.Output, runView(), run)
}

// check says which flags go together.
func (c *runCreateCmd) check() error {
	switch {
	case c.Task && c.Handler != "":
		return usagef("--task and --handler exclude each other: a Run is one or the other")
	case !c.Task && c.Handler == "":
		return usagef("what to run is missing: give --handler FILE.FUNCTION, or --task and a command after --")
	case !c.Task && (len(c.Command) > 0 || c.Entrypoint != ""):
		return usagef("a command and --entrypoint are for tasks: give --task")
	case !c.Task && c.none():
		return usagef("the code is missing: give --source PATH, or --git URL")
	case c.Task && len(c.Command) == 0 && c.none():
		return usagef("the task says nothing to run: give a command after --, or a source with --entrypoint")
	case c.Task && c.IdleTimeout != 0:
		return usagef("--idle-timeout is for functions: end a task with --timeout")
	}
	if _, err := c.retryOn(); err != nil {
		return err
	}
	return c.sourceFlags.check()
}

// retryOn makes reasons of their names.
func (c *runCreateCmd) retryOn() ([]hearthv1.RunReason, error) {
	var reasons []hearthv1.RunReason
	for _, name := range c.RetryOn {
		value, known := hearthv1.RunReason_value["RUN_REASON_"+name]
		if !known || value == 0 {
			return nil, usagef("--retry-on: there is no reason %s; docs/errors.md lists them", name)
		}
		reasons = append(reasons, hearthv1.RunReason(value))
	}
	return reasons, nil
}

func (c *runCreateCmd) spec(source *hearthv1.Source) *hearthv1.RunSpec {
	spec := &hearthv1.RunSpec{Runtime: c.Runtime, Source: source, Env: c.Env, Timeout: duration(c.Timeout)}
	if c.Task {
		spec.Mode = &hearthv1.RunSpec_Task{Task: &hearthv1.TaskMode{Entrypoint: c.Entrypoint, Args: c.command()}}
	} else {
		spec.Mode = &hearthv1.RunSpec_Function{Function: &hearthv1.FunctionMode{Handler: c.Handler, IdleTimeout: duration(c.IdleTimeout)}}
	}
	if c.TTL != nil {
		spec.TtlAfterFinish = durationpb.New(*c.TTL)
	}
	if reasons, _ := c.retryOn(); c.MaxAttempts != 1 || len(reasons) > 0 { // check has seen the error
		spec.RetryPolicy = &hearthv1.RetryPolicy{MaxAttempts: c.MaxAttempts, RetryableReasons: reasons}
	}
	return spec
}

func duration(d time.Duration) *durationpb.Duration {
	if d == 0 {
		return nil
	}
	return durationpb.New(d)
}
