package placement

import "time"

// Reservation names what Place promised. The zero value names nothing; a name is
// never used twice.
type Reservation uint64

// books holds the reservations: by number, by worker, and by age.
type books struct {
	entries []booking
	free    int32 // list of unused entries
	oldest  int32
	newest  int32
	live    int
}

type booking struct {
	generation uint32
	live       bool
	worker     int32
	claim      amount
	container  *container // once it is known
	at         time.Time
	age, peers links // among all, among the worker's
}

type links struct{ prev, next int32 }

func newBooks() books { return books{free: none, oldest: none, newest: none} }

func (b *books) reservation(i int32) Reservation {
	return Reservation(uint64(b.entries[i].generation)<<32 | uint64(uint32(i)))
}

// find returns the entry of a live reservation, or none.
func (b *books) find(r Reservation) int32 {
	i := int32(uint32(r))
	if i < 0 || int(i) >= len(b.entries) || !b.entries[i].live || b.entries[i].generation != uint32(r>>32) {
		return none
	}
	return i
}

// open enters a reservation at the head of its worker's list and at the young
// end of all.
func (b *books) open(now time.Time, worker int32, first *int32, claim amount) int32 {
	i := b.free
	if i == none {
		i = int32(len(b.entries))
		b.entries = append(b.entries, booking{})
	} else {
		b.free = b.entries[i].age.next
	}
	e := &b.entries[i]
	*e = booking{
		generation: e.generation + 1, live: true, worker: worker, claim: claim, at: now,
		age: links{b.newest, none}, peers: links{none, *first},
	}
	if *first != none {
		b.entries[*first].peers.prev = i
	}
	*first = i
	if b.newest != none {
		b.entries[b.newest].age.next = i
	} else {
		b.oldest = i
	}
	b.newest = i
	b.live++
	return i
}

func (b *books) close(i int32, first *int32) {
	e := &b.entries[i]
	if e.peers.prev != none {
		b.entries[e.peers.prev].peers.next = e.peers.next
	} else {
		*first = e.peers.next
	}
	if e.peers.next != none {
		b.entries[e.peers.next].peers.prev = e.peers.prev
	}
	if e.age.prev != none {
		b.entries[e.age.prev].age.next = e.age.next
	} else {
		b.oldest = e.age.next
	}
	if e.age.next != none {
		b.entries[e.age.next].age.prev = e.age.prev
	} else {
		b.newest = e.age.prev
	}
	e.live, e.container = false, nil
	e.age.next, b.free = b.free, i
	b.live--
}
