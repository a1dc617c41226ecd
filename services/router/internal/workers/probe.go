package workers

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Prober evicts workers that answer no probe.
type Prober struct {
	// Check probes one worker.
	Check func(ctx context.Context, uri string) error
	// Targets are the workers to probe, id to uri.
	Targets func() map[string]string
	// Evict is called for a worker that has failed Failures probes in a row.
	Evict func(worker, uri, cause string)
	// Every is the time between two probes of a worker, Timeout what one may take.
	Every, Timeout time.Duration
	Failures       int
	Log            *slog.Logger
}

// abreast is how many probes may be under way at once.
const abreast = 256

// target is one worker at one place: a worker that has moved starts anew.
type target struct{ worker, uri string }

type verdict struct {
	target
	err error
}

// Run probes until ctx is done; when it returns no probe is under way.
func (p *Prober) Run(ctx context.Context) error {
	ticker := time.NewTicker(p.Every)
	defer ticker.Stop()
	failures := map[target]int{}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			failures = p.round(ctx, failures)
		}
	}
}

// round probes every worker once, and returns who has failed how often.
func (p *Prober) round(ctx context.Context, before map[target]int) map[target]int {
	verdicts := make(chan verdict)
	go p.probe(ctx, verdicts)
	after := map[target]int{}
	for v := range verdicts {
		if v.err == nil || ctx.Err() != nil {
			continue
		}
		after[v.target] = before[v.target] + 1
		p.Log.Debug("probe failed", "worker_id", v.worker, "uri", v.uri, "failures", after[v.target], "err", v.err)
		if after[v.target] >= p.Failures {
			delete(after, v.target)
			p.Evict(v.worker, v.uri, "unreachable")
		}
	}
	return after
}

// probe sends the verdict of each worker and closes verdicts after the last.
func (p *Prober) probe(ctx context.Context, verdicts chan<- verdict) {
	defer close(verdicts)
	var all sync.WaitGroup
	defer all.Wait()
	room := make(chan struct{}, abreast)
	for worker, uri := range p.Targets() {
		room <- struct{}{}
		all.Go(func() {
			defer func() { <-room }()
			ctx, cancel := context.WithTimeout(ctx, p.Timeout)
			defer cancel()
			verdicts <- verdict{target{worker, uri}, p.Check(ctx, uri)}
		})
	}
}
