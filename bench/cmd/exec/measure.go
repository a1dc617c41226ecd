package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/hearth-run/hearth/bench/internal/load"
	"github.com/hearth-run/hearth/bench/internal/peer"
)

// way is how calls come to their containers.
type way struct {
	name    string
	pool    int
	cold    bool
	session bool
	pace    time.Duration // of one caller, who is the only one; 0: as fast as it goes
	key     string        // of --ways
}

// ways in an order in which two neighbours share a house.
var ways = []way{
	{name: "cold", pool: 0, cold: true, key: "cold"},
	{name: "from a zygote", pool: 0, key: "zygote"},
	{name: "found ready", pool: 16, key: "ready"},
	{name: "found ready, 10/s", pool: 16, pace: 100 * time.Millisecond, key: "paced"},
	{name: "session", pool: 16, session: true, key: "session"},
}

// row is one line of the table.
type row struct {
	way      string
	function function
	callers  int
	load.Result
	*seen
	cpu time.Duration // of hearth and all that it ran
}

func measure(ctx context.Context, f flags) (err error) {
	if os.Geteuid() != 0 {
		return errors.New("run it as root: the walls and the forks behind them need its rights")
	}
	dir := f.Data
	if dir == "" {
		if dir, err = os.MkdirTemp("", "hearth-bench-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	// Executors run as users without rights, who have to be able to read it.
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.Chmod(dir, 0o755)); err != nil {
		return err
	}
	program, err := peer.Build(ctx, f.Hearth, dir)
	if err != nil {
		return err
	}
	fmt.Printf("%s, %d cores, %s; %d × %v each\n", runtime.Version(), runtime.NumCPU(), time.Now().UTC().Format(time.DateOnly), f.Rounds, f.Lasting)
	rows, err := houses(ctx, f, program, filepath.Join(dir, "data"))
	if err != nil {
		return err
	}
	show(rows)
	showSteps(rows)
	if f.Walls > 0 {
		if err := walls(ctx, f.Walls); err != nil {
			return err
		}
	}
	if f.Peers {
		return peers(ctx, f, dir)
	}
	return nil
}

// houses measures every way, in a house for each size of pool.
func houses(ctx context.Context, f flags, program, data string) ([]row, error) {
	var rows []row
	for _, pool := range []int{0, 16} {
		if !slices.ContainsFunc(ways, func(w way) bool { return w.pool == pool && slices.Contains(f.Ways, w.key) }) {
			continue
		}
		h, err := open(ctx, program, data, pool)
		if err != nil {
			return nil, err
		}
		more, err := h.all(ctx, f, pool)
		rows = append(rows, more...)
		if err := errors.Join(err, h.stop()); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

func (h *house) all(ctx context.Context, f flags, pool int) ([]row, error) {
	var rows []row
	for _, w := range ways {
		if w.pool != pool || !slices.Contains(f.Ways, w.key) {
			continue
		}
		for _, fn := range functions {
			for _, callers := range f.Callers {
				if w.pace > 0 && callers != 1 {
					continue
				}
				r, err := h.one(ctx, f, w, fn, callers)
				if err != nil {
					return nil, fmt.Errorf("%s, %s: %w", w.name, fn.name, err)
				}
				rows = append(rows, r)
			}
		}
	}
	if pool == 0 {
		return rows, nil
	}
	return rows, h.more(ctx, f)
}

// one measures a way; a short round before does not count.
func (h *house) one(ctx context.Context, f flags, w way, fn function, callers int) (row, error) {
	r := row{way: w.name, function: fn, callers: callers}
	for round := range f.Rounds + 1 {
		s := newSeen()
		list := make([]load.Caller, callers)
		for c := range list {
			session := ""
			if w.session {
				session = fmt.Sprintf("s-%s-%d-%d", fn.name, callers, c)
			}
			list[c] = caller(h.router, fn, w.cold, session, s)
		}
		lasting := f.Lasting
		if round == 0 {
			lasting = min(lasting, time.Second)
		}
		before := h.cpu()
		result, err := load.Paced(ctx, list, lasting, w.pace)
		if err != nil {
			return row{}, err
		}
		if round > 0 {
			r.cpu += h.cpu() - before
			r.Result, r.seen = load.Merge(r.Result, result), merge(r.seen, s)
		}
	}
	return r, nil
}

func merge(a, b *seen) *seen {
	if a == nil {
		return b
	}
	for start, n := range b.starts {
		a.starts[start] += n
	}
	for name, took := range b.steps {
		a.steps[name] = append(a.steps[name], took...)
	}
	return a
}

// more are the idle containers and the sustained rate.
func (h *house) more(ctx context.Context, f flags) error {
	idle, err := h.idle(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("\nidle containers: %s\n", idle)
	for _, fn := range functions {
		s := newSeen()
		list := slices.Repeat([]load.Caller{caller(h.router, fn, false, "", s)}, 16)
		before := h.cpu()
		r, err := load.Run(ctx, list, f.Sustained)
		if err != nil {
			return err
		}
		fmt.Printf("isolated calls sustained for %v, %s, 16 callers: %.0f/s, p50 %v, p99 %v, %v of CPU a call (%s)\n", f.Sustained, fn.name, r.Rate(),
			r.Quantile(0.5).Round(10*time.Microsecond), r.Quantile(0.99).Round(10*time.Microsecond), ((h.cpu() - before) / time.Duration(len(r.Took))).Round(10*time.Microsecond), s.shares())
	}
	return nil
}

func show(rows []row) {
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "\nway\tfunction\tcallers\tp50\tp99\tcalls/s\tCPU a call\tstarts\t")
	for _, r := range rows {
		cpu := (r.cpu / time.Duration(len(r.Took))).Round(10 * time.Microsecond).String()
		if r.way == "cold" {
			cpu = "-" // what a container's first process has not reaped is in no sum
		}
		fmt.Fprintf(table, "%s\t%s\t%d\t%v\t%v\t%.0f\t%s\t%s\t\n", r.way, r.function.name, r.callers,
			r.Quantile(0.5).Round(10*time.Microsecond), r.Quantile(0.99).Round(10*time.Microsecond), r.Rate(), cpu, r.shares())
	}
	_ = table.Flush()
}

// showSteps prints the median of each step, with one caller.
func showSteps(rows []row) {
	fmt.Println("\nwhere the time goes, one caller, median of each step (a step that a call has not is not counted for it):")
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		if r.callers != 1 {
			continue
		}
		fmt.Fprintf(table, "%s\t%s\t", r.way, r.function.name)
		for _, name := range r.order {
			took := r.steps[name]
			slices.Sort(took)
			fmt.Fprintf(table, "%s %v\t", name, took[len(took)/2].Round(10*time.Microsecond))
		}
		fmt.Fprintln(table)
	}
	_ = table.Flush()
}
