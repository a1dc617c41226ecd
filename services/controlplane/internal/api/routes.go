package api

import (
	"cmp"
	"context"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/gen/hearth/v1/hearthv1connect"
	"github.com/hearth-run/hearth/services/controlplane/internal/journal"
	"github.com/hearth-run/hearth/services/controlplane/internal/lifecycle"
	"github.com/hearth-run/hearth/services/controlplane/internal/record"
)

// routeChunk is how many routes one message carries at most.
const routeChunk = 1000

// routes is RouteService.
type routes struct{ *Server }

var _ hearthv1connect.RouteServiceHandler = (*routes)(nil)

// GetRoute is the second look.
func (s *routes) GetRoute(ctx context.Context, req *hearthv1.GetRouteRequest) (*hearthv1.GetRouteResponse, error) {
	book, err := s.book(ctx)
	if err != nil {
		return answer[hearthv1.GetRouteResponse](nil, err, "")
	}
	r, err := book.Named(namespace(req.GetNamespace()), req.GetName(), "")
	if err != nil {
		return answer[hearthv1.GetRouteResponse](nil, err, "")
	}
	return &hearthv1.GetRouteResponse{Route: r.Route()}, nil
}

// WatchRoutes streams the routes of functions. Tasks have none: nobody invokes them.
func (s *routes) WatchRoutes(ctx context.Context, req *hearthv1.WatchRoutesRequest, stream hearthv1connect.RouteServiceWatchRoutesServerStream) error {
	book, err := s.book(ctx)
	if err != nil {
		return table.Error(err, nil)
	}
	wanted := func(r *record.Run) bool {
		return !r.Policy.Task && (!req.GetReadyOnly() || r.State.Stage == lifecycle.Ready)
	}
	found, version := book.Runs("", 0, wanted)
	for len(found) > routeChunk {
		if err := stream.Send(&hearthv1.WatchRoutesResponse{Routes: routesOf(found[:routeChunk])}); err != nil {
			return err
		}
		found = found[routeChunk:]
	}
	if err := stream.Send(&hearthv1.WatchRoutesResponse{Routes: routesOf(found), SnapshotComplete: true}); err != nil {
		return err
	}
	return table.Error(follow(ctx, book, version, func(events []journal.Event) error {
		if msg := routeChanges(events, wanted); msg != nil {
			return stream.Send(msg)
		}
		return nil
	}), nil)
}

func routesOf(found []*record.Run) []*hearthv1.Route {
	out := make([]*hearthv1.Route, 0, len(found))
	for _, r := range found {
		out = append(out, r.Route())
	}
	return out
}

// routeChanges folds events into one message: of each Run only what it came to, and
// only where the watch can see the difference. A Run that is no longer wanted is gone.
// nil: nothing to say.
func routeChanges(events []journal.Event, wanted func(*record.Run) bool) *hearthv1.WatchRoutesResponse {
	type change struct{ first, last *record.Run }
	changes, order := map[string]*change{}, []string{}
	for _, e := range events {
		r := cmp.Or(e.New, e.Old)
		if changes[r.UID] == nil {
			changes[r.UID], order = &change{first: e.Old}, append(order, r.UID)
		}
		changes[r.UID].last = e.New
	}
	out := &hearthv1.WatchRoutesResponse{}
	for _, uid := range order {
		c := changes[uid]
		before, after := c.first != nil && wanted(c.first), c.last != nil && wanted(c.last)
		switch {
		case before && !after:
			out.RemovedRunUids = append(out.RemovedRunUids, uid)
		case after && (!before || c.first.Bearing() != c.last.Bearing()):
			out.Routes = append(out.Routes, c.last.Route())
		}
	}
	if len(out.GetRoutes())+len(out.GetRemovedRunUids()) == 0 {
		return nil
	}
	return out
}
