package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/types/known/timestamppb"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/gen/hearth/v1/hearthv1connect"
	"github.com/hearth-run/hearth/hearth/internal/output"
	"github.com/hearth-run/hearth/internal/kit/dial"
)

type logsCmd struct {
	Name       string        `arg:"" help:"Name of the Run."`
	Follow     bool          `short:"f" help:"Go on with what is written, until the Run ends."`
	Invocation string        `help:"Only what this invocation wrote." placeholder:"ID"`
	Since      time.Duration `help:"Only what is not older than this; 0 is everything." default:"0s"`
	UID        string        `name:"uid" help:"Only if the Run has this UID." placeholder:"UID"`
	Output     output.Format `short:"o" help:"text (time, stream, message) or json (a line for each entry)." enum:"text,json" default:"text"`
	namespaceFlag
	gatewayFlags
}

// Run prints the log of a Run and, with --follow, goes on until the Run ends or
// the command is stopped.
func (c *logsCmd) Run(ctx context.Context, shell *Shell) error {
	if c.Since < 0 {
		return usagef("--since is %v: want a time back from now, like 10m", c.Since)
	}
	dialer := dial.New(nil)
	defer dialer.Close()
	client, err := dialer.Client(c.Gateway)
	if err != nil {
		return usagef("--gateway: %w", err)
	}
	req := &hearthv1.TailLogsRequest{
		Namespace: c.Namespace, Name: c.Name, RunUid: c.UID, InvocationId: c.Invocation, Follow: c.Follow,
	}
	if c.Since > 0 {
		req.Since = timestamppb.New(time.Now().Add(-c.Since))
	}
	t := &logTail{logs: hearthv1connect.NewLogServiceClient(client), req: req, print: c.printer(shell)}
	err = t.read(ctx)
	if ctx.Err() != nil {
		return nil // that is how following ends
	}
	if err != nil {
		return fmt.Errorf("logs of %s: %w", c.Name, err)
	}
	return nil
}

func (c *logsCmd) printer(shell *Shell) func(*hearthv1.TailLogsResponse) error {
	return func(res *hearthv1.TailLogsResponse) error {
		if missed := res.GetMissed(); missed > 0 {
			fmt.Fprintf(shell.Err, "hearth: %d entries are missing here: they were rotated away before they could be read\n", missed)
		}
		for _, e := range res.GetEntries() {
			if err := printEntry(shell.Out, c.Output, e); err != nil {
				return err
			}
		}
		return nil
	}
}

func printEntry(w io.Writer, format output.Format, e *hearthv1.LogEntry) error {
	if format == output.JSON {
		return output.Line(w, e)
	}
	_, err := fmt.Fprintf(w, "%s %-6s %s\n", e.GetTime().AsTime().Format("2006-01-02T15:04:05.000Z"), e.GetStream(), e.GetMessage())
	return err
}

// How a log that broke off is taken up again: the wait doubles up to a bound, and
// there is an end of it where nothing comes any more.
const (
	resumeWait     = 100 * time.Millisecond
	resumeMostWait = 2 * time.Second
	resumeTries    = 10
)

// logTail reads one log over as many streams as it takes.
type logTail struct {
	logs  hearthv1connect.LogServiceClient
	req   *hearthv1.TailLogsRequest
	print func(*hearthv1.TailLogsResponse) error
}

// read reads to the end. A stream that breaks off is resumed behind the last entry
// that was printed, but for a first one that never began.
func (t *logTail) read(ctx context.Context) error {
	heard, wait := false, resumeWait
	for tries := 0; ; tries++ {
		got, err := t.once(ctx)
		heard = heard || got
		if got {
			tries, wait = 0, resumeWait
		}
		if err == nil || !heard || tries == resumeTries || !broken(err) {
			return err
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
		wait = min(2*wait, resumeMostWait)
	}
}

// once reads one stream; heard says whether anything came.
func (t *logTail) once(ctx context.Context) (heard bool, err error) {
	stream, err := t.logs.TailLogs(ctx, t.req)
	if err != nil {
		return false, err
	}
	defer stream.Close()
	for {
		res, err := stream.Receive()
		if errors.Is(err, io.EOF) {
			return heard, nil
		}
		if err != nil {
			return heard, err
		}
		heard = true
		// A new message: the one that was sent belongs to its stream.
		t.req = &hearthv1.TailLogsRequest{
			Namespace: t.req.GetNamespace(), Name: t.req.GetName(), RunUid: t.req.GetRunUid(), InvocationId: t.req.GetInvocationId(),
			Since: t.req.GetSince(), Follow: t.req.GetFollow(), AfterSequence: res.GetSequence(), AfterNode: res.GetNode(),
		}
		if err := t.print(res); err != nil {
			return heard, err
		}
	}
}

// broken says that a stream ended before its end, for a cause that passes.
func broken(err error) bool {
	var peer *connect.Error
	if errors.As(err, &peer) && peer.IsRemote() {
		return peer.Code() == connect.CodeUnavailable
	}
	return lost(err) || errors.As(err, &peer)
}
