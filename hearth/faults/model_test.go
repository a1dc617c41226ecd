package faults

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
)

// model is what the world must agree with.
type model struct {
	witness *witness
	mu      sync.Mutex // guards what follows
	// acked are the Runs whose creation was acknowledged and whose deletion was not
	// asked for.
	acked map[string]known
	// gone are those that may have been removed.
	gone map[string]bool
	// triples are all that were ever seen, for calls with a stale one.
	triples []triple
	number  int
	// answered counts the invocations that came back.
	answered int
}

// known is what the test knows of a Run.
type known struct {
	name      string
	cancelled bool
}

// triple fences a call of a Run.
type triple struct {
	run     string
	attempt int32
	node    string
	address string
}

func newModel(w *witness) *model {
	return &model{witness: w, acked: map[string]known{}, gone: map[string]bool{}}
}

// next makes a name.
func (m *model) next(kind string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.number++
	return fmt.Sprintf("%s%d", kind, m.number)
}

func (m *model) answer() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.answered++
}

func (m *model) ack(run *hearthv1.Run) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.acked[run.GetUid()] = known{name: run.GetName()}
}

func (m *model) cancel(uid string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if k, ok := m.acked[uid]; ok {
		k.cancelled = true
		m.acked[uid] = k
	}
}

func (m *model) remove(uid string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.acked, uid)
	m.gone[uid] = true
}

// runs returns the UIDs that are acked, in order.
func (m *model) runs() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.acked))
}

func (m *model) known(uid string) known {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.acked[uid]
}

// saw notes where a Run is.
func (m *model) saw(run *hearthv1.Run) {
	s := run.GetStatus()
	if s.GetEndpoint() == "" || s.GetNodeUid() == "" {
		return
	}
	t := triple{run.GetUid(), s.GetAttempt(), s.GetNodeUid(), s.GetEndpoint()}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !slices.Contains(m.triples, t) {
		m.triples = append(m.triples, t)
		if len(m.triples) > 200 {
			m.triples = m.triples[100:]
		}
	}
}

// past returns a triple that was seen.
func (m *model) past(draw func(int) int) (triple, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.triples) == 0 {
		return triple{}, false
	}
	return m.triples[draw(len(m.triples))], true
}
