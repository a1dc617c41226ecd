//go:build linux && amd64

package process_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/hearth-run/hearth/sandbox"
	"github.com/hearth-run/hearth/sandbox/process"
)

// TestProbe: what Probe says stands is what the suite found to stand.
func TestProbe(t *testing.T) {
	defer goleak.VerifyNone(t)
	found, err := process.Probe(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	root := os.Geteuid() == 0
	for _, w := range found {
		t.Logf("%-20s %-5v %s", w.Name, w.Stands, w.Detail)
		limited := strings.HasSuffix(w.Name, "-limit")
		if w.Stands != (root || !limited) || w.Detail == "" {
			t.Errorf("%+v", w)
		}
	}
	if err := sandbox.RequireIsolation(found); (err == nil) != root {
		t.Errorf("require isolation: %v", err)
	}
}
