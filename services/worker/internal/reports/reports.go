// Package reports owns what routers are told: the worker's state and load, and the
// latest state of each container. A router that does not answer delays nobody; it
// is told everything again once it does.
package reports

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/hearth-run/hearth/gen/serverless"
	"github.com/hearth-run/hearth/gen/serverless/serverlessconnect"
)

// Source is where a report that is due takes its content from. Its methods are
// called at any time.
type Source interface {
	// Worker is the worker's state now.
	Worker() *serverless.WorkerStatus
	// Utilization is its load now, and that of each container.
	Utilization() (*serverless.WorkerUtilization, []*serverless.ExecutorUtilization)
	// Containers are the states of all live containers now.
	Containers() []*serverless.ExecutorStatus
}

// Reporter tells one router. Post may be called from any goroutine; Run is its
// only sender, so that a container's states arrive in their order.
type Reporter struct {
	router   serverlessconnect.RegistryServiceClient
	source   Source
	interval time.Duration
	log      *slog.Logger
	wake     chan struct{}

	mu      sync.Mutex // guards what follows
	pending []*serverless.ExecutorStatus
	// announce asks for the worker's state to be told before what is pending.
	announce bool
}

// timeout bounds one report.
const timeout = 5 * time.Second

// retry is the wait after a report that did not arrive.
const retry = time.Second

// maxPending bounds what is kept for a router that does not answer: above it the
// oldest go, since all live containers are told again when it is back.
const maxPending = 10_000

// New returns a reporter to router that sends load each interval.
func New(router serverlessconnect.RegistryServiceClient, source Source, interval time.Duration, log *slog.Logger) *Reporter {
	return &Reporter{router: router, source: source, interval: interval, log: log, wake: make(chan struct{}, 1)}
}

// Post queues a container's state. It never blocks and never fails a call.
func (r *Reporter) Post(status *serverless.ExecutorStatus) {
	r.mu.Lock()
	r.pending = append(r.pending, status)
	if over := len(r.pending) - maxPending; over > 0 {
		r.pending = slices.Delete(r.pending, 0, over)
	}
	r.mu.Unlock()
	r.stir()
}

// Announce asks for the worker's state to be told anew, as after a change of it.
func (r *Reporter) Announce() {
	r.mu.Lock()
	r.announce = true
	r.mu.Unlock()
	r.stir()
}

func (r *Reporter) stir() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Run reports until ctx is done: the worker first, then what is queued and, each
// interval, the load.
func (r *Reporter) Run(ctx context.Context) {
	known := false
	ticker := time.NewTicker(r.interval)
	defer ticker.Stop()
	for ctx.Err() == nil {
		var err error
		if known {
			known, err = r.flush(ctx)
		} else {
			known, err = r.introduce(ctx)
		}
		if err != nil {
			r.log.Debug("report to router", "err", err)
			known = false
			wait(ctx, retry)
			continue
		}
		if !known || r.queued() {
			continue
		}
		select {
		case <-ctx.Done():
		case <-r.wake:
		case <-ticker.C:
			// What the load counts is told before it.
			if known, err = r.flush(ctx); known && err == nil {
				known, err = r.load(ctx)
			}
			if err != nil {
				r.log.Debug("report load to router", "err", err)
				known = false
			}
		}
	}
}

func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// introduce tells a router that does not know the worker everything: the worker,
// its containers, its load. What was queued before is older than that and is not
// told after it, but for what was removed.
func (r *Reporter) introduce(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if _, err := r.router.PostWorkerStatus(ctx, r.source.Worker()); err != nil {
		return false, err
	}
	r.supersede()
	for _, status := range r.source.Containers() {
		if _, err := r.router.PostExecutorStatus(ctx, status); err != nil {
			return false, err
		}
	}
	return r.load(ctx)
}

// flush sends what is queued, in order. A state that did not arrive stays first.
func (r *Reporter) flush(ctx context.Context) (bool, error) {
	if r.announced() {
		post, cancel := context.WithTimeout(ctx, timeout)
		_, err := r.router.PostWorkerStatus(post, r.source.Worker())
		cancel()
		if err != nil {
			return false, err
		}
	}
	for {
		r.mu.Lock()
		var next *serverless.ExecutorStatus
		if len(r.pending) > 0 {
			next = r.pending[0]
		}
		r.mu.Unlock()
		if next == nil {
			return true, nil
		}
		post, cancel := context.WithTimeout(ctx, timeout)
		answer, err := r.router.PostExecutorStatus(post, next)
		cancel()
		if err != nil {
			return false, err
		}
		r.sent(next)
		if !answer.GetUpdated() {
			return false, nil
		}
	}
}

// supersede drops queued states that the source's own, read next, are newer than.
func (r *Reporter) supersede() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pending = slices.DeleteFunc(r.pending, func(status *serverless.ExecutorStatus) bool {
		return status.GetStatus() == serverless.Status_STATUS_READY || status.GetStatus() == serverless.Status_STATUS_BUSY
	})
}

func (r *Reporter) sent(status *serverless.ExecutorStatus) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.pending) > 0 && r.pending[0] == status {
		r.pending = slices.Delete(r.pending, 0, 1)
	}
}

func (r *Reporter) queued() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.pending) > 0 || r.announce
}

// announced takes the wish to announce.
func (r *Reporter) announced() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer func() { r.announce = false }()
	return r.announce
}

func (r *Reporter) load(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	worker, containers := r.source.Utilization()
	answer, err := r.router.PostWorkerUtilization(ctx, worker)
	if err != nil || !answer.GetUpdated() {
		return false, err
	}
	for _, container := range containers {
		if _, err := r.router.PostExecutorUtilization(ctx, container); err != nil {
			return false, err
		}
	}
	return true, nil
}

// Leave tells the router that the worker is gone, as the last word.
func (r *Reporter) Leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if _, err := r.flush(ctx); err != nil {
		r.log.Debug("flush reports to router", "err", err)
	}
	status := r.source.Worker()
	status.Status = serverless.Status_STATUS_REMOVED
	if _, err := r.router.PostWorkerStatus(ctx, status); err != nil {
		r.log.Debug("leave router", "err", err)
	}
}
