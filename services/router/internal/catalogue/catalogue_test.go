package catalogue_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/hearth-run/hearth/services/router/internal/catalogue"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const worked = `{"version": 1, "flavor": "cpu", "alpha": %g,
 "items": {"numpy": {"load_time": 0.2, "size_mb": 7}, "pandas": {"load_time": 0.5, "dependencies": ["numpy"]}, "torch": {"load_time": 3}},
 "checkpoints": [
  {"id": "n", "items": ["numpy"], "canonical": true, "size_mb": 7},
  {"id": "np", "items": ["numpy", "pandas"], "canonical": true, "size_mb": 80},
  {"id": "npt", "items": ["numpy", "pandas", "torch"], "canonical": false, "size_mb": 200}],
 "packages": {"numpy": "1.26.4"}}`

func all(string) bool { return true }

// The worked example of the specification.
func TestWorkedExample(t *testing.T) {
	for _, tc := range []struct {
		alpha float64
		want  map[string]float64
		wins  string
	}{
		{.006, map[string]float64{"": .70, "n": .542, "np": .48, "npt": 1.20}, "np"},
		{.02, map[string]float64{"": .70, "n": .64, "np": 1.6, "npt": 4.0}, "n"},
	} {
		c, err := catalogue.Parse(fmt.Appendf(nil, worked, tc.alpha))
		if err != nil {
			t.Fatal(err)
		}
		imports := []string{"pandas", "unheard_of", "os"}
		for id, cost := range c.Costs(imports) {
			if math.Abs(cost-tc.want[id]) > 1e-9 {
				t.Errorf("alpha %g: %q costs %g, want %g", tc.alpha, id, cost, tc.want[id])
			}
		}
		if got := c.Cheapest(imports, all); got != tc.wins {
			t.Errorf("alpha %g: %q wins, want %q", tc.alpha, got, tc.wins)
		}
	}
}

func TestChoice(t *testing.T) {
	c, err := catalogue.Parse(fmt.Appendf(nil, worked, .006))
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Cheapest([]string{"pandas"}, func(id string) bool { return id != "np" }); got != "n" {
		t.Errorf("a checkpoint that is not there was chosen over n: %q", got)
	}
	if got := c.Cheapest([]string{"pandas"}, func(string) bool { return false }); got != "" {
		t.Errorf("without any checkpoint: %q", got)
	}
	if got := c.Cheapest([]string{"os"}, all); got != "" {
		t.Errorf("nothing to import: %q", got)
	}
	var none *catalogue.Catalogue
	if none.Cheapest([]string{"pandas"}, all) != "" || none.Has("n") || none.Base() != nil {
		t.Error("a flavor without a catalogue has checkpoints")
	}
	// Equal costs: the later entry, and any entry before a cold start.
	tie, err := catalogue.Parse([]byte(`{"version":1,"flavor":"x","alpha":0.5,"items":{"a":{"load_time":1,"dependencies":["b"]},"b":{"load_time":0,"dependencies":["a"]}},
		"checkpoints":[{"id":"one","items":["a"],"size_mb":2},{"id":"two","items":["a","b"],"size_mb":2}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := tie.Cheapest([]string{"a"}, all); got != "two" {
		t.Errorf("of equal ones %q won", got)
	}
}

func TestRefused(t *testing.T) {
	for text, want := range map[string]string{
		`{`:                                     "parse catalogue",
		`{}`:                                    "version 0",
		`{"version":1}`:                         "flavor",
		`{"version":1,"flavor":"x","alpha":-1}`: "alpha",
		`{"version":1,"flavor":"x","items":{"a":{"load_time":-1}}}`:          "load_time",
		`{"version":1,"flavor":"x","checkpoints":[{"items":["a"]}]}`:         "no id",
		`{"version":1,"flavor":"x","checkpoints":[{"id":"a"},{"id":"a"}]}`:   "two checkpoints",
		`{"version":1,"flavor":"x","checkpoints":[{"id":"a","size_mb":-5}]}`: "size_mb",
		`{"version":1,"flavor":"x","packages":{"numpy":"latest"}}`:           "no version",
	} {
		if _, err := catalogue.Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// Files that change while everything runs are taken over; broken ones are not.
func TestReload(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		temporary := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(temporary, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(temporary, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	write("cpu.json", fmt.Sprintf(worked, .006))
	store, err := catalogue.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	reloads, done := make(chan error), make(chan error, 1)
	go func() { done <- store.Run(ctx, func(err error) { reloads <- err }) }()
	if err := <-reloads; err != nil || !store.Flavor("cpu").Has("np") || store.Flavor("gpu") != nil {
		t.Fatal(err)
	}
	write("cpu.json", fmt.Sprintf(strings.Replace(worked, `"np"`, `"added"`, 1), .006))
	if err := <-reloads; err != nil || !store.Flavor("cpu").Has("added") || !store.Has("added") || store.Has("np") {
		t.Errorf("the new checkpoint is not there: %v", err)
	}
	write("cpu.json", "{")
	if err := <-reloads; err == nil || !store.Flavor("cpu").Has("added") {
		t.Errorf("a broken file was taken: %v", err)
	}
	write("cpu.json", fmt.Sprintf(worked, .006))
	<-reloads
	write("again.json", fmt.Sprintf(worked, .006))
	if err := <-reloads; err == nil || !strings.Contains(err.Error(), "another catalogue") {
		t.Errorf("two catalogues of one flavor: %v", err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, err := catalogue.Open(filepath.Join(dir, "missing")); err == nil {
		t.Error("a missing folder was taken")
	}
}
