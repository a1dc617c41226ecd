package process_test

import (
	"context"
	"io"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/hearth-run/hearth/sandbox"
	"github.com/hearth-run/hearth/sandbox/process"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSmoke(t *testing.T) {
	config := process.Default()
	config.Root = t.TempDir()
	d, err := process.Open(config)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}()
	r, w, _ := os.Pipe()
	c, err := d.Create(context.Background(), sandbox.Spec{
		ID: "a", Argv: []string{"/bin/sh", "-c", "id; mount; ls -la / /dev /etc /proc/self/fd; cat /proc/self/status; kill -9 $$"}, Binds: sandbox.SystemBinds(),
		Env: []string{"PATH=/usr/bin"}, Scratch: []sandbox.Scratch{{Target: "/tmp", Bytes: 1 << 20}, {Target: "/dev/shm", Bytes: 1 << 20}},
		Limits: sandbox.Limits{Memory: 64 << 20, Pids: 20, MilliCPU: 1000}, Stdout: w, Stderr: w,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	out, _ := io.ReadAll(r)
	t.Logf("%s", out)
	e, err := c.Wait(context.Background())
	t.Log(e, err)
	t.Log(c.Stats())
}
