package hotset

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// world is a worker that does what the machine says, in any order and with any
// outcome, and checks what must hold whatever comes.
type world struct {
	m     *Machine
	now   time.Time
	live  map[string]int64 // zygotes by id, with the memory that each added
	grow  map[string]Effect
	close map[string]bool
	fill  map[string]int
	pool  map[string]int
	unfit map[string]bool // sets
}

func TestWhatMustHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := Default(int64(rapid.IntRange(40, 200).Draw(t, "budget")) << 20)
		cfg.Guess, cfg.MinPool = 10<<20, 1
		w := &world{
			m: New(cfg, [][]string{{"p"}}), now: time.Unix(0, 0),
			live: map[string]int64{}, grow: map[string]Effect{}, close: map[string]bool{}, fill: map[string]int{}, pool: map[string]int{}, unfit: map[string]bool{},
		}
		w.do(t, w.m.Plan(w.now))
		t.Repeat(map[string]func(*rapid.T){
			"call": w.call, "tick": w.tick, "grown": w.grown, "not grown": w.notGrown, "closed": w.closed,
			"died": w.died, "filled": w.filled, "taken": w.taken, "warm": w.warm, "": w.check,
		})
	})
}

func (w *world) do(t *rapid.T, effects []Effect) {
	for _, e := range effects {
		switch e.Do {
		case Grow:
			if len(w.grow) > 0 {
				t.Fatalf("%v grows beside %v", e, w.grow)
			}
			if e.Parent == "" != (e.Set == Root) || e.Parent != "" && w.live[e.Parent] == 0 {
				t.Fatalf("%v grows from what is not live", e)
			}
			if w.unfit[e.Set] {
				t.Fatalf("%v was found unfit", e)
			}
			w.grow[e.Set] = e
		case Close:
			if w.live[e.Set] == 0 || w.m.Set(e.Set).Pinned {
				t.Fatalf("%v: live with %d, pinned %v", e, w.live[e.Set], w.m.Set(e.Set).Pinned)
			}
			delete(w.live, e.Set)
			w.close[e.Set] = true
		case Fill:
			w.fill[e.Set]++
		case Drop:
			if w.pool[e.Set]--; w.pool[e.Set] < 0 {
				t.Fatalf("%v, where none is", e)
			}
		}
	}
}

var modules = []string{"a", "b", "c", "d", "e", "p"}

func some(t *rapid.T) []string {
	return rapid.SliceOfNDistinct(rapid.SampledFrom(modules), 0, 4, rapid.ID).Draw(t, "modules")
}

func pick[V any](t *rapid.T, from map[string]V) string {
	var ids []string
	for id := range from {
		ids = append(ids, id)
	}
	if len(ids) == 0 {
		t.Skip("none")
	}
	slices.Sort(ids)
	return rapid.SampledFrom(ids).Draw(t, "set")
}

func (w *world) call(t *rapid.T) {
	imports := some(t)
	without := ""
	if rapid.Bool().Draw(t, "conflict") && len(w.live) > 0 {
		without = pick(t, w.live)
	}
	from, effects := w.m.Choose(w.now, imports, func(id string) bool { return id != without })
	w.oracle(t, imports, from, without)
	w.do(t, effects)
}

// oracle: a call starts from a live set within its imports, and no other saves more.
func (w *world) oracle(t *rapid.T, imports []string, from, without string) {
	wanted := w.m.normal(imports)
	if from != "" && (w.live[from] == 0 || from == without || !within(w.m.Needs(w.m.Set(from)), wanted)) {
		t.Fatalf("%v starts from %q", imports, from)
	}
	for id := range w.live {
		s := w.m.Set(id)
		if id != without && within(w.m.Needs(s), wanted) && (from == "" || s.Import > w.m.Set(from).Import) {
			t.Fatalf("%v starts from %q, and %v saves more", imports, from, s.Modules)
		}
	}
}

func (w *world) tick(t *rapid.T) {
	w.now = w.now.Add(time.Duration(rapid.IntRange(1, 100_000).Draw(t, "ms")) * time.Millisecond)
	w.do(t, w.m.Plan(w.now))
}

