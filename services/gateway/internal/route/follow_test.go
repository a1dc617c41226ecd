package route_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connectinprocess"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/gen/hearth/v1/hearthv1connect"
	"github.com/hearth-run/hearth/services/gateway/internal/route"
)

// scripted answers each watch with the next script.
type scripted struct {
	hearthv1connect.UnimplementedRouteServiceHandler
	scripts [][]*hearthv1.WatchRoutesResponse
	starts  []time.Time
}

func (s *scripted) WatchRoutes(ctx context.Context, _ *hearthv1.WatchRoutesRequest, stream hearthv1connect.RouteServiceWatchRoutesServerStream) error {
	s.starts = append(s.starts, time.Now())
	if n := len(s.starts); n <= len(s.scripts) {
		for _, event := range s.scripts[n-1] {
			if event == nil {
				<-ctx.Done()
				return ctx.Err()
			}
			if err := stream.Send(event); err != nil {
				return err
			}
		}
	}
	return errors.New("the control plane is down")
}

func follow(t *testing.T, control *scripted, during func(*route.Book)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server := connect.NewServer()
		hearthv1connect.RegisterRouteServiceHandler(server, control)
		client := hearthv1connect.NewRouteServiceClient(connect.NewClient(connectinprocess.New(server)))
		book := route.NewBook(hosts{})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			route.Follow(ctx, book, client, slog.New(slog.DiscardHandler))
		}()
		during(book)
		cancel()
		<-done
	})
}

// While the control plane is down the gateway serves what it knows, and comes
// back ever less often, never less than every 5 s.
func TestFollowBacksOff(t *testing.T) {
	control := &scripted{scripts: [][]*hearthv1.WatchRoutesResponse{{
		{Routes: []*hearthv1.Route{wire("a", "u", "x")}, SnapshotComplete: true},
	}}}
	follow(t, control, func(book *route.Book) {
		time.Sleep(time.Hour)
		synctest.Wait()
		if book.Table().Lookup("default", "a") == nil || !book.Complete() {
			t.Error("what was known is lost")
		}
	})
	for i := 1; i < len(control.starts); i++ {
		wait := control.starts[i].Sub(control.starts[i-1])
		most := min(100*time.Millisecond<<min(i-1, 10), 5*time.Second)
		if wait < most/2 || wait > most {
			t.Fatalf("watch %d came after %v, want %v to %v", i, wait, most/2, most)
		}
	}
	if n := len(control.starts); n < 700 {
		t.Errorf("only %d watches in an hour", n)
	}
}

// A new watch starts with all there is: what it does not name is gone, but only
// once it is complete.
func TestFollowComesBack(t *testing.T) {
	control := &scripted{scripts: [][]*hearthv1.WatchRoutesResponse{
		{{Routes: []*hearthv1.Route{wire("a", "u", "x"), wire("b", "v", "x")}, SnapshotComplete: true}},
		{{Routes: []*hearthv1.Route{wire("c", "w", "x")}}}, // cut before it was complete
		{{Routes: []*hearthv1.Route{wire("b", "v", "y")}}, {SnapshotComplete: true}, nil},
	}}
	follow(t, control, func(book *route.Book) {
		has := func(name string, want bool) {
			t.Helper()
			synctest.Wait()
			if got := book.Table().Lookup("default", name) != nil; got != want {
				t.Errorf("%s is there: %v, want %v", name, got, want)
			}
		}
		synctest.Wait()
		time.Sleep(100 * time.Millisecond)
		has("a", true)
		has("c", true)
		time.Sleep(time.Second)
		has("a", false)
		has("b", true)
		has("c", false)
	})
	if len(control.starts) != 3 {
		t.Errorf("%d watches", len(control.starts))
	}
}
