package tour

import (
	"context"
	"fmt"
	"time"
)

// Execution is one call that brings its code with it.
type Execution struct {
	// File is beneath the examples; Entry the function; Args JSON values.
	File, Entry string
	Args        []string
	Session     string
	Shows       string
	// Value is the JSON that has to come back.
	Value string
}

// Executions are the second half of the tour.
func Executions() []Execution {
	counter := func(value, shows string) Execution {
		return Execution{File: "exec/primes.py", Entry: "counter", Session: "tour", Value: value, Shows: shows}
	}
	return []Execution{
		{File: "exec/primes.py", Entry: "count", Args: []string{"1000"}, Value: "168", Shows: "a function of a file, in a fresh sandbox"},
		counter("1", "the first call of a session starts its container"),
		counter("2", "the second finds its state"),
	}
}

// Executor runs one execution and says what came back, what was printed and how
// it started.
type Executor func(context.Context, Execution) (value, printed, how string, err error)

// Execute goes through the executions and returns how many answers were wrong, of
// the whole tour.
func (g *Guide) Execute(ctx context.Context, router string, execute Executor, executions []Execution) (wrong int, err error) {
	for i, e := range executions {
		session := ""
		if e.Session != "" {
			session = " --session " + e.Session
		}
		fmt.Fprintf(g.Out, "\ne%d. %s: %s\n", i+1, e.Entry, e.Shows)
		start := time.Now()
		value, printed, how, err := execute(ctx, e)
		if err != nil {
			return g.wrong, fmt.Errorf("execute %s: %w", e.Entry, err)
		}
		fmt.Fprintf(g.Out, "   %s in %s; it printed %d bytes; %s\n", value, short(time.Since(start)), len(printed), how)
		args := ""
		for _, arg := range e.Args {
			args += " " + arg
		}
		fmt.Fprintf(g.Out, "     hearth exec examples/%s:%s%s%s --router %s\n", e.File, e.Entry, args, session, router)
		if value != e.Value {
			g.wrong++
			fmt.Fprintf(g.Out, "   WRONG: want %s\n", e.Value)
		}
	}
	return g.wrong, nil
}
