package route

import (
	"sync"
	"sync/atomic"
	"unique"

	"github.com/hearth-run/hearth/gen/executor/v1/executorv1connect"
	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
)

// Nodes makes clients of nodes.
type Nodes interface {
	// Client returns a client for a node's address.
	// Errors: an address that is none.
	Client(address string) (executorv1connect.FunctionRuntimeClient, error)
	// Forget is told of an address that no route has any more.
	Forget(address string)
}

// Book keeps the present table and applies events to it. One goroutine writes;
// any number may read Table.
type Book struct {
	nodes Nodes
	table atomic.Pointer[Table]
	// complete is true from the end of the first snapshot on.
	complete atomic.Bool

	mu sync.Mutex // guards change
	// change is closed at the next swap; nil while nobody waits for one.
	change chan struct{}

	// The rest belongs to the writer.
	runs  map[string]run // by Run UID
	hosts map[string]*host
	// unseen are the Runs that the snapshot under way has not named yet; nil
	// outside of a snapshot.
	unseen map[string]struct{}
}

type run struct {
	route *Route
	host  *host
}

// host is one address, shared by the routes that lead there.
type host struct {
	address string
	client  executorv1connect.FunctionRuntimeClient
	routes  int
}

// NewBook returns a book with an empty table.
func NewBook(nodes Nodes) *Book {
	b := &Book{nodes: nodes, runs: map[string]run{}, hosts: map[string]*host{}}
	b.table.Store(NewTable())
	return b
}

// Table returns the present table.
func (b *Book) Table() *Table { return b.table.Load() }

// Changed returns a channel that is closed when the table after this moment is
// another one.
func (b *Book) Changed() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.change == nil {
		b.change = make(chan struct{})
	}
	return b.change
}

// swap makes a table the present one and wakes who waits for it.
func (b *Book) swap(t *Table) {
	b.table.Store(t)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.change != nil {
		close(b.change)
		b.change = nil
	}
}

// Complete says whether the table was ever whole: before that, a Run that it
// does not have may exist all the same.
func (b *Book) Complete() bool { return b.complete.Load() }

// Begin starts a snapshot. What the table has stays in it until the snapshot is
// complete: a gateway that reconnects goes on serving what it knows.
func (b *Book) Begin() {
	b.unseen = make(map[string]struct{}, len(b.runs))
	for uid := range b.runs {
		b.unseen[uid] = struct{}{}
	}
}

// Apply takes one event over and swaps the table once. It returns the addresses
// that no client could be made for, with the reason of the last.
func (b *Book) Apply(event *hearthv1.WatchRoutesResponse) (bad error) {
	var put, removed []*Route
	for _, uid := range event.GetRemovedRunUids() {
		removed = b.drop(removed, uid)
	}
	for _, wire := range event.GetRoutes() {
		delete(b.unseen, wire.GetRunUid())
		r, err := b.take(wire)
		if err != nil {
			bad = err
		}
		put = append(put, r)
	}
	if event.GetSnapshotComplete() {
		for uid := range b.unseen {
			removed = b.drop(removed, uid)
		}
		b.unseen = nil
	}
	if len(put)+len(removed) > 0 {
		b.swap(b.Table().With(put, removed))
	}
	if event.GetSnapshotComplete() {
		b.complete.Store(true)
	}
	return bad
}

// take makes a route of a wire message and remembers it by UID. An address that
// no client can be made for leaves a route that is not served.
func (b *Book) take(wire *hearthv1.Route) (*Route, error) {
	h, err := b.host(wire.GetAddress())
	b.release(b.runs[wire.GetRunUid()].host)
	r := &Route{
		// Names that many routes share are kept once.
		Namespace:  unique.Make(wire.GetNamespace()).Value(),
		NodeUID:    unique.Make(wire.GetNodeUid()).Value(),
		LogAddress: unique.Make(wire.GetLogAddress()).Value(),
		Name:       wire.GetName(),
		RunUID:     wire.GetRunUid(),
		Attempt:    wire.GetAttempt(),
		Phase:      wire.GetPhase(),
		Reason:     wire.GetReason(),
		Function:   wire.GetFunction(),
	}
	if h != nil && r.Phase == hearthv1.RunPhase_RUN_PHASE_READY {
		r.Node = h.client
	}
	b.runs[r.RunUID] = run{r, h}
	return r, err
}

func (b *Book) drop(removed []*Route, uid string) []*Route {
	known, ok := b.runs[uid]
	if !ok {
		return removed
	}
	delete(b.runs, uid)
	b.release(known.host)
	return append(removed, known.route)
}

func (b *Book) host(address string) (*host, error) {
	if address == "" {
		return nil, nil
	}
	h := b.hosts[address]
	if h == nil {
		client, err := b.nodes.Client(address)
		if err != nil {
			return nil, err
		}
		h = &host{address: address, client: client}
		b.hosts[address] = h
	}
	h.routes++
	return h, nil
}

func (b *Book) release(h *host) {
	if h == nil {
		return
	}
	if h.routes--; h.routes == 0 {
		delete(b.hosts, h.address)
		b.nodes.Forget(h.address)
	}
}
