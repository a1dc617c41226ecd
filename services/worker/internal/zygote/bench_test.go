package zygote_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hearth-run/hearth/services/worker/internal/box"
	"github.com/hearth-run/hearth/services/worker/internal/zygote"
)

// sets are what the benchmarks' zygotes have imported; those that the environment lacks
// are left out.
var sets = []struct {
	name    string
	modules []string
}{{"empty", nil}, {"numpy+pandas", []string{"numpy", "pandas"}}}

// BenchmarkEnter prints the tenth percentiles and medians of a container's way from
// nothing to an executor that has said Ready, unpooled, in steps, and of its way out
// (which nobody waits for); then how much memory it has for itself. On a busy machine the
// tenth percentile says more than the median: HEARTH_TEST_PYTHON=… go test ./internal/zygote -run - -bench Enter
// -benchtime 200x
func BenchmarkEnter(b *testing.B) {
	for _, set := range sets {
		b.Run(set.name, func(b *testing.B) {
			w := open(b, nil)
			if !w.has(set.modules) {
				b.Skip("the environment has no " + set.name)
			}
			z := w.grow(w.root, set.modules...)
			steps := map[string][]time.Duration{}
			var private []time.Duration
			for b.Loop() {
				private = append(private, time.Duration(w.step(b, z, steps)))
			}
			for name, times := range steps {
				slices.Sort(times)
				b.ReportMetric(float64(times[len(times)/10].Microseconds()), name+"-p10-µs")
				b.ReportMetric(float64(times[len(times)/2].Microseconds()), name+"-p50-µs")
			}
			slices.Sort(private)
			b.ReportMetric(float64(private[len(private)/2])/(1<<20), "private-MiB")
			f := z.Facts()
			b.ReportMetric(float64(f.PrivateBytes+f.SharedBytes)/(1<<20), "zygote-MiB")
		})
	}
}

func (w *ward) has(modules []string) bool {
	for _, module := range modules {
		if exec.Command(w.Python, "-I", "-c", "import "+module).Run() != nil {
			return false
		}
	}
	return true
}

// step takes a container through its life and returns its private bytes.
func (w *ward) step(b *testing.B, z *zygote.Zygote, steps map[string][]time.Duration) int64 {
	ctx := context.Background()
	id := fmt.Sprintf("b%d", boxes.Add(1))
	began := time.Now()
	lap := began
	note := func(name string) {
		now := time.Now()
		steps[name] = append(steps[name], now.Sub(lap))
		lap = now
	}
	sockets, err := box.NewSockets(w.run, id)
	if err != nil {
		b.Fatal(err)
	}
	note("1-sockets")
	c, err := w.driver.Create(ctx, w.spec(id, sockets.Files))
	if err != nil {
		b.Fatal(err)
	}
	note("2-create")
	e := box.NewExecutor(sockets)
	if err := z.Enter(ctx, c, zygote.Begin{}); err != nil {
		b.Fatal(err)
	}
	note("3-enter")
	sockets.Started()
	if err := e.AwaitReady(ctx); err != nil {
		b.Fatal(err)
	}
	note("4-ready")
	steps["5-all"] = append(steps["5-all"], time.Since(began))
	private := w.privateBytes(b, z)
	lap = time.Now()
	e.Close()
	if err := c.Destroy(); err != nil {
		b.Fatal(err)
	}
	note("6-end")
	return private
}

// privateBytes is what the one process that is no zygote shares with nobody.
func (w *ward) privateBytes(b *testing.B, z *zygote.Zygote) (bytes int64) {
	for _, pid := range childrenOf(b, os.Getpid()) {
		if pid == strconv.Itoa(z.Facts().Pid) || pid == strconv.Itoa(w.root.Facts().Pid) {
			continue
		}
		for len(threadsOf(b, pid)) < 2 { // that of its log is the last that it does
			runtime.Gosched()
		}
		text, err := os.ReadFile("/proc/" + pid + "/smaps_rollup")
		if err != nil {
			b.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			var kib int64
			if _, err := fmt.Sscanf(line[strings.Index(line, ":")+1:], "%d", &kib); err == nil && strings.HasPrefix(line, "Private_") {
				bytes += kib << 10
			}
		}
	}
	return bytes
}

func threadsOf(b *testing.B, pid string) []os.DirEntry {
	threads, err := os.ReadDir("/proc/" + pid + "/task")
	if err != nil {
		b.Fatal(err)
	}
	return threads
}
