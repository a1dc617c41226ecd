// Package journal owns the bounded history of changes that watches follow. A watch
// reads it at its own pace: a slow one costs nobody anything, and when it has fallen
// behind the history's beginning it is told so.
package journal

import (
	"errors"
	"fmt"
	"sync"

	"github.com/hearth-run/hearth/services/controlplane/internal/record"
)

// ErrCompacted: the version asked for is no longer, or not yet, in the history.
var ErrCompacted = errors.New("journal: compacted")

// Event is one change of one Run: Old is nil where it was created, New where it was
// removed.
type Event struct {
	Version  int64
	Old, New *record.Run
}

// Journal is safe for concurrent use.
type Journal struct {
	mu      sync.Mutex // guards all below
	ring    []Event    // at most limit, in the order of versions, without gaps
	start   int        // index of the oldest in ring, once it is full
	limit   int
	last    int64         // version of the newest, or that of the beginning
	changed chan struct{} // closed at the next append
}

// New begins a history after version; it keeps limit events.
func New(version int64, limit int) *Journal {
	return &Journal{limit: limit, last: version, changed: make(chan struct{})}
}

// Append adds events, whose versions follow on the last without a gap.
func (j *Journal) Append(events []Event) {
	if len(events) == 0 {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range events {
		if len(j.ring) < j.limit {
			j.ring = append(j.ring, e)
		} else {
			j.ring[j.start] = e
			j.start = (j.start + 1) % j.limit
		}
		j.last = e.Version
	}
	close(j.changed)
	j.changed = make(chan struct{})
}

// After returns at most limit events that follow version, oldest first, and a
// channel that is closed once there are more than these.
// Errors: ErrCompacted.
func (j *Journal) After(version int64, limit int) ([]Event, <-chan struct{}, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	missing := j.last - version
	if missing < 0 || missing > int64(len(j.ring)) {
		return nil, nil, fmt.Errorf("%w: version %d, the history goes from %d to %d", ErrCompacted, version, j.last-int64(len(j.ring)), j.last)
	}
	n := min(int(missing), limit)
	out := make([]Event, 0, n)
	first := len(j.ring) - int(missing)
	for i := range n {
		out = append(out, j.ring[(j.start+first+i)%len(j.ring)])
	}
	return out, j.changed, nil
}
