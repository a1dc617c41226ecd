package ledger

import "sync"

// hub tells the watches of nodes' assignments what has changed. A watch that is
// slow finds each Run once, as it stands by then.
type hub struct {
	mu   sync.Mutex // guards subs
	subs map[string]map[*Subscription]struct{}
}

func newHub() hub { return hub{subs: map[string]map[*Subscription]struct{}{}} }

// Subscription is one watch of one node's assignments.
type Subscription struct {
	hub    *hub
	node   string
	mu     sync.Mutex // guards dirty
	dirty  map[string]struct{}
	signal chan struct{} // holds one token while there is news
}

// Subscribe begins a watch; what is told from now on is not missed.
func (l *Ledger) Subscribe(node string) *Subscription {
	s := &Subscription{hub: &l.hub, node: node, dirty: map[string]struct{}{}, signal: make(chan struct{}, 1)}
	l.hub.mu.Lock()
	defer l.hub.mu.Unlock()
	if l.hub.subs[node] == nil {
		l.hub.subs[node] = map[*Subscription]struct{}{}
	}
	l.hub.subs[node][s] = struct{}{}
	return s
}

// Close ends the watch.
func (s *Subscription) Close() {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	delete(s.hub.subs[s.node], s)
	if len(s.hub.subs[s.node]) == 0 {
		delete(s.hub.subs, s.node)
	}
}

// News delivers a token once something has changed: a Run, or the node itself.
func (s *Subscription) News() <-chan struct{} { return s.signal }

// Take returns the uids of the Runs that have changed since the last Take.
func (s *Subscription) Take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]string, 0, len(s.dirty))
	for uid := range s.dirty {
		out = append(out, uid)
	}
	clear(s.dirty)
	return out
}

// tell never blocks. An empty run is news of the node itself.
func (h *hub) tell(node, run string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for s := range h.subs[node] {
		if run != "" {
			s.mu.Lock()
			s.dirty[run] = struct{}{}
			s.mu.Unlock()
		}
		select {
		case s.signal <- struct{}{}:
		default:
		}
	}
}
