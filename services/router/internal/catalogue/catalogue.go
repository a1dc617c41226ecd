package catalogue

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/hearth-run/hearth/services/router/internal/pep508"
)

// Catalogue is one flavor's. It is never changed once it was parsed.
type Catalogue struct {
	flavor      string
	alpha       float64
	items       map[string]item
	checkpoints []checkpoint
	base        pep508.Base
}

type item struct {
	LoadTime     float64  `json:"load_time"` // seconds
	SizeMB       float64  `json:"size_mb"`
	Dependencies []string `json:"dependencies"`
}

type checkpoint struct {
	ID     string   `json:"id"`
	Items  []string `json:"items"`
	SizeMB float64  `json:"size_mb"`
	// Canonical marks the checkpoint that stands for its set of items; the choice
	// does not depend on it.
	Canonical any `json:"canonical"`

	holds map[string]bool
}

type file struct {
	Version     int               `json:"version"`
	Flavor      string            `json:"flavor"`
	Alpha       float64           `json:"alpha"`
	Items       map[string]item   `json:"items"`
	Checkpoints []checkpoint      `json:"checkpoints"`
	Packages    map[string]string `json:"packages"`
}

// Parse reads a catalogue. Keys that it does not know are left to other readers
// of the file.
func Parse(data []byte) (*Catalogue, error) {
	var f file
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, fmt.Errorf("parse catalogue: %w", err)
	}
	switch {
	case f.Version != 1:
		return nil, fmt.Errorf("catalogue version %d: only version 1 is known", f.Version)
	case f.Flavor == "":
		return nil, fmt.Errorf("catalogue without a flavor: set \"flavor\" to what its workers report")
	case bad(f.Alpha):
		return nil, fmt.Errorf("catalogue %s: alpha is %v: want seconds per MB, 0 or more", f.Flavor, f.Alpha)
	}
	for name, item := range f.Items {
		if bad(item.LoadTime) {
			return nil, fmt.Errorf("catalogue %s: item %q: load_time is %v: want seconds, 0 or more", f.Flavor, name, item.LoadTime)
		}
	}
	base, err := pep508.ParseBase(f.Packages)
	if err != nil {
		return nil, fmt.Errorf("catalogue %s: %w", f.Flavor, err)
	}
	c := &Catalogue{flavor: f.Flavor, alpha: f.Alpha, items: f.Items, checkpoints: f.Checkpoints, base: base}
	return c, c.index()
}

func bad(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) || x < 0 }

func (c *Catalogue) index() error {
	seen := map[string]bool{}
	for i := range c.checkpoints {
		p := &c.checkpoints[i]
		switch {
		case p.ID == "":
			return fmt.Errorf("catalogue %s: checkpoint %d has no id", c.flavor, i)
		case seen[p.ID]:
			return fmt.Errorf("catalogue %s: two checkpoints are called %q", c.flavor, p.ID)
		case bad(p.SizeMB):
			return fmt.Errorf("catalogue %s: checkpoint %q: size_mb is %v: want 0 or more", c.flavor, p.ID, p.SizeMB)
		}
		seen[p.ID] = true
		p.holds = make(map[string]bool, len(p.Items))
		for _, name := range p.Items {
			p.holds[name] = true
		}
	}
	return nil
}

// Flavor is whose catalogue it is.
func (c *Catalogue) Flavor() string { return c.flavor }

// Base is what the flavor's image carries. A nil catalogue knows of nothing.
func (c *Catalogue) Base() pep508.Base {
	if c == nil {
		return nil
	}
	return c.base
}

// Has says whether there is a checkpoint of this id.
func (c *Catalogue) Has(id string) bool {
	return c != nil && slices.ContainsFunc(c.checkpoints, func(p checkpoint) bool { return p.ID == id })
}

// Cheapest is the checkpoint to start from among those that available lets
// through; "" is a cold start.
func (c *Catalogue) Cheapest(imports []string, available func(id string) bool) string {
	if c == nil || len(c.checkpoints) == 0 {
		return ""
	}
	needed := c.closure(imports)
	best, least := "", c.load(needed, nil)
	for i := range c.checkpoints {
		p := &c.checkpoints[i]
		if !available(p.ID) {
			continue
		}
		if cost := c.alpha*p.SizeMB + c.load(needed, p.holds); cost <= least {
			best, least = p.ID, cost
		}
	}
	return best
}

// Costs is what every start would cost, in seconds, by checkpoint; "" is a cold
// start.
func (c *Catalogue) Costs(imports []string) map[string]float64 {
	needed := c.closure(imports)
	costs := map[string]float64{"": c.load(needed, nil)}
	for i := range c.checkpoints {
		p := &c.checkpoints[i]
		costs[p.ID] = c.alpha*p.SizeMB + c.load(needed, p.holds)
	}
	return costs
}

// load sums in the order of names, so that equal sets cost the same to the bit.
func (c *Catalogue) load(needed []string, held map[string]bool) float64 {
	sum := 0.0
	for _, name := range needed {
		if !held[name] {
			sum += c.items[name].LoadTime
		}
	}
	return sum
}

// closure is the imports with all that they depend on, known names only, sorted.
func (c *Catalogue) closure(imports []string) []string {
	needed := map[string]bool{}
	for todo := slices.Clone(imports); len(todo) > 0; {
		name := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if item, known := c.items[name]; known && !needed[name] {
			needed[name] = true
			todo = append(todo, item.Dependencies...)
		}
	}
	return slices.Sorted(maps.Keys(needed))
}
