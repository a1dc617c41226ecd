package hotset

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Config bounds the machine.
type Config struct {
	// Budget is the memory of all zygotes and of the containers made ahead, in bytes.
	Budget int64
	// MaxPool is how many containers may stand ready before one zygote, MinPool how
	// many do before the root and pinned ones.
	MaxPool, MinPool int
	// MaxFilling is how many containers are made ahead at one time.
	MaxFilling int
	// Cover is the time whose calls a pool shall serve.
	Cover time.Duration
	// HalfLife is when a call counts half.
	HalfLife time.Duration
	// Worth is the count from which a set may grow.
	Worth float64
	// Pause is the rest after a death; it doubles up to MaxPause with each further one.
	Pause, MaxPause time.Duration
	// MaxSets is how many sets are remembered.
	MaxSets int
	// Guess is what an unmeasured set is taken to need, in bytes, and GuessImport
	// what each of its modules is taken to save.
	Guess       int64
	GuessImport time.Duration
}

// Default is what a worker uses; Budget is left to it.
func Default(budget int64) Config {
	return Config{
		Budget: budget, MaxPool: 16, MinPool: 1, MaxFilling: 2, Cover: 250 * time.Millisecond, HalfLife: 10 * time.Minute,
		Worth: 1.5, Pause: 500 * time.Millisecond, MaxPause: time.Minute, MaxSets: 512,
		Guess: min(64<<20, budget/4), GuessImport: 100 * time.Millisecond,
	}
}

// margin is by how much a set must be worth more per byte than what it displaces.
const margin = 1.5

// rateSpan is over which time the rate of calls is taken.
const rateSpan = 10 * time.Second

// poolGuess is what a container made ahead is taken to need before one is measured.
const poolGuess = 4 << 20

// leastPooled is what a container made ahead counts with at least: it is measured
// before it has copied every page that it will while it stands.
const leastPooled = 3 << 20

// settled is how long a zygote must live for its next death to be a first one.
const settled = time.Minute

// Do is what has to be done.
type Do string

// The effects.
const (
	Grow  Do = "grow"  // a zygote of Modules from Parent ("": start the root)
	Close Do = "close" // end the zygote
	Fill  Do = "fill"  // make one container ahead
	Drop  Do = "drop"  // destroy one that stands ready
	Tell  Do = "tell"  // the live sets have changed
)

// Effect is one thing to do, in this order.
type Effect struct {
	Do      Do
	Set     string
	Parent  string
	Modules []string
}

// Event is what happened to a set.
type Event struct {
	Kind  Kind
	Set   string
	Facts Facts
	// Why, and for Refused the module at fault if it is known.
	Why, Module string
}

// Machine is the state. Not safe for concurrent use.
type Machine struct {
	cfg    Config
	sets   map[string]*Set
	loaded map[string]bool   // what the root has anyway
	unfit  map[string]string // modules, and why
	seq    int
	// waiting is the memory of what is to grow once there is room for it.
	waiting int64
}

// New returns a machine that wants its root, and the pinned sets, at the first step.
func New(cfg Config, pins [][]string) *Machine {
	m := &Machine{cfg: cfg, sets: map[string]*Set{}, loaded: map[string]bool{}, unfit: map[string]string{}}
	m.set(nil).Pinned = true
	for _, modules := range pins {
		m.set(Tops(modules)).Pinned = true
	}
	return m
}

// set returns the set of sorted modules, which it begins to know.
func (m *Machine) set(modules []string) *Set {
	id := Name(modules)
	s := m.sets[id]
	if s == nil {
		s = &Set{ID: id, Modules: slices.Clone(modules), Phase: Known, PoolBytes: poolGuess, count: tally{span: m.cfg.HalfLife * 100 / 69}, rate: tally{span: rateSpan}}
		m.sets[id] = s
	}
	return s
}

// Step takes an event of a set. Errors: *RefusedError, and of a set that is not known.
func (m *Machine) Step(now time.Time, e Event) ([]Effect, error) {
	s := m.sets[e.Set]
	if s == nil {
		return nil, fmt.Errorf("set %s: %s refused: it is not known", e.Set, e.Kind)
	}
	was := s.Phase
	to, ok := step(s.Phase, e.Kind)
	if !ok {
		return nil, &RefusedError{e.Set, s.Phase, e.Kind}
	}
	s.Phase, s.Why = to, e.Why
	m.learn(now, s, e)
	var effects []Effect
	if (was == Live) != (s.Phase == Live) {
		effects = append(effects, Effect{Do: Tell})
	}
	return append(effects, m.Plan(now)...), nil
}

