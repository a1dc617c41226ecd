package warmth

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestBest(t *testing.T) {
	x := New()
	if got := x.Best([]string{"numpy"}); got != "" {
		t.Errorf("nobody holds anything: %q", got)
	}
	x.Say("w1", []Zygote{{ID: Root}, {ID: "n", Modules: []string{"numpy"}, Nanos: 100}, {ID: "np", Modules: []string{"numpy", "pandas"}, Nanos: 500}})
	x.Say("w2", []Zygote{{ID: Root}, {ID: "n", Modules: []string{"numpy"}, Nanos: 100}})
	for _, tc := range []struct {
		imports []string
		want    string
	}{
		{nil, Root}, {[]string{"requests"}, Root}, {[]string{"pandas"}, Root},
		{[]string{"numpy"}, "n"}, {[]string{"numpy.linalg", "numpy"}, "n"}, {[]string{"numpy", "pandas.io", "requests"}, "np"},
	} {
		if got := x.Best(tc.imports); got != tc.want {
			t.Errorf("%v: %q, want %q", tc.imports, got, tc.want)
		}
	}
	x.Say("w1", nil)
	if x.Known("np") || !x.Known("n") || x.Best([]string{"numpy", "pandas"}) != "n" {
		t.Error("what a worker held that is gone is still there")
	}
}

// The table's answer is that of looking at everything.
func TestAgainstOracle(t *testing.T) {
	module := rapid.SampledFrom([]string{"a", "b", "c", "d"})
	rapid.Check(t, func(t *rapid.T) {
		x, truth := New(), map[string][]Zygote{}
		t.Repeat(map[string]func(*rapid.T){
			"say": func(t *rapid.T) {
				worker := rapid.SampledFrom([]string{"w1", "w2", "w3"}).Draw(t, "worker")
				var held []Zygote
				for range rapid.IntRange(0, 3).Draw(t, "n") {
					modules := rapid.SliceOfNDistinct(module, 0, 3, rapid.ID).Draw(t, "modules")
					slices.Sort(modules)
					z := Zygote{ID: fmt.Sprint("z-", modules), Modules: modules, Nanos: int64(len(modules))}
					if len(modules) == 0 {
						z.ID = Root
					}
					held = append(held, z)
				}
				x.Say(worker, held)
				truth[worker] = held
			},
			"ask": func(t *rapid.T) {
				imports := rapid.SliceOf(module).Draw(t, "imports")
				want := ""
				most := int64(-1)
				for _, held := range truth {
					for _, z := range held {
						within := !slices.ContainsFunc(z.Modules, func(m string) bool { return !slices.Contains(imports, m) })
						if within && (z.Nanos > most || z.Nanos == most && z.ID < want) {
							want, most = z.ID, z.Nanos
						}
					}
				}
				if got := x.Best(imports); got != want {
					t.Fatalf("%v: %q, want %q of %v", imports, got, want, truth)
				}
			},
		})
	})
}
