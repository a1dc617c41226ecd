package route

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/gen/hearth/v1/hearthv1connect"
)

// The wait before a new attempt to watch: it doubles from the least to the most,
// and each one is shortened by up to a half, so that gateways do not come back
// together.
const (
	leastWait = 100 * time.Millisecond
	mostWait  = 5 * time.Second
)

// Follow keeps the book up to date until ctx is done, over as many watches as it
// takes. It is the only writer of the book.
func Follow(ctx context.Context, book *Book, control hearthv1connect.RouteServiceClient, log *slog.Logger) {
	wait := leastWait
	for ctx.Err() == nil {
		whole, err := follow(ctx, book, control, log)
		if ctx.Err() != nil {
			return
		}
		if whole {
			wait = leastWait
		}
		log.Warn("the watch of routes ended; serving what is known", "routes", book.Table().Size(), "retry_in", wait, "cause", err)
		timer := time.NewTimer(wait/2 + rand.N(wait/2))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
		wait = min(2*wait, mostWait)
	}
}

// follow is one watch; whole says whether its snapshot was complete.
func follow(ctx context.Context, book *Book, control hearthv1connect.RouteServiceClient, log *slog.Logger) (whole bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := control.WatchRoutes(ctx, &hearthv1.WatchRoutesRequest{})
	if err != nil {
		return false, err
	}
	defer stream.Close()
	book.Begin()
	for {
		event, err := stream.Receive()
		if err != nil {
			return whole, err
		}
		if bad := book.Apply(event); bad != nil {
			log.Error("a route names an address that cannot be called", "err", bad)
		}
		if event.GetSnapshotComplete() && !whole {
			whole = true
			log.Info("routes are known", "routes", book.Table().Size())
		}
	}
}
