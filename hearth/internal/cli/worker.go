package cli

import (
	"context"
	"fmt"
	"strings"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/gen/hearth/v1/hearthv1connect"
	"github.com/hearth-run/hearth/hearth/internal/output"
	"github.com/hearth-run/hearth/internal/kit/dial"
)

// workerCmds are a worker itself, which is what `hearth worker` alone means, and
// the view on those that a router knows.
type workerCmds struct {
	Serve workerServeCmd `cmd:"" default:"withargs" help:"Run a worker alone."`
	List  workerListCmd  `cmd:"" help:"List the workers that a router knows."`
}

type sessionCmds struct {
	List sessionListCmd `cmd:"" help:"List the sessions that a router knows."`
}

// routerFlags lead to a router.
type routerFlags struct {
	Router string `help:"Address of the router: HOST:PORT, a URL or unix:PATH." default:"127.0.0.1:50051" placeholder:"ADDRESS"`
}

func (f routerFlags) admin() (hearthv1connect.ExecutionAdminServiceClient, func(), error) {
	dialer := dial.New(nil)
	client, err := dialer.Client(f.Router)
	if err != nil {
		return nil, nil, usagef("--router: %w", err)
	}
	return hearthv1connect.NewExecutionAdminServiceClient(client), dialer.Close, nil
}

type workerListCmd struct {
	routerFlags
	outputFlag
}

func (c *workerListCmd) Run(ctx context.Context, shell *Shell) error {
	admin, done, err := c.admin()
	if err != nil {
		return err
	}
	defer done()
	res, err := admin.ListWorkers(ctx, &hearthv1.ListWorkersRequest{})
	if err != nil {
		return fmt.Errorf("list workers: %w", err)
	}
	return output.List(shell.Out, c.Output, output.View[*hearthv1.ExecutionWorker]{
		Columns: []string{"WORKER", "STATE", "FLAVOR", "CONTAINERS", "MEMORY", "CPU", "CALLS", "STARTS", "ADDRESS"},
		Row: func(w *hearthv1.ExecutionWorker) []string {
			return []string{
				w.GetWorkerId(), strings.TrimPrefix(w.GetState().String(), "WORKER_STATE_"), w.GetFlavor(),
				fmt.Sprintf("%d/%d", w.GetExecutors(), w.GetMaxExecutors()),
				fmt.Sprintf("%s/%s", mebibytes(w.GetMemTaken()), mebibytes(w.GetMemTotal())),
				fmt.Sprintf("%.2f/%.0f", float64(w.GetCpuUtil())/1000, float64(w.GetCpuTotal())/1000),
				fmt.Sprint(w.GetInFlight()), startsOf(w.GetStarts()), w.GetWorkerUri(),
			}
		},
		Name: (*hearthv1.ExecutionWorker).GetWorkerId,
	}, res.GetWorkers())
}

// startsOf is short for a table: cold, from a zygote, found ready, in a session.
func startsOf(c *hearthv1.StartCounts) string {
	if c == nil {
		return ""
	}
	return fmt.Sprintf("%dc %dz %dr %ds", c.GetCold(), c.GetCheckpoint(), c.GetPooled(), c.GetSession())
}

func mebibytes(n int64) string { return fmt.Sprintf("%dMi", n>>20) }

type sessionListCmd struct {
	routerFlags
	outputFlag
}

func (c *sessionListCmd) Run(ctx context.Context, shell *Shell) error {
	admin, done, err := c.admin()
	if err != nil {
		return err
	}
	defer done()
	res, err := admin.ListSessions(ctx, &hearthv1.ListSessionsRequest{})
	if err != nil {
		return fmt.Errorf("list sessions: %w", err)
	}
	return output.List(shell.Out, c.Output, output.View[*hearthv1.ExecutionSession]{
		Columns: []string{"SESSION", "STATE", "WORKER", "CONTAINER", "CALL", "WAITING", "AGE"},
		Row: func(s *hearthv1.ExecutionSession) []string {
			return []string{
				s.GetSessionId(), strings.TrimPrefix(s.GetState().String(), "SESSION_STATE_"), s.GetWorkerId(),
				s.GetContainerId(), s.GetRequestId(), fmt.Sprint(s.GetWaiting()), age(s.GetSinceTime()),
			}
		},
		Name: (*hearthv1.ExecutionSession).GetSessionId,
	}, res.GetSessions())
}
