package placement

import (
	"math"
	"math/bits"
)

// fanout is how many children a node has: few, since they share two cache lines, and
// the levels that are many stay in the cache.
const fanout = 4

// entry is a worker's standing in the order of choice. Everything that decides is
// in it, so that a comparison touches no worker. Pressures are never negative, so
// that their bits order as they do.
type entry struct {
	mem      uint64 // bits of (used + promised) / total
	cpu      uint64 // bits of the pressure
	label    uint64 // in the order of worker ids
	inflight uint32
	slot     int32 // of the worker; none for an empty place
}

const none = -1

// empty comes after every worker.
var empty = entry{mem: math.MaxUint64, slot: none}

// before says whether e comes before f: 1, or 0. It subtracts one standing from the
// other as a number of four words, and its answer is there to be counted with: a
// branch on what differs would be guessed wrong half of the time.
func (e *entry) before(f *entry) uint64 {
	_, less := bits.Sub64(e.label, f.label, 0)
	_, less = bits.Sub64(uint64(e.inflight), uint64(f.inflight), less)
	_, less = bits.Sub64(e.cpu, f.cpu, less)
	_, less = bits.Sub64(e.mem, f.mem, less)
	return less
}

// room is what a worker can still take, or a bound of what any below a node can.
type room struct{ mem, gpu int64 }

func (r room) holds(d room) bool { return r.mem >= d.mem && r.gpu >= d.gpu }

// tree is a tournament: its leaves are workers in no order, each node above is
// the first of its children in the order of choice. A change costs one path to
// the root, and stops where it no longer matters.
//
// A node's room is never less than that of any leaf below. Placing a call leaves
// it too large; a search that finds nothing below a node lowers it to what is true.
type tree struct {
	nodes [][]entry // nodes[0] are the leaves
	rooms [][]room
	free  []int32 // empty leaves
}

// add puts a worker into an empty leaf and returns the leaf.
func (t *tree) add(e entry, r room) int32 {
	if len(t.free) == 0 {
		t.grow()
	}
	leaf := t.free[len(t.free)-1]
	t.free = t.free[:len(t.free)-1]
	t.set(leaf, e, r)
	return leaf
}

func (t *tree) remove(leaf int32) {
	t.set(leaf, empty, room{-1, -1})
	t.free = append(t.free, leaf)
}

// grow makes room for fanout times as many, and decides the tournament anew.
func (t *tree) grow() {
	old := 0
	if len(t.nodes) > 0 {
		old = len(t.nodes[0])
	}
	size := max(old, 1) * fanout
	leaves, rooms := make([]entry, size), make([]room, size)
	if old > 0 {
		copy(leaves, t.nodes[0])
		copy(rooms, t.rooms[0])
	}
	for i := size - 1; i >= old; i-- {
		leaves[i], rooms[i] = empty, room{-1, -1}
		t.free = append(t.free, int32(i))
	}
	t.nodes, t.rooms = [][]entry{leaves}, [][]room{rooms}
	for n := size / fanout; ; n /= fanout {
		level := len(t.nodes)
		t.nodes = append(t.nodes, make([]entry, n))
		t.rooms = append(t.rooms, make([]room, n))
		for i := range n {
			t.nodes[level][i], t.rooms[level][i] = *winner(t.nodes[level-1], i*fanout), t.most(level, i)
		}
		if n == 1 {
			return
		}
	}
}

// winner is the first of i and its siblings. It counts its way to it: no branch.
func winner(level []entry, i int) *entry {
	group := (*[fanout]entry)(level[i&^3:])
	a, b, c, d := i&3, i&3^1, i&3^2, i&3^3
	c ^= (c ^ d) & -int(group[d&3].before(&group[c&3]))
	b ^= (b ^ c) & -int(group[c&3].before(&group[b&3]))
	a ^= (a ^ b) & -int(group[b&3].before(&group[a&3]))
	return &group[a&3]
}

// most is the most room of a node's children.
func (t *tree) most(level, i int) room {
	children := t.rooms[level-1][i*fanout : i*fanout+fanout]
	most := children[0]
	for c := 1; c < fanout; c++ {
		most.mem, most.gpu = max(most.mem, children[c].mem), max(most.gpu, children[c].gpu)
	}
	return most
}

// set changes a leaf and what follows from it above, until a node stays as it was.
func (t *tree) set(leaf int32, e entry, r room) {
	t.setRoom(int(leaf), r)
	old := &t.nodes[0][leaf]
	worse := old.before(&e) == 1
	moved := max(old.slot, e.slot) // none, where nobody came or went
	*old = e
	if worse {
		t.yield(int(leaf), moved)
	} else {
		t.rise(int(leaf), &e, moved)
	}
}

// rise carries a leaf that has come forward up to where somebody is before it.
func (t *tree) rise(i int, e *entry, moved int32) {
	for level := 1; level < len(t.nodes); level++ {
		i /= fanout
		node := &t.nodes[level][i]
		if node.slot != moved && e.before(node) == 0 {
			return
		}
		*node = *e
	}
}

// yield decides anew what a leaf that has fallen back had won.
func (t *tree) yield(i int, moved int32) {
	for level := 1; level < len(t.nodes); level++ {
		group := i
		i /= fanout
		node := &t.nodes[level][i]
		if node.slot != moved {
			return
		}
		*node = *winner(t.nodes[level-1], group)
	}
}

func (t *tree) setRoom(i int, r room) {
	t.rooms[0][i] = r
	for level := 1; level < len(t.rooms); level++ {
		i /= fanout
		node := &t.rooms[level][i]
		if node.holds(r) {
			return
		}
		node.mem, node.gpu = max(node.mem, r.mem), max(node.gpu, r.gpu)
	}
}

// search is one question to the trees.
type search struct {
	demand  room
	workers []worker
	takes   func(slot int32) bool // nil: everyone with room
	steps   int                   // how many workers takes may still be asked about
	best    entry
}

// first looks for a worker that comes before s.best in the order of choice.
func (t *tree) first(s *search) {
	if len(t.nodes) > 0 {
		t.below(s, len(t.nodes)-1, 0)
	}
}

func (t *tree) below(s *search, level, i int) {
	e := &t.nodes[level][i]
	if e.before(&s.best) == 0 || !t.rooms[level][i].holds(s.demand) || s.steps <= 0 {
		return
	}
	if s.workers[e.slot].left().holds(s.demand) && s.allows(e.slot) {
		s.best = *e
		return
	}
	if level == 0 {
		return
	}
	for c := range fanout {
		t.below(s, level-1, i*fanout+c)
	}
	t.rooms[level][i] = t.most(level, i)
}

func (s *search) allows(slot int32) bool {
	if s.takes == nil {
		return true
	}
	s.steps--
	return s.takes(slot)
}
