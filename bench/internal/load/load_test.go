package load_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/hearth-run/hearth/bench/internal/load"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func takes(d time.Duration) load.Caller {
	return func(context.Context) error { time.Sleep(d); return nil }
}

func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got, err := load.Run(t.Context(), []load.Caller{takes(10 * time.Millisecond), takes(30 * time.Millisecond)}, 2995*time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Took) != 400 || got.Elapsed != 3*time.Second {
			t.Errorf("%d calls in %v", len(got.Took), got.Elapsed)
		}
		if got.Quantile(0.5) != 10*time.Millisecond || got.Quantile(0.99) != 30*time.Millisecond {
			t.Errorf("p50 %v, p99 %v", got.Quantile(0.5), got.Quantile(0.99))
		}
		if rate := load.Merge(got, got).Rate(); rate < 132 || rate > 134 {
			t.Errorf("%f calls a second", rate)
		}
	})
}

func TestPaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got, err := load.Paced(t.Context(), []load.Caller{takes(10 * time.Millisecond), takes(120 * time.Millisecond)}, 2990*time.Millisecond, 50*time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Took) != 60+25 || got.Elapsed != 3*time.Second {
			t.Errorf("%d calls in %v", len(got.Took), got.Elapsed)
		}
	})
}

func TestRunStopsAtAnError(t *testing.T) {
	broken := errors.New("broken")
	fails := func(context.Context) error { return broken }
	if _, err := load.Run(t.Context(), []load.Caller{takes(0), fails}, time.Hour); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}
