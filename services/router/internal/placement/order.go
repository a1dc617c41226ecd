package placement

import (
	"math"
	"slices"
	"strings"
)

// order keeps the workers sorted by id and gives each a label in that order, so
// that a comparison of two workers compares two numbers.
type order struct{ slots []int32 }

// step is how far apart the labels of workers that come in order stand.
const step = 1 << 32

// insert labels a new worker. It is true when every label had to be renewed.
func (o *order) insert(workers []worker, slot int32) bool {
	at, _ := o.find(workers, workers[slot].ID)
	o.slots = slices.Insert(o.slots, at, slot)
	low, high := uint64(0), uint64(math.MaxUint64)
	if at > 0 {
		low = workers[o.slots[at-1]].label
	}
	if at+1 < len(o.slots) {
		high = workers[o.slots[at+1]].label
	}
	if high-low < 2 {
		o.renew(workers)
		return true
	}
	workers[slot].label = low + min((high-low)/2, step)
	return false
}

func (o *order) remove(workers []worker, slot int32) {
	at, _ := o.find(workers, workers[slot].ID)
	o.slots = slices.Delete(o.slots, at, at+1)
}

func (o *order) find(workers []worker, id string) (int, bool) {
	return slices.BinarySearchFunc(o.slots, id, func(slot int32, id string) int {
		return strings.Compare(workers[slot].ID, id)
	})
}

// renew spreads the labels evenly.
func (o *order) renew(workers []worker) {
	gap := math.MaxUint64 / uint64(len(o.slots)+1)
	for i, slot := range o.slots {
		workers[slot].label = uint64(i+1) * gap
	}
}
