// Package warmth owns which imports are done already on which workers: what the
// workers have said of their zygotes, and which one is the best for a call. It is a
// pure table: no clock, lock or I/O; the cost of a question depends on the call's
// imports and the zygotes that have one of them, not on the number of workers.
package warmth

import "strings"

// Zygote is one that a worker holds.
type Zygote struct {
	ID      string
	Modules []string // top-level, each once; none: it is a worker's root
	// Nanos is what importing them took there.
	Nanos int64
}

// Root is what every worker calls its zygote without imports.
const Root = "z-root"

// Table is what all workers hold. Not safe for concurrent use.
type Table struct {
	workers  map[string][]string // ids by worker
	sets     map[string]*set     // by id
	byModule map[string]map[string]*set
}

// set is one zygote id with how many workers hold it.
type set struct {
	Zygote
	holders int
}

// New returns an empty table.
func New() *Table {
	return &Table{workers: map[string][]string{}, sets: map[string]*set{}, byModule: map[string]map[string]*set{}}
}

// Say takes what a worker holds now, in place of what it said before.
func (t *Table) Say(worker string, zygotes []Zygote) {
	before := t.workers[worker]
	ids := make([]string, 0, len(zygotes))
	for _, z := range zygotes {
		t.hold(z)
		ids = append(ids, z.ID)
	}
	for _, id := range before {
		t.release(id)
	}
	if len(ids) == 0 {
		delete(t.workers, worker)
		return
	}
	t.workers[worker] = ids
}

func (t *Table) hold(z Zygote) {
	s := t.sets[z.ID]
	if s == nil {
		s = &set{Zygote: z}
		t.sets[z.ID] = s
		for _, module := range z.Modules {
			if t.byModule[module] == nil {
				t.byModule[module] = map[string]*set{}
			}
			t.byModule[module][z.ID] = s
		}
	}
	s.holders++
}

func (t *Table) release(id string) {
	s := t.sets[id]
	if s.holders--; s.holders > 0 {
		return
	}
	delete(t.sets, id)
	for _, module := range s.Modules {
		if delete(t.byModule[module], id); len(t.byModule[module]) == 0 {
			delete(t.byModule, module)
		}
	}
}

// Known says whether any worker holds a zygote of this id.
func (t *Table) Known(id string) bool { return t.sets[id] != nil }

// Best is the zygote within a call's imports that saves the most; one without any
// modules where none has one of them; "" if there is none.
func (t *Table) Best(imports []string) string {
	has := map[*set]int{}
	seen := map[string]bool{}
	for _, name := range imports {
		module, _, _ := strings.Cut(name, ".")
		if seen[module] {
			continue
		}
		seen[module] = true
		for _, s := range t.byModule[module] {
			has[s]++
		}
	}
	var best *set
	for s, n := range has {
		if n == len(s.Modules) && (best == nil || s.before(best)) {
			best = s
		}
	}
	switch {
	case best != nil:
		return best.ID
	case t.sets[Root] != nil:
		return Root
	}
	return ""
}

func (s *set) before(o *set) bool {
	if s.Nanos != o.Nanos {
		return s.Nanos > o.Nanos
	}
	if len(s.Modules) != len(o.Modules) {
		return len(s.Modules) > len(o.Modules)
	}
	return s.ID < o.ID
}
