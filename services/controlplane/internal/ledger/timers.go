package ledger

import (
	"container/heap"
	"time"
)

// timers hold at most one moment a key, whatever their number, with one clock.
type timers struct {
	heap  []*alarm
	byKey map[string]*alarm
}

type alarm struct {
	key   string
	at    time.Time
	index int
}

func newTimers() *timers { return &timers{byKey: map[string]*alarm{}} }

// set gives the key a moment, or another one.
func (t *timers) set(key string, at time.Time) {
	if a := t.byKey[key]; a != nil {
		if !a.at.Equal(at) {
			a.at = at
			heap.Fix(t, a.index)
		}
		return
	}
	a := &alarm{key: key, at: at}
	t.byKey[key] = a
	heap.Push(t, a)
}

func (t *timers) clear(key string) {
	if a := t.byKey[key]; a != nil {
		heap.Remove(t, a.index)
		delete(t.byKey, key)
	}
}

func (t *timers) next() (time.Time, bool) {
	if len(t.heap) == 0 {
		return time.Time{}, false
	}
	return t.heap[0].at, true
}

// due returns at most limit keys whose moment has come. They stay until what
// follows from them sets or clears them: what fails to be committed comes again.
func (t *timers) due(now time.Time, limit int) (keys []string) {
	var walk func(i int)
	walk = func(i int) {
		if i >= len(t.heap) || len(keys) >= limit || t.heap[i].at.After(now) {
			return
		}
		keys = append(keys, t.heap[i].key)
		walk(2*i + 1)
		walk(2*i + 2)
	}
	walk(0)
	return keys
}

// Len, Less, Swap, Push and Pop are container/heap's.
func (t *timers) Len() int           { return len(t.heap) }
func (t *timers) Less(i, j int) bool { return t.heap[i].at.Before(t.heap[j].at) }
func (t *timers) Swap(i, j int) {
	t.heap[i], t.heap[j] = t.heap[j], t.heap[i]
	t.heap[i].index, t.heap[j].index = i, j
}

func (t *timers) Push(x any) {
	a := x.(*alarm)
	a.index = len(t.heap)
	t.heap = append(t.heap, a)
}

func (t *timers) Pop() any {
	a := t.heap[len(t.heap)-1]
	t.heap = t.heap[:len(t.heap)-1]
	return a
}
