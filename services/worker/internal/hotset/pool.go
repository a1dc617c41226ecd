package hotset

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// pools sets how many containers each zygote should have ready, and says which to
// make and which to drop.
func (m *Machine) pools(now time.Time) []Effect {
	m.aim(now)
	filling := 0
	for _, s := range m.sets {
		filling += s.filling
	}
	var effects []Effect
	for _, s := range m.byRate(now) {
		for s.Phase == Live && s.Pooled+s.filling < s.Target && filling < m.cfg.MaxFilling && !now.Before(s.until) {
			s.filling++
			filling++
			effects = append(effects, Effect{Do: Fill, Set: s.ID})
		}
		effects = append(effects, surplus(s)...)
	}
	return effects
}

// surplus drops what stands ready beyond the target; one more than that may stay if
// there is memory for it, so that a rate that wavers moves nothing.
func surplus(s *Set) []Effect {
	var effects []Effect
	for ; s.Pooled > s.Target+s.spare; s.Pooled-- {
		effects = append(effects, Effect{Do: Drop, Set: s.ID})
	}
	return effects
}

// aim gives what memory the zygotes leave to the pools, first to those called most.
func (m *Machine) aim(now time.Time) {
	left := m.cfg.Budget - m.processes() - m.waiting
	for _, s := range m.byRate(now) {
		s.Target, s.spare = 0, 0
		if s.Phase != Live {
			continue
		}
		want := m.wish(now, s)
		s.Target = min(want, s.filling+int(max(left, 0)/s.PoolBytes))
		left -= int64(max(s.Target-s.filling, 0)) * s.PoolBytes
		if s.Target > 0 && left >= s.PoolBytes {
			s.spare = 1
			left -= s.PoolBytes
		}
	}
}

// wish is how many a set's calls would like to find.
func (m *Machine) wish(now time.Time, s *Set) int {
	least := 0
	if s.Pinned {
		least = m.cfg.MinPool
	}
	rate := s.Rate(now)
	if rate < 0.5/rateSpan.Seconds() {
		return min(least, m.cfg.MaxPool)
	}
	return min(max(least, 1+int(math.Ceil(rate*m.cfg.Cover.Seconds()))), m.cfg.MaxPool)
}

func (m *Machine) byRate(now time.Time) []*Set {
	out := m.sorted()
	slices.SortStableFunc(out, func(a, b *Set) int { return cmp.Compare(b.Rate(now), a.Rate(now)) })
	return out
}
