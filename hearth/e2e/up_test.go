package e2e

import (
	"encoding/json"
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
