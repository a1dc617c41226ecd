package api

import (
	"context"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/gen/hearth/v1/hearthv1connect"
	"github.com/hearth-run/hearth/services/controlplane/internal/journal"
	"github.com/hearth-run/hearth/services/controlplane/internal/ledger"
	"github.com/hearth-run/hearth/services/controlplane/internal/record"
)

// watchChunk is how many events a watch takes from the journal at a time.
const watchChunk = 256

// WatchRuns follows the journal at the reader's pace.
func (s *runs) WatchRuns(ctx context.Context, req *hearthv1.WatchRunsRequest, stream hearthv1connect.RunServiceWatchRunsServerStream) error {
	book, err := s.book(ctx)
	if err != nil {
		return table.Error(err, nil)
	}
	// Over HTTP the caller's watch is open once it has the headers, which would
	// otherwise wait for the first event.
	if err := stream.SendHeaders(); err != nil {
		return err
	}
	w := &runWatch{match: matcher(req.GetFilter()), send: stream.Send}
	version := req.GetResourceVersion()
	if version == 0 {
		if version, err = w.snapshot(book); err != nil {
			return table.Error(err, nil)
		}
	}
	return table.Error(follow(ctx, book, version, w.changes), nil)
}

// follow hands the journal's events after version to each, in order, until ctx is
// done, the ledger stops, or each fails.
func follow(ctx context.Context, book *ledger.Ledger, version int64, each func([]journal.Event) error) error {
	for {
		events, changed, err := book.After(version, watchChunk)
		if err != nil {
			return err
		}
		if len(events) > 0 {
			if err := each(events); err != nil {
				return err
			}
			version = events[len(events)-1].Version
			continue
		}
		select {
		case <-changed:
		case <-book.Stopped():
			return ledger.ErrStopped
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

type runWatch struct {
	match func(*record.Run) bool
	send  func(*hearthv1.WatchRunsResponse) error
}

func (w *runWatch) snapshot(book *ledger.Ledger) (int64, error) {
	found, version := book.Runs("", 0, w.match)
	for _, r := range found {
		// No version to resume from: what is still to come here is older than r.
		err := w.send(&hearthv1.WatchRunsResponse{Type: hearthv1.RunEventType_RUN_EVENT_TYPE_ADDED, Run: r.Proto()})
		if err != nil {
			return 0, err
		}
	}
	return version, w.bookmark(version)
}

func (w *runWatch) bookmark(version int64) error {
	return w.send(&hearthv1.WatchRunsResponse{Type: hearthv1.RunEventType_RUN_EVENT_TYPE_BOOKMARK, ResourceVersion: version})
}

// changes sends what the filter lets through. Where that is nothing, a bookmark
// moves the reader on, so that it can resume from there.
func (w *runWatch) changes(events []journal.Event) error {
	sent := false
	for _, e := range events {
		kind, run := w.judge(e)
		if run == nil {
			continue
		}
		msg := run.Proto()
		msg.ResourceVersion = e.Version
		if err := w.send(&hearthv1.WatchRunsResponse{Type: kind, Run: msg, ResourceVersion: e.Version}); err != nil {
			return err
		}
		sent = true
	}
	if !sent {
		return w.bookmark(events[len(events)-1].Version)
	}
	return nil
}

// judge says how an event looks through the filter: a Run that begins to match is
// added, one that ceases to is deleted.
func (w *runWatch) judge(e journal.Event) (hearthv1.RunEventType, *record.Run) {
	before, after := e.Old != nil && w.match(e.Old), e.New != nil && w.match(e.New)
	switch {
	case before && after:
		return hearthv1.RunEventType_RUN_EVENT_TYPE_MODIFIED, e.New
	case after:
		return hearthv1.RunEventType_RUN_EVENT_TYPE_ADDED, e.New
	case before && e.New != nil:
		return hearthv1.RunEventType_RUN_EVENT_TYPE_DELETED, e.New
	case before:
		return hearthv1.RunEventType_RUN_EVENT_TYPE_DELETED, e.Old
	}
	return 0, nil
}
