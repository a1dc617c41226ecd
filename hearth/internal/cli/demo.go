package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/hearth-run/hearth/examples"
	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/gen/hearth/v1/hearthv1connect"
	"github.com/hearth-run/hearth/gen/serverless/serverlessconnect"
	"github.com/hearth-run/hearth/hearth/internal/house"
	"github.com/hearth-run/hearth/hearth/internal/tour"
	"github.com/hearth-run/hearth/internal/kit/dial"
	"github.com/hearth-run/hearth/internal/kit/logs"
)

type demoCmd struct {
	Exit   bool   `help:"End after the calls; the exit code is 0 only if every answer was right."`
	Python string `help:"Interpreter that runs functions." default:"python3"`
}

// readyLimit is how long one example may take to get ready.
const readyLimit = time.Minute

// Run starts a house in a temporary folder, on free ports, and shows it.
func (c *demoCmd) Run(ctx context.Context, shell *Shell, cfg *logs.Config) (err error) {
	if cfg.Level == "info" {
		cfg.Level = "warn" // the tour says what happens
	}
	log, err := shell.log(*cfg)
	if err != nil {
		return err
	}
	tune(shell.Environ)
	dir, err := os.MkdirTemp("", "hearth-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	settings := house.Default(dir)
	settings.Python.Interpreter = c.Python
	start := time.Now()
	h, err := house.New(ctx, settings, log)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	result := make(chan error, 1)
	err = h.Run(ctx, func(where house.Addresses) {
		fmt.Fprintf(shell.Out, "Hearth is ready after %v\n", time.Since(start).Round(time.Millisecond))
		announce(shell, where)
		walked := c.walk(ctx, shell, where)
		result <- walked
		if c.Exit || walked != nil {
			stop()
		}
	})
	select {
	case walked := <-result:
		return errors.Join(err, walked)
	default:
		return err
	}
}

// walk goes on the tour and says how to go on by oneself.
func (c *demoCmd) walk(ctx context.Context, shell *Shell, where house.Addresses) error {
	dialer := dial.New(nil)
	defer dialer.Close()
	client, base, err := dialer.HTTP(where.Gateway, false)
	if err != nil {
		return err
	}
	control, err := dialer.Client(where.ControlPlane)
	if err != nil {
		return err
	}
	guide := &tour.Guide{
		Out: shell.Out, HTTP: client, Gateway: base, ControlPlane: where.ControlPlane,
		Create: creator(hearthv1connect.NewRunServiceClient(control)),
	}
	wrong, err := guide.Walk(ctx, tour.Stops())
	if err == nil && where.Router != "" {
		wrong, err = c.executions(ctx, shell, where, guide, dialer)
	}
	switch {
	case err != nil:
		return fmt.Errorf("demo: %w", err)
	case wrong > 0:
		return fmt.Errorf("demo: %d answers were wrong", wrong)
	}
	fmt.Fprintln(shell.Out, "\nEvery answer was right.")
	if !c.Exit {
		fmt.Fprintf(shell.Out, "Hearth stays up until Ctrl-C: try the lines above, or `hearth run list --control-plane %s`.\n", where.ControlPlane)
	}
	return nil
}

// executions shows the second plane, once its worker is ready.
func (c *demoCmd) executions(ctx context.Context, shell *Shell, where house.Addresses, guide *tour.Guide, dialer *dial.Dialer) (int, error) {
	client, err := dialer.Client(where.Router)
	if err != nil {
		return 0, err
	}
	if err := awaitWorker(ctx, hearthv1connect.NewExecutionAdminServiceClient(client), shell.Out); err != nil {
		return 0, err
	}
	streams, err := dialer.Streams(where.Router)
	if err != nil {
		return 0, err
	}
	router := serverlessconnect.NewProxyServiceClient(streams)
	return guide.Execute(ctx, where.Router, func(ctx context.Context, e tour.Execution) (string, string, string, error) {
		source, err := examples.Files.ReadFile(e.File)
		if err != nil {
			return "", "", "", err
		}
		config, body, err := (&execCmd{Args: e.Args}).call(string(source), e.Entry)
		if err != nil {
			return "", "", "", err
		}
		var printed strings.Builder
		answer, last, _, err := execute(ctx, router, e.Session, config, body, &printed)
		if err != nil {
			return "", "", "", err
		}
		value, err := open(answer)
		return string(value), printed.String(), explainStart(last, nil), err
	}, tour.Executions())
}

// workerLimit is how long the first start of a worker may take: it makes a Python
// environment.
const workerLimit = 3 * time.Minute

// awaitWorker returns once a worker can take executions.
func awaitWorker(ctx context.Context, admin hearthv1connect.ExecutionAdminServiceClient, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, workerLimit)
	defer cancel()
	// The router says who is there and not when somebody comes: ask again.
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	told := false
	for {
		res, err := admin.ListWorkers(ctx, &hearthv1.ListWorkersRequest{})
		if err != nil {
			return fmt.Errorf("wait for a worker: %w", err)
		}
		for _, w := range res.GetWorkers() {
			switch w.GetState() {
			case hearthv1.WorkerState_WORKER_STATE_READY:
				return nil
			case hearthv1.WorkerState_WORKER_STATE_ERROR:
				return errors.New("the worker cannot run executions: its log above says why")
			}
		}
		if !told {
			fmt.Fprintln(out, "\nThe worker makes its Python environment, once for each data folder; that takes some seconds …")
			told = true
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("wait for a worker: %w", context.Cause(ctx))
		}
	}
}

// creator makes a Run of an example and waits until it is ready.
func creator(runs hearthv1connect.RunServiceClient) func(context.Context, tour.Stop) (*hearthv1.Run, error) {
	return func(ctx context.Context, stop tour.Stop) (*hearthv1.Run, error) {
		source, err := collect(examples.Files, stop.Folder)
		if err != nil {
			return nil, err
		}
		res, err := runs.CreateRun(ctx, &hearthv1.CreateRunRequest{Name: stop.Name, Spec: &hearthv1.RunSpec{
			Runtime: stop.Runtime, Source: source,
			Mode: &hearthv1.RunSpec_Function{Function: &hearthv1.FunctionMode{Handler: stop.Handler}},
		}})
		if err != nil {
			return nil, err
		}
		return await(ctx, runs, res.GetRun(), readyLimit, toReady, progress(io.Discard))
	}
}
