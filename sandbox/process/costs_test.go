//go:build linux && amd64

package process_test

import (
	"testing"

	"github.com/hearth-run/hearth/sandbox/process"
)

// TestCosts: every set of walls has its turn in every round.
func TestCosts(t *testing.T) {
	const rounds = 2
	costs, err := process.Costs(t.Context(), rounds)
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range costs {
		ends := rounds
		if i == 0 {
			ends = 0
		}
		if c.Walls == "" || len(c.Start) != rounds || len(c.End) != ends {
			t.Errorf("%d: %+v", i, c)
		}
	}
}
