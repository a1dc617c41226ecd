package runtimetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Options say what to run and how patient to be. The zero value runs everything.
type Options struct {
	// Only selects cases by ID or the start of one; empty: all.
	Only []string
	// Parallel is how many cases run at once; 0 is 8.
	Parallel int
	// Soon is how long something may take that the contract wants at once; it is
	// generous because machines are busy. 0 is 10 s.
	Soon time.Duration
	// Wait is how long to wait for a target that is starting; 0 is Soon.
	Wait time.Duration
	// Storm is how many invocations a storm has at once; 0 is 1000.
	Storm int
	// Done is called after each case, from one goroutine at a time. May be nil.
	Done func(Result)
}

// Run runs the suite, one protocol after the other, and returns a result for
// every selected case of each. The error is nil whatever the cases say: it means
// that the suite itself could not run, or that ctx was done.
func Run(ctx context.Context, target Target, options Options) ([]Result, error) {
	if err := target.prepare(); err != nil {
		return nil, err
	}
	if options.Parallel == 0 {
		options.Parallel = 8
	}
	if options.Soon == 0 {
		options.Soon = 10 * time.Second
	}
	if options.Wait == 0 {
		options.Wait = options.Soon
	}
	if options.Storm == 0 {
		options.Storm = 1000
	}
	var all []Result
	for _, protocol := range target.Protocols {
		results, err := runOver(ctx, &target, options, protocol)
		all = append(all, results...)
		if err != nil {
			return all, err
		}
	}
	return all, nil
}

func runOver(ctx context.Context, target *Target, options Options, protocol Protocol) ([]Result, error) {
	w, err := open(target.URL, protocol)
	if err != nil {
		return nil, err
	}
	defer w.close()
	functions, err := w.find(ctx, options.Wait)
	if err != nil {
		return nil, err
	}
	r := &runner{target: target, options: options, wire: w, functions: functions}
	return r.run(ctx)
}

// runner runs the cases over one protocol.
type runner struct {
	target    *Target
	options   Options
	wire      *wire
	functions bool

	mu sync.Mutex // guards calls of Options.Done
}

// run runs what can run side by side, then the rest one by one.
func (r *runner) run(ctx context.Context) ([]Result, error) {
	var cases []Case
	for _, c := range Cases() {
		if c.wanted(r.options.Only) {
			cases = append(cases, c)
		}
	}
	results := make([]Result, len(cases))
	slots := make(chan struct{}, r.options.Parallel)
	var wg sync.WaitGroup
	for i, c := range cases {
		if c.exclusive() {
			continue
		}
		slots <- struct{}{}
		wg.Go(func() {
			results[i] = r.one(ctx, c)
			<-slots
		})
	}
	wg.Wait()
	for i, c := range cases {
		if c.exclusive() {
			results[i] = r.one(ctx, c)
		}
	}
	if err := ctx.Err(); err != nil {
		return results, fmt.Errorf("run the suite: %w", context.Cause(ctx))
	}
	return results, nil
}

func (r *runner) one(ctx context.Context, c Case) Result {
	result := Result{ID: c.ID, Level: c.Level, Clause: c.Clause, Claim: c.Claim, Protocol: r.wire.protocol}
	if why := c.unmet(r.target, r.functions); why != "" {
		result.Verdict, result.Seen = Skip, why
	} else {
		start := time.Now()
		result.finish(r.attempt(ctx, c))
		result.Took = time.Since(start)
	}
	if r.options.Done != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.options.Done(result)
	}
	return result
}

// attempt runs one case and everything that it leaves to clean up.
func (r *runner) attempt(ctx context.Context, c Case) (failed error) {
	t, err := newT(ctx, r)
	if err != nil {
		return err
	}
	defer func() {
		if err := t.close(); failed == nil && err != nil {
			failed = err
		}
	}()
	defer func() {
		switch p := recover().(type) {
		case nil:
		case *failure:
			failed = p
		default:
			panic(p)
		}
	}()
	c.run(t)
	return nil
}

// failure is how a case ends that is not met.
type failure struct{ expected, seen string }

func (f *failure) Error() string { return fmt.Sprintf("expected %s, saw %s", f.expected, f.seen) }

func (r *Result) finish(err error) {
	var f *failure
	switch {
	case err == nil:
		r.Verdict = Pass
	case errors.As(err, &f):
		r.Verdict, r.Expected, r.Seen = Fail, f.expected, f.seen
	default:
		r.Verdict, r.Expected, r.Seen = Fail, "the case to run", err.Error()
	}
}
