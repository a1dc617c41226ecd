package desk

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Gate is one lease of one node uid, as the calls see it. It closes by itself:
// nobody has to run for a node to stop serving.
type Gate struct {
	UID string
	// until is when serving ends, in nanoseconds of the desk's clock.
	until atomic.Int64
}

// Open lets calls in until the given moment.
func (g *Gate) Open(until time.Duration) { g.until.Store(int64(until)) }

// Close lets no call in any more.
func (g *Gate) Close() { g.until.Store(0) }

// opened says whether a call may pass at now.
func (g *Gate) opened(now time.Duration) bool { return int64(now) < g.until.Load() }

// Standing is how far an attempt has come.
type Standing int

// The standings of an attempt that calls can meet.
const (
	Preparing Standing = iota
	Ready
	Draining
)

// Entry is one attempt that this node holds. It is immutable: another standing is
// another entry.
type Entry struct {
	RunUID   string
	Attempt  int32
	Gate     *Gate
	Standing Standing
	// RegistrationID is set in Ready.
	RegistrationID string
	// Deadline is when the Run's lifetime ends by the desk's clock; 0 is never.
	Deadline time.Duration
	// Work ends when the calls of this attempt are cut off; its cause says why.
	Work context.Context
	// Suspect tells the owner that the Runtime Server answered as if the
	// registration were in trouble. It does not block.
	Suspect func()
}

// table is what the node holds: one map read a call.
type table struct {
	entries sync.Map // run uid → *Entry
	ended   ended
}

func (t *table) get(runUID string) *Entry {
	if e, ok := t.entries.Load(runUID); ok {
		return e.(*Entry)
	}
	return nil
}

// ended remembers which Runs have ended here, the latest ones.
type ended struct {
	mu   sync.Mutex
	uids map[string]int
	ring []string
	next int
}

// remembered bounds the memory of Runs that have ended.
const remembered = 4096

func (e *ended) add(uid string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.uids == nil {
		e.uids, e.ring = map[string]int{}, make([]string, remembered)
	}
	if _, ok := e.uids[uid]; ok {
		return
	}
	delete(e.uids, e.ring[e.next])
	e.ring[e.next], e.uids[uid] = uid, e.next
	e.next = (e.next + 1) % remembered
}

// drop forgets a Run that is served again.
func (e *ended) drop(uid string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if i, ok := e.uids[uid]; ok {
		delete(e.uids, uid)
		e.ring[i] = ""
	}
}

func (e *ended) has(uid string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	_, ok := e.uids[uid]
	return ok
}
