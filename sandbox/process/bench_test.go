package process_test

import (
	"context"
	"fmt"
	"os/exec"
	"testing"
	"time"

	"github.com/hearth-run/hearth/sandbox"
	"github.com/hearth-run/hearth/sandbox/process"
)

func BenchmarkBareExec(b *testing.B) {
	for b.Loop() {
		if err := exec.Command("/usr/bin/true").Run(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkContainer(b *testing.B) {
	config := process.Default()
	config.Root = b.TempDir()
	d, err := process.Open(config)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	ctx := context.Background()
	n := 0
	var sums [4]time.Duration
	for b.Loop() {
		n++
		t0 := time.Now()
		c, err := d.Create(ctx, sandbox.Spec{
			ID: fmt.Sprint("a", n), Argv: []string{"/usr/bin/true"}, Binds: sandbox.SystemBinds(),
			Scratch: []sandbox.Scratch{{Target: "/tmp", Bytes: 1 << 20}, {Target: "/dev/shm", Bytes: 1 << 20}},
			Limits:  sandbox.Limits{Memory: 64 << 20, Pids: 20, MilliCPU: 1000},
		})
		if err != nil {
			b.Fatal(err)
		}
		t1 := time.Now()
		if err := c.Start(ctx); err != nil {
			b.Fatal(err)
		}
		t2 := time.Now()
		if _, err := c.Wait(ctx); err != nil {
			b.Fatal(err)
		}
		t3 := time.Now()
		if err := c.Destroy(); err != nil {
			b.Fatal(err)
		}
		t4 := time.Now()
		for i, d := range []time.Duration{t1.Sub(t0), t2.Sub(t1), t3.Sub(t2), t4.Sub(t3)} {
			sums[i] += d
		}
	}
	for i, name := range []string{"create", "start", "wait", "destroy"} {
		b.ReportMetric(float64(sums[i].Microseconds())/float64(n), name+"-us")
	}
}
