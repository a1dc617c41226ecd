package e2e

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hearth-run/hearth/hearth/internal/cli"
)

// join adds a node of its own, in front of the house's Runtime Server for Bash.
func (h *house) join(t *testing.T, name string, flags ...string) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	ended, errs := make(chan int, 1), &safeBuffer{}
	go func() {
		shell := cli.Shell{In: strings.NewReader(""), Out: io.Discard, Err: errs, Environ: os.Environ()}
		ended <- cli.Main(ctx, shell, append([]string{
			"runtimed", "--name", name, "--listen", "127.0.0.1:0", "--control-plane", h.doors["controlplane"],
			"--runtime-server", h.doors["bash"], "--data", filepath.Join(h.data, "node-"+name),
		}, flags...))
	}()
	t.Cleanup(func() {
		stop()
		if code := <-ended; code != 0 {
			t.Errorf("node %s ended with %d: %s", name, code, errs)
		}
	})
}

// place is where a Run is, and in which attempt.
func (h *house) place(t *testing.T, name string) (node string, attempt int) {
	t.Helper()
	out, _ := h.run(t, 0, "run", "get", name, "-o", "json")
	var run struct {
		Status struct {
			NodeUID string `json:"nodeUid"`
			Attempt int
		}
	}
	if err := json.Unmarshal([]byte(out), &run); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return run.Status.NodeUID, run.Status.Attempt
}

// A drained node's Runs move to another one, and are called there.
func TestNodeDrain(t *testing.T) {
	h := up(t)
	h.create(t, "moves", "bash", "hello.greet", examples("bash", "hello"))
	before, _ := h.place(t, "moves")
	h.join(t, "second", "--runtime", "bash", "--workspace", filepath.Join(h.data, "workspace-bash"))
	h.run(t, 0, "node", "drain", "bash")
	h.run(t, 0, "run", "wait", "moves", "--timeout", "30s")
	after, attempt := h.place(t, "moves")
	if after == before || attempt != 2 {
		t.Errorf("it was on node %s and is on %s, attempt %d", before, after, attempt)
	}
	h.call(t, "moves", "{}").wants(t, 200, "")
	// What is created from now on goes to the other one too.
	h.create(t, "new", "bash", "hello.greet", examples("bash", "hello"))
	if on, _ := h.place(t, "new"); on != after {
		t.Errorf("the next Run is on %s, want %s", on, after)
	}
	if out, _ := h.run(t, 0, "node", "list"); !strings.Contains(out, "draining") && !strings.Contains(out, "DRAIN") {
		t.Errorf("the list does not say which node drains: %s", out)
	}
	h.run(t, 1, "node", "drain", "nowhere")
}
