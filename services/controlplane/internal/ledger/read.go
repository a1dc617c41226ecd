package ledger

import (
	"cmp"
	"slices"
	"sort"

	"github.com/hearth-run/hearth/services/controlplane/internal/journal"
	"github.com/hearth-run/hearth/services/controlplane/internal/record"
	"github.com/hearth-run/hearth/services/controlplane/internal/store"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
)

// Named returns a Run by its name. Errors: ErrRunNotFound, also where uid is given
// and another's.
func (l *Ledger) Named(namespace, name, uid string) (*record.Run, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	r := l.view.runs[l.view.names[record.Key(namespace, name)]]
	if r == nil || uid != "" && r.UID != uid {
		return nil, ErrRunNotFound
	}
	return r, nil
}

// Runs returns at most limit matching Runs whose key follows after, in the order
// of keys, and the version at which that was so. A limit of 0 is none.
func (l *Ledger) Runs(after string, limit int, match func(*record.Run) bool) ([]*record.Run, int64) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	var out []*record.Run
	from := 0
	if after != "" {
		from = sort.Search(len(l.view.keys), func(i int) bool { return l.view.keys[i] > after })
	}
	for _, key := range l.view.keys[from:] {
		if r := l.view.runs[l.view.names[key]]; match(r) {
			out = append(out, r)
		}
		if limit > 0 && len(out) == limit {
			break
		}
	}
	return out, l.view.version
}

// After reads the journal: see journal.Journal.After. Errors: journal.ErrCompacted.
func (l *Ledger) After(version int64, limit int) ([]journal.Event, <-chan struct{}, error) {
	return l.journal.After(version, limit)
}

// Node returns a node. Errors: ErrNodeUnknown.
func (l *Ledger) Node(uid string) (*record.Node, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	n := l.view.nodes[uid]
	if n == nil {
		return nil, ErrNodeUnknown
	}
	return n, nil
}

// Nodes returns the nodes as they look on the wire, by name, then by age.
func (l *Ledger) Nodes() []*hearthv1.Node {
	l.mu.RLock()
	list := make([]*record.Node, 0, len(l.view.nodes))
	reserved := map[string]int{}
	for uid, n := range l.view.nodes {
		list = append(list, n)
		reserved[uid] = len(l.view.held[uid])
	}
	l.mu.RUnlock()
	slices.SortFunc(list, func(a, b *record.Node) int {
		switch {
		case a.Name != b.Name && a.Name < b.Name:
			return -1
		case a.Name != b.Name:
			return 1
		}
		return a.RegisteredAt.Compare(b.RegisteredAt)
	})
	out := make([]*hearthv1.Node, 0, len(list))
	for _, n := range list {
		out = append(out, n.Proto(reserved[n.UID]))
	}
	return out
}

// Held returns the Runs that hold a place on the node, of which only those in uids
// where uids is not nil.
func (l *Ledger) Held(node string, uids []string) (out []*record.Run) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if uids == nil {
		for uid := range l.view.held[node] {
			out = append(out, l.view.runs[uid])
		}
	}
	for _, uid := range uids {
		if _, held := l.view.held[node][uid]; held {
			out = append(out, l.view.runs[uid])
		}
	}
	slices.SortFunc(out, func(a, b *record.Run) int { return cmp.Compare(a.Seq, b.Seq) })
	return out
}

// Reserved is how many Runs hold a place on the node.
func (l *Ledger) Reserved(node string) int {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return len(l.view.held[node])
}

// Source returns a Run's inline source with its contents, or nil.
func (l *Ledger) Source(uid string) (*hearthv1.Source, error) { return l.store.Source(uid) }

// Streams returns what a task has written.
func (l *Ledger) Streams(uid string) (store.Streams, error) { return l.store.Streams(uid) }

// Names says whether any Run names the archive.
func (l *Ledger) Names(sum string) bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.view.archives[sum] > 0
}
