package group_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/hearth-run/hearth/internal/kit/group"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestStopsInReverse(t *testing.T) {
	var g group.Group
	var order []string
	for _, name := range []string{"store", "service", "edge"} {
		g.Add(name, func(ctx context.Context) error {
			<-ctx.Done()
			order = append(order, name) // one at a time: that is the claim
			return ctx.Err()
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := g.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if want := []string{"edge", "service", "store"}; !slices.Equal(order, want) {
		t.Errorf("stopped in the order %v, want %v", order, want)
	}
}

func TestOneEndEndsAll(t *testing.T) {
	broken := errors.New("broken")
	var g group.Group
	stopped := false
	g.Add("waits", func(ctx context.Context) error { <-ctx.Done(); stopped = true; return nil })
	g.Add("fails", func(context.Context) error { return broken })
	if err := g.Run(t.Context()); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if !stopped {
		t.Error("the other actor was left running")
	}
}

// Each actor returns only after all have been told: in Run's order that would
// never end.
func TestTogetherTellsAllAtOnce(t *testing.T) {
	var g group.Group
	broken := errors.New("broken")
	var told sync.WaitGroup
	told.Add(3)
	for range 3 {
		g.Add("slow", func(ctx context.Context) error {
			<-ctx.Done()
			told.Done()
			told.Wait()
			return ctx.Err()
		})
	}
	g.Add("fails", func(context.Context) error { return broken })
	if err := g.Together(t.Context()); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}
