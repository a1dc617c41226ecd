// Package load owns how calls are made and timed: so many callers, each making
// one call after the other, for so long.
package load

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Caller makes one call; an error ends the whole measurement.
type Caller func(ctx context.Context) error

// Result is what a measurement found.
type Result struct {
	// Took are the times of all calls, sorted.
	Took []time.Duration
	// Elapsed is how long the measurement lasted.
	Elapsed time.Duration
}

// Run lets every caller call for the given time, one call after the other.
// Errors: the first call that failed.
func Run(ctx context.Context, callers []Caller, lasting time.Duration) (Result, error) {
	return Paced(ctx, callers, lasting, 0)
}

// Paced lets every caller begin a call each time that an interval is over, for the
// given time; one that takes longer than the interval is followed at once.
// Errors: the first call that failed.
func Paced(ctx context.Context, callers []Caller, lasting, interval time.Duration) (Result, error) {
	until, cancel := context.WithTimeout(ctx, lasting)
	defer cancel()
	times := make([][]time.Duration, len(callers))
	errs := make([]error, len(callers))
	start := time.Now()
	var group sync.WaitGroup
	for i, call := range callers {
		group.Go(func() {
			// The call itself is not cut: the end of the time is looked at between two.
			for until.Err() == nil && errs[i] == nil {
				begin := time.Now()
				errs[i] = call(ctx)
				times[i] = append(times[i], time.Since(begin))
				rest(until, interval-time.Since(begin))
			}
			if errs[i] != nil {
				cancel()
			}
		})
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		return Result{}, fmt.Errorf("call: %w", err)
	}
	return Result{Took: sorted(times...), Elapsed: time.Since(start)}, nil
}

// rest waits, but not beyond the end of ctx.
func rest(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// Merge joins measurements of one thing.
func Merge(results ...Result) Result {
	var all Result
	for _, r := range results {
		all.Took = append(all.Took, r.Took...)
		all.Elapsed += r.Elapsed
	}
	slices.Sort(all.Took)
	return all
}

// Quantile returns the time within which a share of the calls ended.
func (r Result) Quantile(share float64) time.Duration {
	if len(r.Took) == 0 {
		return 0
	}
	return r.Took[min(int(share*float64(len(r.Took))), len(r.Took)-1)]
}

// Rate is calls per second.
func (r Result) Rate() float64 { return float64(len(r.Took)) / r.Elapsed.Seconds() }

func sorted(lists ...[]time.Duration) []time.Duration {
	all := slices.Concat(lists...)
	slices.Sort(all)
	return all
}
