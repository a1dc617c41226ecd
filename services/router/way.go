package router

import (
	"time"

	"github.com/hearth-run/hearth/gen/serverless"
)

// way notes where the time of a call goes in the router. One goroutine at a time
// uses it.
type way struct {
	began, last time.Time
	steps       []*serverless.ExecutionStep
}

func newWay() *way {
	now := time.Now()
	return &way{began: now, last: now}
}

// step ends a step.
func (w *way) step(name string) {
	now := time.Now()
	w.steps = append(w.steps, &serverless.ExecutionStep{Name: name, Nanos: int64(now.Sub(w.last))})
	w.last = now
}

// with adds what the worker has said, and what is left: the way to the worker and
// back, and the wait for the client's body.
func (w *way) with(worker []*serverless.ExecutionStep) []*serverless.ExecutionStep {
	left := time.Since(w.began).Nanoseconds()
	all := append(append([]*serverless.ExecutionStep{}, w.steps...), worker...)
	for _, step := range all {
		left -= step.GetNanos()
	}
	return append(all, &serverless.ExecutionStep{Name: "transit", Nanos: max(left, 0)})
}
