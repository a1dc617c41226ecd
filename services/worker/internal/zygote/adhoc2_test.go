package zygote_test

import (
	"fmt"
	"os/exec"
	"sort"
	"testing"

	"github.com/hearth-run/hearth/services/worker/internal/zygote"
)

func TestAdhoc2(t *testing.T) {
	s := mustSite(t)
	if out, err := exec.Command("/root/.pyenv/versions/3.11.7/bin/python3", "/tmp/z1/instr.py", s.runner.Dir).CombinedOutput(); err != nil {
		t.Fatal(string(out))
	}
	for _, set := range sets {
		w := open(t, nil)
		z := w.grow(w.root, set.modules...)
		times, flts := map[string][]float64{}, map[string][]float64{}
		var order []string
		for range 60 {
			c, err := w.enter(z, zygote.Begin{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			v := c.run(t, "def call(): return HEARTH_MARKS")
			order = nil
			var lt, lf float64
			for _, m := range v.([]any) {
				a := m.([]any)
				n := a[0].(string)
				order = append(order, n)
				times[n] = append(times[n], (a[1].(float64)-lt)/1000)
				flts[n] = append(flts[n], a[2].(float64)-lf)
				lt, lf = a[1].(float64), a[2].(float64)
			}
			c.end()
		}
		for _, n := range order {
			sort.Float64s(times[n])
			sort.Float64s(flts[n])
			fmt.Printf("%-14s %-8s p10 %6.0f p50 %6.0f µs cpu  faults %.0f\n", set.name, n, times[n][6], times[n][30], flts[n][30])
		}
		w.close(z)
	}
}
