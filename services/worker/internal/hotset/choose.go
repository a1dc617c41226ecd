package hotset

import (
	"slices"
	"time"
)

// Choose learns from a call and says which live set it starts from: among those
// that may serve it, the one that saves it the most import time; "" is a cold start.
// No call is kept waiting for a set to grow.
func (m *Machine) Choose(now time.Time, imports []string, may func(id string) bool) (string, []Effect) {
	wanted := m.normal(imports)
	if m.sets[Root].measured { // before that, what is anyway there is not known
		m.called(now, wanted)
	}
	best := m.best(wanted, func(s *Set) bool { return may(s.ID) })
	if best == nil {
		return "", m.Plan(now)
	}
	best.rate.add(now)
	return best.ID, m.Plan(now)
}

// called counts a call of a set. Above MaxSets the least called one is forgotten.
func (m *Machine) called(now time.Time, wanted []string) {
	m.set(wanted).count.add(now)
	if len(m.sets) <= m.cfg.MaxSets {
		return
	}
	var least *Set
	for _, s := range m.sorted() {
		if s.Phase == Known && !s.Pinned && s.Pooled+s.filling == 0 && s.ID != Name(wanted) && (least == nil || s.Count(now) < least.Count(now)) {
			least = s
		}
	}
	if least != nil {
		delete(m.sets, least.ID)
	}
}

// normal is the set that a call's imports amount to.
func (m *Machine) normal(imports []string) []string {
	tops := slices.DeleteFunc(Tops(imports), func(module string) bool {
		_, unfit := m.unfit[module]
		return unfit || m.loaded[module]
	})
	return tops[:min(len(tops), maxModules)]
}

// best is the live set within wanted that saves the most time.
func (m *Machine) best(wanted []string, may func(*Set) bool) *Set {
	var best *Set
	for _, s := range m.sets {
		if s.Phase != Live || !within(m.Needs(s), wanted) || !may(s) {
			continue
		}
		if best == nil || better(s, best) {
			best = s
		}
	}
	return best
}

// Needs are the modules of a set that the root has not anyway.
func (m *Machine) Needs(s *Set) []string {
	if !slices.ContainsFunc(s.Modules, func(module string) bool { return m.loaded[module] }) {
		return s.Modules
	}
	return slices.DeleteFunc(slices.Clone(s.Modules), func(module string) bool { return m.loaded[module] })
}

func better(a, b *Set) bool {
	if a.Import != b.Import {
		return a.Import > b.Import
	}
	if len(a.Modules) != len(b.Modules) {
		return len(a.Modules) > len(b.Modules)
	}
	return a.ID < b.ID
}
