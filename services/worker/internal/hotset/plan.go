package hotset

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Plan says what is to be done now; it is asked after every event, and each second.
func (m *Machine) Plan(now time.Time) []Effect {
	for _, s := range m.sorted() {
		if s.Phase == Resting && !now.Before(s.until) {
			s.Phase, _ = step(s.Phase, Rested)
		}
	}
	m.waiting = 0
	effects := m.shrink(now)
	effects = append(effects, m.expand(now)...)
	return append(effects, m.pools(now)...)
}

// shrink evicts the leaves that are worth the least while zygotes alone are over
// the budget.
func (m *Machine) shrink(now time.Time) []Effect {
	var effects []Effect
	for m.zygotes() > m.cfg.Budget {
		leaves := m.leaves(now)
		if len(leaves) == 0 {
			break
		}
		effects = append(effects, m.evict(leaves[0])...)
	}
	return effects
}

func (m *Machine) evict(s *Set) []Effect {
	s.Phase, _ = step(s.Phase, Evicted)
	return []Effect{{Do: Tell}, {Do: Close, Set: s.ID}}
}

// zygotes is the memory of the processes that stay: what closes is as good as gone.
func (m *Machine) zygotes() int64 {
	var sum int64
	for _, s := range m.sets {
		if s.Phase != Closing {
			sum += m.footprint(s)
		}
	}
	return sum
}

// processes is the memory that cannot be had back at once: of all zygotes, those that
// close too, and of the containers that are being made.
func (m *Machine) processes() int64 {
	var sum int64
	for _, s := range m.sets {
		sum += m.footprint(s) + int64(s.filling)*s.PoolBytes
	}
	return sum
}

// leaves are the live sets that may go, worth the least per byte first.
func (m *Machine) leaves(now time.Time) []*Set {
	inner := map[string]bool{}
	for _, s := range m.sets {
		if s.Phase == Live || s.Phase == Growing {
			inner[s.Parent] = true
		}
	}
	var out []*Set
	for _, s := range m.sets {
		if s.Phase == Live && !s.Pinned && !inner[s.ID] {
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(a, b *Set) int {
		return cmp.Or(cmp.Compare(m.density(now, a), m.density(now, b)), cmp.Compare(a.ID, b.ID))
	})
	return out
}

// density is what a set is worth per byte: seconds that its calls save.
func (m *Machine) density(now time.Time, s *Set) float64 {
	if s.Pinned || s.warmed {
		return math.Inf(1)
	}
	saves := m.cfg.GuessImport * time.Duration(len(s.Modules))
	if s.measured {
		saves = s.Import
		if other := m.best(s.Modules, func(o *Set) bool { return o != s }); other != nil {
			saves = max(s.Import-other.Import, time.Millisecond)
		}
	}
	return s.Count(now) * saves.Seconds() / float64(max(m.need(s), 1<<20))
}

// expand grows what is worth it, one at a time, the most worth first.
func (m *Machine) expand(now time.Time) []Effect {
	var wanting []*Set
	for _, s := range m.sets {
		if s.Phase == Growing {
			return nil
		}
		if s.Phase == Known && (s.Pinned || s.warmed || s.Count(now) >= m.cfg.Worth) {
			wanting = append(wanting, s)
		}
	}
	slices.SortFunc(wanting, func(a, b *Set) int {
		return cmp.Or(cmp.Compare(m.density(now, b), m.density(now, a)), cmp.Compare(len(a.Modules), len(b.Modules)), cmp.Compare(a.ID, b.ID))
	})
	for _, s := range wanting {
		if effects, ok := m.grow(now, s); ok {
			return effects
		}
	}
	return nil
}

// grow grows a set, or what it shares with others first, or makes room for that: what
// is closed gives its memory back only when it is gone. False: it is not worth it.
func (m *Machine) grow(now time.Time, s *Set) ([]Effect, bool) {
	if !s.root() && m.sets[Root].Phase != Live {
		return nil, false
	}
	if m.spoiled(s) {
		return nil, false
	}
	parent := m.parent(s)
	if stem := m.stem(now, s, parent); stem != nil {
		s = stem
		parent = m.parent(s)
	}
	effects, ok := m.room(now, s)
	if ok && !s.root() && m.processes()+m.need(s) > m.cfg.Budget {
		m.waiting = m.need(s)
	}
	if !ok || m.waiting > 0 {
		return effects, ok
	}
	s.Phase, _ = step(s.Phase, Wanted)
	m.seq++
	s.seq, s.Parent, s.Why = m.seq, "", ""
	if parent != nil {
		s.Parent = parent.ID
	}
	effects = []Effect{{Do: Grow, Set: s.ID, Parent: s.Parent, Modules: s.Modules}}
	return append(effects, m.shrink(now)...), true // the root grows whatever there is
}

// spoiled says that a module of the set was found unfit since: its calls amount to
// another set now.
func (m *Machine) spoiled(s *Set) bool {
	for _, module := range s.Modules {
		if why, unfit := m.unfit[module]; unfit {
			s.Phase, _ = step(s.Phase, Refused)
			s.Why = module + ": " + why
			return true
		}
	}
	return false
}

// parent is the live set within s that holds the most memory, its own parents'
// included; nil for the root.
func (m *Machine) parent(s *Set) *Set {
	if s.root() {
		return nil
	}
	var best *Set
	for _, p := range m.sorted() {
		if p == s || p.Phase != Live || !within(m.Needs(p), s.Modules) {
			continue
		}
		if best == nil || cmp.Or(cmp.Compare(m.held(p), m.held(best)), cmp.Compare(len(p.Modules), len(best.Modules))) > 0 {
			best = p
		}
	}
	return best
}

// held is the memory of a set and of all that it was grown from.
func (m *Machine) held(s *Set) int64 {
	var sum int64
	for n := 0; s != nil && n < len(m.sets); n++ {
		sum += s.Bytes
		s = m.sets[s.Parent]
	}
	return sum
}

// stem is the biggest set that s shares with another that is called, if it is more
// than the parent has and was not found wanting before; nil if there is none.
func (m *Machine) stem(now time.Time, s, parent *Set) *Set {
	var best []string
	for _, other := range m.sorted() {
		if other == s || other.Phase == Unfit || other.Count(now) < m.cfg.Worth/2 && !other.Pinned {
			continue
		}
		shared := common(s.Modules, other.Modules)
		if len(shared) < len(s.Modules) && len(shared) > max(len(best), len(parent.modules())) {
			best = shared
		}
	}
	if best == nil {
		return nil
	}
	if known := m.sets[Name(best)]; known != nil && known.Phase != Known {
		return nil
	}
	return m.set(best)
}

func (s *Set) modules() []string {
	if s == nil {
		return nil
	}
	return s.Modules
}

// room says what must be closed so that a set fits; false: it is not worth that.
func (m *Machine) room(now time.Time, s *Set) ([]Effect, bool) {
	if s.root() {
		return nil, true
	}
	over := m.zygotes() + m.need(s) - m.cfg.Budget
	if over <= 0 {
		return nil, true
	}
	var victims []*Set
	worth := m.density(now, s)
	parent := m.parent(s)
	for _, leaf := range m.leaves(now) {
		if over <= 0 {
			break
		}
		if leaf != parent && m.density(now, leaf)*margin < worth {
			victims = append(victims, leaf)
			over -= leaf.Bytes
		}
	}
	if over > 0 {
		return nil, false
	}
	var effects []Effect
	for _, victim := range victims {
		effects = append(effects, m.evict(victim)...)
	}
	return effects, true
}
