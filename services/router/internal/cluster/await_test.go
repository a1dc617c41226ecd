package cluster_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hearth-run/hearth/services/router/internal/cluster"
	"github.com/hearth-run/hearth/services/router/internal/placement"
	"github.com/hearth-run/hearth/services/router/internal/sessions"
)

// A call that came before any worker waits for as long as what it waits for at that
// moment is worth waiting for.
func TestFirstCallWaits(t *testing.T) {
	never := time.Duration(-1)
	for name, c := range map[string]struct {
		prepares, ready, gone, want time.Duration
		err                         error
	}{
		"nobody comes":               {never, never, never, 10 * time.Second, placement.ErrNoWorker},
		"ready at once":              {never, 3 * time.Second, never, 3 * time.Second, nil},
		"prepared within the wait":   {time.Second, 5 * time.Second, never, 5 * time.Second, nil},
		"prepared for longer":        {time.Second, 45 * time.Second, never, 45 * time.Second, nil},
		"prepared for ever":          {time.Second, never, never, time.Minute, placement.ErrPreparing},
		"the client does not wait":   {time.Second, never, 20 * time.Second, 20 * time.Second, context.Canceled},
		"the client goes before all": {never, never, 2 * time.Second, 2 * time.Second, context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				house := cluster.New(cluster.Config{
					PrepareWait: time.Minute, GatherWait: 10 * time.Second, QueueMax: 10,
					Placement: placement.Config{Fill: 0.9, Silence: time.Hour, Lease: time.Hour},
				}, func(string) {}, slog.New(slog.DiscardHandler))
				at := func(when time.Duration, do func()) {
					if when != never {
						time.AfterFunc(when, do)
					}
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				worker := placement.Worker{ID: "w", URI: "u", Flavor: "cpu", MemTotal: 1000}
				at(c.prepares, func() { _ = house.Worker(worker, placement.Busy) })
				at(c.ready, func() { _ = house.Worker(worker, placement.Ready) })
				at(c.gone, cancel)
				call, err := house.Enter("r", "", nil, nil)
				if err != nil {
					t.Fatal(err)
				}
				came := time.Now()
				_, err = house.Place(ctx, call, placement.Request{Memory: 10})
				if took := time.Since(came); took != c.want || !errors.Is(err, c.err) {
					t.Errorf("after %v: %v, want %v after %v", took, err, c.err, c.want)
				}
				house.Vacate(call, false)
				house.Leave(call, sessions.Untouched)
				if inFlight, queued, reserved := house.Load(); inFlight+queued+reserved != 0 {
					t.Errorf("left: %d calls, %d in the queue, %d reservations", inFlight, queued, reserved)
				}
			})
		})
	}
}
