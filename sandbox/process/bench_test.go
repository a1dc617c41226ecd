//go:build linux && amd64

package process_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hearth-run/hearth/sandbox"
	"github.com/hearth-run/hearth/sandbox/process"
)

// BenchmarkWalls prints what each wall adds: go test ./process -run - -bench Walls
// -benchtime 200x.
func BenchmarkWalls(b *testing.B) {
	costs, err := process.Costs(b.Context(), b.N)
	if err != nil {
		b.Fatal(err)
	}
	var table strings.Builder
	for _, c := range costs {
		fmt.Fprintf(&table, "\n%-30s start %s", c.Walls, spread(c.Start))
		if len(c.End) > 0 {
			fmt.Fprintf(&table, "  end %s", spread(c.End))
		}
	}
	b.Log(table.String())
}

// spread is the tenth percentile and the median.
func spread(times []time.Duration) string {
	slices.Sort(times)
	return fmt.Sprintf("%6d %6d µs", times[len(times)/10].Microseconds(), times[len(times)/2].Microseconds())
}

// BenchmarkContainer prints the medians of a container's whole life.
func BenchmarkContainer(b *testing.B) {
	config := process.Default()
	config.Root = b.TempDir()
	d, err := process.Open(config)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	var parts [4][]time.Duration
	for b.Loop() {
		for i, t := range cold(b, d) {
			parts[i] = append(parts[i], t)
		}
	}
	for i, name := range []string{"create", "start", "end", "destroy"} {
		b.ReportMetric(float64(median(parts[i]).Microseconds()), name+"-µs")
	}
}

// BenchmarkEntry prints how long a child of a bare Python template takes from its fork
// until it stands behind every wall; with it go Create, Enter and the messages.
func BenchmarkEntry(b *testing.B) {
	d := openDriver(b)
	template := startTemplate(b)
	var times []time.Duration
	for b.Loop() {
		began := time.Now()
		c, _ := enter(b, d, template, "pass", nil)
		times = append(times, time.Since(began))
		if err := c.Destroy(); err != nil {
			b.Fatal(err)
		}
	}
	b.Logf("create, fork, walls: %s", spread(times))
}

// cold takes one container through its life: create, start, end, destroy.
func cold(b *testing.B, d *process.Driver) [4]time.Duration {
	b.Helper()
	ctx := context.Background()
	t0 := time.Now()
	c, err := d.Create(ctx, sandbox.Spec{
		ID: fmt.Sprint("b", t0.UnixNano()), Argv: []string{"/usr/bin/true"}, Binds: sandbox.SystemBinds(),
		Scratch: []sandbox.Scratch{{Target: "/tmp", Bytes: 1 << 20}, {Target: "/dev/shm", Bytes: 1 << 20}},
		Limits:  sandbox.Limits{Memory: 64 << 20, Pids: 20},
	})
	if err != nil {
		b.Fatal(err)
	}
	t1 := time.Now()
	if err := c.Start(ctx); err != nil {
		b.Fatal(err)
	}
	t2 := time.Now()
	if exit, err := c.Wait(ctx); err != nil || exit != (sandbox.Exit{}) {
		b.Fatal(exit, err)
	}
	t3 := time.Now()
	if err := c.Destroy(); err != nil {
		b.Fatal(err)
	}
	return [4]time.Duration{t1.Sub(t0), t2.Sub(t1), t3.Sub(t2), time.Since(t3)}
}

func median(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[len(times)/2]
}
