package e2e

import (
	"encoding/json"
	"strings"
	"testing"
)

// When `up` has printed where it is, every node of it takes Runs of both kinds.
func TestReadyMeansAble(t *testing.T) {
	h := up(t)
	out, _ := h.run(t, 0, "node", "list", "-o", "json")
	var nodes []struct {
		Name                             string
		SupportsFunctions, SupportsTasks bool
	}
	if err := json.Unmarshal([]byte(out), &nodes); err != nil || len(nodes) != 2 {
		t.Fatalf("%v: %s", err, out)
	}
	for _, n := range nodes {
		if !n.SupportsFunctions || !n.SupportsTasks {
			t.Errorf("a node that is not able: %+v", n)
		}
	}
}

// Whoever starts a second Hearth beside the first hears whose address is taken, and
// what to do about it.
func TestAddressTaken(t *testing.T) {
	h := up(t)
	taken := strings.TrimPrefix(h.doors["gateway"], "http://")
	_, stderr := h.run(t, 1, "up", "--data", t.TempDir(), "--gateway", taken, "--control-plane", "127.0.0.1:0", "--router=")
	if !strings.Contains(stderr, "open the gateway: listen on "+taken) || !strings.Contains(stderr, "--gateway") {
		t.Errorf("says %q", stderr)
	}
}
