package runlogs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"connectrpc.com/connect/v2"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/gen/hearth/v1/hearthv1connect"
	"github.com/hearth-run/hearth/internal/kit/edge"
	"github.com/hearth-run/hearth/services/runtimed/internal/notify"
)

// Sentinels of the domain.
var (
	errNone  = errors.New("no log of the run")
	errNoUID = errors.New("run uid is missing")
)

// Edge is every domain error of this service on the wire.
var Edge = edge.Table{
	{Err: errNoUID, Code: connect.CodeInvalidArgument, Reason: "INVALID_ARGUMENT", Text: "run_uid is empty: a node finds logs by it; ask a gateway to find them by name"},
	{Err: errNone, Code: connect.CodeNotFound, Reason: "LOG_NOT_FOUND", Text: "this node has no log of the Run: it was never here, or the log was removed as one of the oldest"},
	{Err: notify.ErrStopped, Code: connect.CodeUnavailable, Reason: "SHUTTING_DOWN", Text: "the node stops and follows logs no more"},
}

// Service serves hearth.v1.LogService for the Runs of one node.
type Service struct {
	dir, node string
	holds     func(runUID string) bool
	watcher   *notify.Watcher
}

var _ hearthv1connect.LogServiceHandler = (*Service)(nil)

// New returns the service of a node of this name. A log has no file before its
// first entry: holds says whether the node knows the Run of one that has none. It
// starts nothing.
func New(workspace, node string, holds func(runUID string) bool) *Service {
	return &Service{dir: filepath.Join(workspace, ".hearth", "logs"), node: node, holds: holds, watcher: notify.New()}
}

// Run lets logs be followed until ctx is done; without it they can only be read.
// Errors: those of inotify.
func (s *Service) Run(ctx context.Context) error { return s.watcher.Run(ctx) }

// TailLogs streams the log of a Run. It ends by itself only without follow: how
// long a Run may still write, its gateway knows.
func (s *Service) TailLogs(ctx context.Context, req *hearthv1.TailLogsRequest, stream hearthv1connect.LogServiceTailLogsServerStream) error {
	// The caller learns at once that it is heard, however long nothing is written.
	if err := stream.SendHeaders(); err != nil {
		return err
	}
	err := s.tail(ctx, req, stream.Send)
	return Edge.Error(err, map[string]string{edge.RunUID: req.GetRunUid()})
}

func (s *Service) tail(ctx context.Context, req *hearthv1.TailLogsRequest, send func(*hearthv1.TailLogsResponse) error) error {
	if req.GetRunUid() == "" {
		return errNoUID
	}
	if req.GetFollow() {
		return s.follow(ctx, req, send)
	}
	t := s.open(req)
	defer func() { t.reader.close() }()
	if err := s.drain(ctx, t, send); err != nil {
		return err
	}
	if t.reader.file == nil && !s.holds(req.GetRunUid()) {
		return errNone
	}
	return nil
}

// open begins to read where the caller's memory ends.
func (s *Service) open(req *hearthv1.TailLogsRequest) *tail {
	t := &tail{reader: newReader(s.dir, req.GetRunUid()), filter: filter{invocation: req.GetInvocationId()}}
	if req.GetSince() != nil {
		t.filter.since = req.GetSince().AsTime()
	}
	if req.GetAfterNode() == "" || req.GetAfterNode() == s.node {
		t.last = req.GetAfterSequence()
	}
	return t
}

// drain sends all that there is now. A caller that remembers more than there is
// gets all of it: it is another log.
func (s *Service) drain(ctx context.Context, t *tail, send func(*hearthv1.TailLogsResponse) error) error {
	for {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		out, err := t.batch()
		if err != nil {
			return fmt.Errorf("read log: %w", err)
		}
		if out == nil && t.anew() {
			t.reader.close()
			t.last, t.newest = 0, 0
			continue
		}
		if out == nil {
			return nil
		}
		out.Node = s.node
		if err := send(out); err != nil {
			return err
		}
	}
}

// follow sends what there is and then what comes. It waits by the kernel's word: a
// mark is set first and the file read after it, so that nothing falls between.
func (s *Service) follow(ctx context.Context, req *hearthv1.TailLogsRequest, send func(*hearthv1.TailLogsResponse) error) error {
	// The folder is the Runtime Server's, who may not have made it yet.
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return fmt.Errorf("make folder of logs: %w", err)
	}
	waiter, err := s.watcher.Wait(s.dir, req.GetRunUid()+".jsonl")
	if err != nil {
		return err
	}
	defer waiter.Close()
	t := s.open(req)
	defer func() { t.reader.close() }()
	var marked *os.File
	for {
		if err := s.drain(ctx, t, send); err != nil {
			return err
		}
		if t.reader.file != nil && t.reader.file != marked {
			if err := waiter.Follow(t.reader.file); err != nil {
				return err
			}
			marked = t.reader.file
			continue
		}
		select {
		case <-waiter.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := waiter.Err(); err != nil {
			return err
		}
	}
}
