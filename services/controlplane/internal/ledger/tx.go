package ledger

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/services/controlplane/internal/journal"
	"github.com/hearth-run/hearth/services/controlplane/internal/lifecycle"
	"github.com/hearth-run/hearth/services/controlplane/internal/nodes"
	"github.com/hearth-run/hearth/services/controlplane/internal/placement"
	"github.com/hearth-run/hearth/services/controlplane/internal/record"
	"github.com/hearth-run/hearth/services/controlplane/internal/store"
)

// tx is the overlay of one turn over the view. Owner only. A method that fails has
// changed nothing.
type tx struct {
	l       *Ledger
	now     time.Time
	version int64
	seq     int64
	events  []journal.Event
	names   map[string]string // by key: uid, empty where the name was given up
	reserve map[string]int    // by node: what the turn adds to its reservations
	nodes   map[string]*record.Node
	changes store.Changes
}

func (l *Ledger) begin(now time.Time) *tx {
	return &tx{
		l: l, now: now, version: l.view.version, seq: l.view.seq,
		names: map[string]string{}, reserve: map[string]int{}, nodes: map[string]*record.Node{},
		changes: store.Changes{
			Runs: map[string]*record.Run{}, Sources: map[string]*hearthv1.Source{},
			Streams: map[string]store.Streams{}, Nodes: map[string]*record.Node{},
		},
	}
}

func (t *tx) run(uid string) *record.Run {
	if r, ok := t.changes.Runs[uid]; ok {
		return r
	}
	return t.l.view.runs[uid]
}

func (t *tx) named(namespace, name string) *record.Run {
	key := record.Key(namespace, name)
	uid, ok := t.names[key]
	if !ok {
		uid = t.l.view.names[key]
	}
	return t.run(uid)
}

func (t *tx) node(uid string) *record.Node {
	if n, ok := t.nodes[uid]; ok {
		return n
	}
	return t.l.view.nodes[uid]
}

func (t *tx) reserved(node string) int { return len(t.l.view.held[node]) + t.reserve[node] }

// put makes after the newest version of its Run.
func (t *tx) put(before, after *record.Run) {
	t.version++
	after.Version = t.version
	event := journal.Event{Version: t.version, Old: before, New: after}
	t.changes.Runs[after.UID], t.names[after.Key()] = after, after.UID
	if after.State.Stage == lifecycle.Removed {
		event.New = nil
		t.changes.Runs[after.UID], t.names[after.Key()] = nil, ""
		delete(t.changes.Sources, after.UID)
		delete(t.changes.Streams, after.UID)
	}
	t.events = append(t.events, event)
	for _, e := range lifecycle.Effects(stateOf(before), after.State) {
		switch e.Op {
		case lifecycle.Reserve:
			t.reserve[e.Node]++
		case lifecycle.Free:
			t.reserve[e.Node]--
		}
	}
}

func stateOf(r *record.Run) lifecycle.State {
	if r == nil {
		return lifecycle.State{}
	}
	return r.State
}

// stepRun applies an event to a Run. Errors: lifecycle's.
func (t *tx) stepRun(r *record.Run, e lifecycle.Event) error {
	return t.stepWith(r, e, func(*record.Run) {})
}

// stepWith does the same and lets also change what the new version holds beside
// its state.
func (t *tx) stepWith(r *record.Run, e lifecycle.Event, also func(*record.Run)) error {
	e.Jitter = t.l.cfg.Jitter()
	state, err := lifecycle.Apply(r.Policy, r.State, e, t.now)
	if err != nil || state == r.State {
		return err
	}
	next := *r
	next.State = state
	also(&next)
	t.put(r, &next)
	return nil
}

// stepNode applies an event to a node and what follows from it to its Runs, which
// go to heir where there is one that fits. Errors: those of nodes.
func (t *tx) stepNode(n *record.Node, kind nodes.Kind, at time.Time, heir *record.Node) (*record.Node, error) {
	state, effects, err := nodes.Apply(t.l.cfg.Terms, n.State, kind, at)
	if err != nil {
		return n, err
	}
	next := *n
	next.State = state
	t.putNode(&next, state.Phase != n.State.Phase)
	for _, e := range effects {
		switch e {
		case nodes.Vacate:
			t.each(n.UID, func(r *record.Run) error { return t.stepRun(r, lifecycle.Event{Kind: lifecycle.Drain}) })
		case nodes.HandOn:
			t.each(n.UID, func(r *record.Run) error { return t.handOn(r, heir) })
		case nodes.Forget:
			t.changes.Nodes[n.UID], t.nodes[n.UID] = nil, nil
		}
	}
	return &next, nil
}

func (t *tx) putNode(n *record.Node, durable bool) {
	t.nodes[n.UID] = n
	if _, already := t.changes.Nodes[n.UID]; durable || already {
		t.changes.Nodes[n.UID] = n
	}
}

// each applies f to every Run that holds a place on the node, oldest first: that is
// the order in which they will wait for another.
func (t *tx) each(node string, f func(*record.Run) error) {
	var holders []*record.Run
	add := func(uid string) {
		if r := t.run(uid); r != nil && r.State.Node == node {
			holders = append(holders, r)
		}
	}
	for uid := range t.l.view.held[node] {
		add(uid)
	}
	for uid := range t.changes.Runs {
		if _, held := t.l.view.held[node][uid]; !held {
			add(uid)
		}
	}
	slices.SortFunc(holders, func(a, b *record.Run) int { return cmp.Compare(a.Seq, b.Seq) })
	for _, r := range holders {
		if err := f(r); err != nil {
			t.l.log.Error("run not moved", "run_uid", r.UID, "node_uid", node, "err", err)
		}
	}
}

// handOn frees a Run of a node whose lease has ended: the next process of the node
// goes on with the attempt if it can, else the Run is placed again.
func (t *tx) handOn(r *record.Run, heir *record.Node) error {
	if heir != nil && heir.Supports(r.Group()) && t.reserved(heir.UID) < heir.Capacity {
		return t.stepRun(r, lifecycle.Event{Kind: lifecycle.Adopt, Node: heir.UID, Endpoint: heir.Address})
	}
	return t.stepRun(r, lifecycle.Event{Kind: lifecycle.Lose})
}

// snapshot is what placement may know of a runtime's nodes.
func (t *tx) snapshot(runtime string) (out []placement.Node) {
	for _, uid := range t.l.view.byRuntime[runtime] {
		if n := t.node(uid); n != nil {
			out = append(out, n.Place(t.reserved(uid)))
		}
	}
	return out
}

// settle applies a decision, if it still holds.
func (t *tx) settle(d placement.Decision) error {
	r := t.run(d.UID)
	if r == nil {
		return nil
	}
	if d.Node == "" {
		return t.stepRun(r, lifecycle.Event{Kind: lifecycle.Unplaceable, Reason: d.Reason})
	}
	n := t.node(d.Node)
	if n == nil || !n.State.Placeable() || !n.Supports(r.Group()) || t.reserved(n.UID) >= n.Capacity {
		return fmt.Errorf("place run %s on %s: the node has no room any more", d.UID, d.Node)
	}
	return t.stepRun(r, lifecycle.Event{Kind: lifecycle.Place, Node: n.UID, Endpoint: n.Address})
}
