package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/hearth-run/hearth/adapters/runtimeserver"
)

// witness is told of every execution of user code, by the user code.
type witness struct {
	mu         sync.Mutex // guards all
	violations []string
	// running is where each Run's invocation is executed now.
	running map[string]string
	// executed counts by invocation ID.
	executed map[string]int
	// loaded are the functions that were and are not closed, as "RUN at LIFE".
	loaded map[*instance]string
	random *rand.Rand
	// instances are the latest of each Run, for a bug that goes around the server.
	instances map[string]*instance
}

func newWitness(random *rand.Rand) *witness {
	return &witness{running: map[string]string{}, executed: map[string]int{}, loaded: map[*instance]string{}, random: random, instances: map[string]*instance{}}
}

// violate notes a broken claim.
func (w *witness) violate(claim, format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note(claim, format, args...)
}

func (w *witness) note(claim, format string, args ...any) {
	w.violations = append(w.violations, claim+": "+fmt.Sprintf(format, args...))
}

func (w *witness) begin(run, place, invocation string) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if other, busy := w.running[run]; busy {
		claim := "single"
		if other != place {
			claim = "served"
		}
		w.note(claim, "run %s is executed at %s and at %s", run, other, place)
	}
	w.running[run] = place
	if w.executed[invocation]++; w.executed[invocation] > 1 {
		w.note("once", "invocation %s is executed %d times", invocation, w.executed[invocation])
	}
	if strings.HasPrefix(invocation, stalePrefix) {
		w.note("fenced", "%s was executed", invocation)
	}
	if strings.HasPrefix(invocation, probePrefix) {
		return 500 * time.Millisecond // long enough to meet the probe of another node
	}
	if w.random.IntN(20) == 0 {
		return time.Duration(w.random.IntN(8000)) * time.Millisecond
	}
	return time.Duration(w.random.IntN(20)) * time.Millisecond
}

func (w *witness) end(run, place string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.running[run] == place {
		delete(w.running, run)
	}
}

func (w *witness) load(i *instance) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.loaded[i] = i.run + " at " + i.place
	w.instances[i.run] = i
}

func (w *witness) unload(i *instance) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.loaded, i)
}

func (w *witness) count(invocation string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.executed[invocation]
}

// found takes the broken claims.
func (w *witness) found() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.violations
}

// stalePrefix begins the IDs of invocations that must never be executed.
const stalePrefix = "stale-"

// probePrefix begins the IDs of invocations that look for two nodes that serve.
const probePrefix = "probe-"

// language is the fake: functions without code that report to the witness. place
// is the Runtime Server's life that they are loaded in.
type language struct {
	witness *witness
	place   string
}

func (l language) Name() string { return "fake" }

func (l language) Resolve(string, string) error { return nil }

func (l language) Load(ctx context.Context, f runtimeserver.Function) (runtimeserver.Instance, error) {
	if err := pause(ctx, 5*time.Millisecond); err != nil {
		return nil, err
	}
	i := &instance{language: l, run: f.RunUID}
	l.witness.load(i)
	return i, nil
}

type instance struct {
	language
	run string
}

func (i *instance) Invoke(ctx context.Context, call runtimeserver.Call) (runtimeserver.Result, error) {
	d := i.witness.begin(i.run, i.place, call.InvocationID)
	defer i.witness.end(i.run, i.place)
	if err := pause(ctx, d); err != nil {
		return runtimeserver.Result{}, err
	}
	return runtimeserver.Result{Output: call.Input, ContentType: "application/json"}, nil
}

func (i *instance) Close() error {
	i.witness.unload(i)
	return nil
}

// pause waits in synthetic time.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
