// Package cli owns the grammar of the command: one command, one file. Data goes
// to standard output, everything else to standard error.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/hearth-run/hearth/internal/kit/config"
	"github.com/hearth-run/hearth/internal/kit/logs"
)

// Exit codes.
const (
	exitOK      = 0
	exitFailed  = 1
	exitUsage   = 2
	exitTimeout = 124
)

// Shell is what a command sees of the process.
type Shell struct {
	In       io.Reader
	Out, Err io.Writer
	// Environ is NAME=value; HEARTH_* are settings.
	Environ []string
}

// grammar is every command with its flags.
type grammar struct {
	Up           upCmd           `cmd:"" help:"Run everything in one process."`
	Demo         demoCmd         `cmd:"" help:"Start Hearth in a temporary folder and call the examples."`
	Run          runCmds         `cmd:"" help:"Create and look after Runs."`
	Invoke       invokeCmd       `cmd:"" help:"Call a function."`
	Logs         logsCmd         `cmd:"" help:"Show what a function wrote."`
	Exec         execCmd         `cmd:"" help:"Run a function of a Python file in a sandbox."`
	Status       statusCmd       `cmd:"" help:"Say what runs and whether it can be reached."`
	Node         nodeCmds        `cmd:"" help:"List and drain nodes."`
	Conformance  conformanceCmds `cmd:"" help:"Hold a server to its contract."`
	Controlplane controlplaneCmd `cmd:"" help:"Run a control plane alone." group:"Separate processes"`
	Runtimed     runtimedCmd     `cmd:"" help:"Run a runtimed in front of one Runtime Server." group:"Separate processes"`
	Gateway      gatewayCmd      `cmd:"" help:"Run a gateway alone." group:"Separate processes"`

	Router  routerCmd   `cmd:"" help:"Run a router alone." group:"Separate processes"`
	Worker  workerCmds  `cmd:"" help:"Run a worker alone, or list those that a router knows." group:"Separate processes"`
	Session sessionCmds `cmd:"" help:"List sessions of executions."`
	Zygote  zygoteCmds  `cmd:"" help:"See and steer which imports workers keep warm."`
	Doctor  doctorCmd   `cmd:"" help:"Say what this machine allows: programs, and walls of the sandbox."`

	Version    versionCmd    `cmd:"" help:"Print the version."`
	Completion completionCmd `cmd:"" help:"Print a completion script for bash, zsh or fish."`
	Complete   completeCmd   `cmd:"" hidden:"" name:"__complete"`

	Log logs.Config `embed:"" prefix:"log-" group:"Log"`
}

type runCmds struct {
	Create runCreateCmd `cmd:"" help:"Create a Run."`
	List   runListCmd   `cmd:"" help:"List Runs."`
	Get    runGetCmd    `cmd:"" help:"Show one Run."`
	Watch  runWatchCmd  `cmd:"" help:"Follow what happens to Runs, a line for each change."`
	Wait   runWaitCmd   `cmd:"" help:"Wait until a Run is ready or, a task, has ended."`
	Cancel runCancelCmd `cmd:"" help:"End a Run."`
	Delete runDeleteCmd `cmd:"" help:"End a Run and remove it."`
}

type nodeCmds struct {
	List  nodeListCmd  `cmd:"" help:"List nodes."`
	Drain nodeDrainCmd `cmd:"" help:"Move the Runs of a node away and give it no new ones."`
}

// usageError is a mistake in how the command was called.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// errTimeout is a wait that took longer than it was given.
var errTimeout = errors.New("timed out")

// Main runs one command and returns the exit code.
func Main(ctx context.Context, shell Shell, args []string) int {
	var commands grammar
	// Kong exits after --help from within; the panic brings it back here.
	type exited int
	code, err := func() (code int, err error) {
		defer func() {
			if p := recover(); p != nil {
				e, ok := p.(exited)
				if !ok {
					panic(p)
				}
				code = int(e)
			}
		}()
		parser, err := newParser(&commands, shell, kong.Exit(func(code int) { panic(exited(code)) }))
		if err != nil {
			return exitFailed, err
		}
		parsed, err := parser.Parse(args)
		if err != nil {
			return exitUsage, usageError{err}
		}
		if err := config.CheckEnviron(parser, shell.Environ); err != nil {
			return exitUsage, usageError{err}
		}
		parsed.BindTo(ctx, (*context.Context)(nil))
		return exitOK, parsed.Run(&shell, parser, &commands.Log)
	}()
	if err != nil {
		code = report(shell.Err, err)
	}
	return code
}

func newParser(commands *grammar, shell Shell, options ...kong.Option) (*kong.Kong, error) {
	return config.Parser(commands, append([]kong.Option{
		kong.Name("hearth"),
		kong.Description("Hearth runs functions on warm runtimes.\n\nStart with `hearth demo`, or `hearth up` and `hearth run create --help`."),
		kong.Vars{"data": defaultData(shell.Environ)},
		kong.Writers(shell.Out, shell.Err),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true}),
	}, options...)...)
}

// report says what went wrong and chooses the exit code.
func report(w io.Writer, err error) int {
	fmt.Fprintln(w, "hearth: "+strings.TrimSpace(explain(err)))
	var task exitError
	switch {
	case errors.As(err, &task):
		return task.code
	case errors.As(err, new(usageError)):
		fmt.Fprintln(w, "See `hearth --help`, or --help after a command.")
		return exitUsage
	case errors.Is(err, errTimeout), errors.Is(err, context.DeadlineExceeded):
		return exitTimeout
	}
	return exitFailed
}
