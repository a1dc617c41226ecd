package process_test

import (
	"context"
	"fmt"
	"os/exec"
	"testing"

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
	for b.Loop() {
		n++
		c, err := d.Create(ctx, sandbox.Spec{
			ID: fmt.Sprint("a", n), Argv: []string{"/usr/bin/true"}, Binds: sandbox.SystemBinds(),
			Scratch: []sandbox.Scratch{{"/tmp", 1 << 20}, {"/dev/shm", 1 << 20}},
			Limits:  sandbox.Limits{Memory: 64 << 20, Pids: 20, MilliCPU: 1000},
		})
		if err != nil {
			b.Fatal(err)
		}
		if err := c.Start(ctx); err != nil {
			b.Fatal(err)
		}
		if _, err := c.Wait(ctx); err != nil {
			b.Fatal(err)
		}
		if err := c.Destroy(); err != nil {
			b.Fatal(err)
		}
	}
}
