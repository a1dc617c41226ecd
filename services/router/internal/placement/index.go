package placement

import "math/bits"

// bucket names a tree: the power of two of the free memory and, on gpu workers,
// of the free GPU memory.
type bucket struct{ mem, gpu uint8 }

// index is all workers that can take a call, in their buckets.
type index struct {
	cpu buckets
	gpu [65]buckets // by the bucket of the free memory
	any [2]uint64   // which of gpu hold anybody, 65 bits
}

// buckets are trees by one power of two; used says which ones hold anybody.
type buckets struct {
	trees [65]*tree
	size  [65]int32
	used  [2]uint64
}

// class is the bucket of a free amount; what is negative is nothing.
func class(free int64) uint8 { return uint8(bits.Len64(uint64(max(free, 0)))) }

func (b *buckets) add(class uint8, e entry, r room) int32 {
	if b.trees[class] == nil {
		b.trees[class] = &tree{}
	}
	b.used[class>>6] |= 1 << (class & 63)
	b.size[class]++
	return b.trees[class].add(e, r)
}

// remove keeps an empty tree: its next worker comes soon.
func (b *buckets) remove(class uint8, leaf int32) {
	b.trees[class].remove(leaf)
	if b.size[class]--; b.size[class] == 0 {
		b.used[class>>6] &^= 1 << (class & 63)
	}
}

func (b *buckets) empty() bool { return b.used == [2]uint64{} }

// first asks every tree from class up.
func (b *buckets) first(class uint8, s *search) {
	eachFrom(b.used, class, func(c uint8) { b.trees[c].first(s) })
}

func eachFrom(set [2]uint64, from uint8, f func(uint8)) {
	for word := from >> 6; word < 2; word++ {
		left := set[word]
		if word == from>>6 {
			left &= ^uint64(0) << (from & 63)
		}
		for ; left != 0; left &= left - 1 {
			f(word<<6 + uint8(bits.TrailingZeros64(left)))
		}
	}
}

func (x *index) add(gpu bool, b bucket, e entry, r room) int32 {
	if !gpu {
		return x.cpu.add(b.mem, e, r)
	}
	x.any[b.mem>>6] |= 1 << (b.mem & 63)
	return x.gpu[b.mem].add(b.gpu, e, r)
}

func (x *index) remove(gpu bool, b bucket, leaf int32) {
	if !gpu {
		x.cpu.remove(b.mem, leaf)
		return
	}
	x.gpu[b.mem].remove(b.gpu, leaf)
	if x.gpu[b.mem].empty() {
		x.any[b.mem>>6] &^= 1 << (b.mem & 63)
	}
}

func (x *index) set(gpu bool, b bucket, leaf int32, e entry, r room) {
	if !gpu {
		x.cpu.trees[b.mem].set(leaf, e, r)
		return
	}
	x.gpu[b.mem].trees[b.gpu].set(leaf, e, r)
}

// choose is the first worker for the demand: CPU demand off gpu workers first.
func (x *index) choose(gpu bool, s *search) entry {
	s.best = empty
	if !gpu {
		x.cpu.first(class(s.demand.mem), s)
	}
	if s.best.slot == none {
		eachFrom(x.any, class(s.demand.mem), func(c uint8) { x.gpu[c].first(class(s.demand.gpu), s) })
	}
	return s.best
}