// learn keeps what an event tells beside the phase.
func (m *Machine) learn(now time.Time, s *Set, e Event) {
	switch e.Kind {
	case Grown:
		s.own, s.Bytes, s.measured, s.warmed, s.grown = e.Facts.Import, e.Facts.Bytes, true, false, now
		s.Import = s.own
		if parent := m.sets[s.Parent]; parent != nil {
			s.Import += parent.Import
		}
		s.rate.add(now) // as good as a call: the next one finds a container ready
		if s.root() {
			for _, module := range e.Facts.Loaded {
				m.loaded[module] = true
			}
		}
	case Refused:
		s.warmed = false
		if e.Module != "" {
			m.unfit[e.Module] = e.Why
			s.Why = e.Module + ": " + e.Why
		}
	case Failed, Died:
		s.warmed = s.warmed && e.Kind == Died
		if e.Kind == Died && now.Sub(s.grown) > settled {
			s.pause = 0
		}
		s.pause = min(max(2*s.pause, m.cfg.Pause), m.cfg.MaxPause)
		s.until = now.Add(s.pause)
		m.bequeath(s)
	case Closed:
		m.bequeath(s)
	case Warmed:
		s.warmed, s.pause, s.until = true, 0, time.Time{}
		for _, module := range s.Modules {
			delete(m.unfit, module)
		}
	}
}

// bequeath gives the memory of a process that is gone to the oldest that shares it.
func (m *Machine) bequeath(s *Set) {
	heir := m.eldest(s)
	if heir != nil {
		heir.Bytes += s.Bytes
	}
	for _, child := range m.sets {
		if child.Parent == s.ID && child != heir && heir != nil {
			child.Parent = heir.ID
		} else if child.Parent == s.ID {
			child.Parent = ""
		}
	}
}

func (m *Machine) eldest(s *Set) *Set {
	var eldest *Set
	for _, child := range m.sets {
		if child.Parent == s.ID && child.Phase == Live && (eldest == nil || child.seq < eldest.seq) {
			eldest = child
		}
	}
	return eldest
}

// Filled takes that a container that was made ahead stands ready, with its memory.
func (m *Machine) Filled(now time.Time, id string, bytes int64) []Effect {
	if s := m.sets[id]; s != nil {
		s.filling--
		s.Pooled++
		s.PoolBytes = max(bytes, leastPooled)
	}
	return m.Plan(now)
}

// FillFailed takes that none could be made. Its zygote is let be until the next call.
func (m *Machine) FillFailed(now time.Time, id string) []Effect {
	if s := m.sets[id]; s != nil {
		s.filling--
		s.until = now.Add(m.cfg.Pause)
	}
	return m.Plan(now)
}

// Taken takes that a container made ahead was given to a call or has died. What is
// dropped is not told.
func (m *Machine) Taken(now time.Time, id string) []Effect {
	if s := m.sets[id]; s != nil {
		s.Pooled--
	}
	return m.Plan(now)
}

// ErrNotPinned: nothing of these modules is pinned.
var ErrNotPinned = errors.New("not pinned")

// Pin keeps a set from now on; Unpin ends that; Warm grows it once, now.
func (m *Machine) Pin(now time.Time, modules []string) (*Set, []Effect) {
	s := m.set(modules)
	s.Pinned = true
	effects, _ := m.Step(now, Event{Kind: Warmed, Set: s.ID})
	return s, effects
}

// Unpin errors: ErrNotPinned.
func (m *Machine) Unpin(now time.Time, modules []string) (*Set, []Effect, error) {
	s := m.sets[Name(modules)]
	if s == nil || !s.Pinned || s.root() {
		return nil, nil, fmt.Errorf("%w: %s", ErrNotPinned, strings.Join(modules, ","))
	}
	s.Pinned = false
	return s, m.Plan(now), nil
}

// Warm forgets what was found unfit of the set and grows it.
func (m *Machine) Warm(now time.Time, modules []string) (*Set, []Effect) {
	s := m.set(modules)
	effects, _ := m.Step(now, Event{Kind: Warmed, Set: s.ID})
	return s, effects
}

// Sets returns every set that is more than known, the root first, then by modules.
func (m *Machine) Sets() []*Set {
	var out []*Set
	for _, s := range m.sets {
		if s.Phase != Known || s.Pinned {
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(a, b *Set) int { return slices.Compare(a.Modules, b.Modules) })
	return out
}

// Set returns one set, nil if it is not known.
func (m *Machine) Set(id string) *Set { return m.sets[id] }

// Used is the memory of all zygotes, of what is growing by its guess, and of the
// containers made ahead.
func (m *Machine) Used() int64 {
	sum := m.processes()
	for _, s := range m.sets {
		sum += int64(s.Pooled) * s.PoolBytes
	}
	return sum
}

// footprint is what a set's process takes, or will.
func (m *Machine) footprint(s *Set) int64 {
	switch s.Phase {
	case Live, Closing:
		return s.Bytes
	case Growing:
		return m.need(s)
	}
	return 0
}

func (m *Machine) need(s *Set) int64 {
	if s.measured {
		return s.Bytes
	}
	return m.cfg.Guess
}

// sorted are the sets by id: what depends on an order depends on this one.
func (m *Machine) sorted() []*Set {
	ids := slices.Sorted(maps.Keys(m.sets))
	out := make([]*Set, len(ids))
	for i, id := range ids {
		out[i] = m.sets[id]
	}
	return out
}