func (w *world) step(t *rapid.T, e Event) {
	effects, err := w.m.Step(w.now, e)
	if err != nil {
		t.Fatal(err)
	}
	w.do(t, effects)
}

func (w *world) grown(t *rapid.T) {
	id := pick(t, w.grow)
	delete(w.grow, id)
	w.live[id] = int64(rapid.IntRange(1, 40).Draw(t, "MiB")) << 20
	w.step(t, Event{Kind: Grown, Set: id, Facts: Facts{Import: time.Duration(rapid.IntRange(1, 500).Draw(t, "ms")) * time.Millisecond, Bytes: w.live[id], Loaded: []string{"e"}}})
}

func (w *world) notGrown(t *rapid.T) {
	id := pick(t, w.grow)
	e := Event{Kind: Failed, Set: id, Why: "no"}
	if modules := w.grow[id].Modules; len(modules) > 0 && rapid.Bool().Draw(t, "unfit") {
		e.Kind, e.Module = Refused, rapid.SampledFrom(modules).Draw(t, "module")
		w.unfit[id] = true
	}
	delete(w.grow, id)
	w.step(t, e)
}

func (w *world) closed(t *rapid.T) {
	id := pick(t, w.close)
	delete(w.close, id)
	w.step(t, Event{Kind: Closed, Set: id})
}

func (w *world) died(t *rapid.T) {
	id := pick(t, w.live)
	delete(w.live, id)
	w.step(t, Event{Kind: Died, Set: id, Why: "killed"})
}

func (w *world) filled(t *rapid.T) {
	id := pick(t, w.fill)
	if w.fill[id]--; w.fill[id] == 0 {
		delete(w.fill, id)
	}
	if rapid.Bool().Draw(t, "fails") {
		w.do(t, w.m.FillFailed(w.now, id))
		return
	}
	w.pool[id]++
	w.do(t, w.m.Filled(w.now, id, 2<<20))
}

func (w *world) taken(t *rapid.T) {
	id := pick(t, w.pool)
	if w.pool[id] == 0 {
		t.Skip("empty")
	}
	w.pool[id]--
	w.do(t, w.m.Taken(w.now, id))
}

func (w *world) warm(t *rapid.T) {
	modules := Tops(some(t))
	if len(modules) == 0 {
		t.Skip("the root")
	}
	for id := range w.unfit {
		if slices.ContainsFunc(w.m.Set(id).Modules, func(m string) bool { return slices.Contains(modules, m) }) {
			delete(w.unfit, id) // what of it was unfit may be fit now
		}
	}
	_, effects := w.m.Warm(w.now, modules)
	w.do(t, effects)
}

func (w *world) check(t *rapid.T) {
	var held, pinned int64
	for id, bytes := range w.live {
		held += bytes
		if w.m.Set(id).Phase != Live {
			t.Fatalf("%s runs and is %s", id, w.m.Set(id).Phase)
		}
		if w.m.Set(id).Pinned || w.inner(id) {
			pinned += bytes
		}
	}
	// What stays is within the budget, unless it may not go.
	if w.m.zygotes() > w.m.cfg.Budget && len(w.m.leaves(w.now)) > 0 {
		t.Fatalf("%d MiB of %d, and leaves could go", w.m.zygotes()>>20, w.m.cfg.Budget>>20)
	}
	for _, s := range w.m.sets {
		if s.Pooled != w.pool[s.ID] || s.filling != w.fill[s.ID] {
			t.Fatalf("%s: %d pooled, %d filling; want %d, %d", s.ID, s.Pooled, s.filling, w.pool[s.ID], w.fill[s.ID])
		}
		if s.Target > w.m.cfg.MaxPool || s.Phase != Live && s.Pooled > 0 {
			t.Fatal(fmt.Sprintf("%+v", s))
		}
	}
}

func (w *world) inner(id string) bool {
	return slices.ContainsFunc(w.m.sorted(), func(s *Set) bool { return s.Parent == id && s.Phase == Live })
}
