package ledger

import (
	"maps"
	"slices"

	"github.com/hearth-run/hearth/services/controlplane/internal/lifecycle"
	"github.com/hearth-run/hearth/services/controlplane/internal/nodes"
	"github.com/hearth-run/hearth/services/controlplane/internal/placement"
	"github.com/hearth-run/hearth/services/controlplane/internal/record"
)

// view is what is committed.
type view struct {
	version, seq int64
	runs         map[string]*record.Run
	names        map[string]string              // key to uid
	keys         []string                       // sorted
	nodes        map[string]*record.Node        // by uid
	byRuntime    map[string][]string            // uids, sorted
	held         map[string]map[string]struct{} // by node: uids of Runs with a reservation
	archives     map[string]int                 // by sum: how many Runs name it
}

func newView(version, seq int64) view {
	return view{
		version: version, seq: seq, runs: map[string]*record.Run{}, names: map[string]string{},
		nodes: map[string]*record.Node{}, byRuntime: map[string][]string{}, held: map[string]map[string]struct{}{},
		archives: map[string]int{},
	}
}

// archive counts who names an archive.
func (v *view) archive(r *record.Run, n int) {
	sum := r.Spec.GetSource().GetArchive().GetSha256()
	if sum == "" {
		return
	}
	if v.archives[sum] += n; v.archives[sum] == 0 {
		delete(v.archives, sum)
	}
}

func (v *view) sort() { v.keys = slices.Sorted(maps.Keys(v.names)) }

// commit makes the overlay durable and then visible.
func (l *Ledger) commit(t *tx) error {
	if !t.changes.Empty() {
		t.changes.Version, t.changes.Seq = t.version, t.seq
		if err := l.store.Commit(&t.changes); err != nil {
			return err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for uid, n := range t.nodes {
		l.mergeNode(uid, n)
	}
	for _, e := range t.events {
		after := e.New
		if after == nil {
			l.mergeGone(e.Old)
			continue
		}
		l.mergeRun(e.Old, after)
		l.index(e.Old, after)
	}
	l.view.version, l.view.seq = t.version, t.seq
	l.journal.Append(t.events)
	return nil
}

// mergeRun follows a change of a Run; from nil it follows a Run's being read.
func (l *Ledger) mergeRun(before, after *record.Run) {
	l.view.runs[after.UID], l.view.names[after.Key()] = after, after.UID
	if before == nil {
		l.view.archive(after, 1)
	}
	for _, e := range lifecycle.Effects(stateOf(before), after.State) {
		l.follow(after, e)
	}
	l.queue.Told(after.UID, after.State.Reason)
	if _, at, ok := lifecycle.Due(after.Policy, after.State); ok {
		l.timers.set(after.UID, at)
	} else {
		l.timers.clear(after.UID)
	}
	if before == nil || before.State.Stage != after.State.Stage {
		l.log.Debug("run moved", "run_uid", after.UID, "from", stateOf(before).Stage, "to", after.State.Stage,
			"cause", after.State.Reason, "attempt", after.State.Attempt, "node_uid", after.State.Node)
	}
}

// index keeps the keys in order; restore sorts them once instead.
func (l *Ledger) index(before, after *record.Run) {
	if before == nil {
		if at, found := slices.BinarySearch(l.view.keys, after.Key()); !found {
			l.view.keys = slices.Insert(l.view.keys, at, after.Key())
		}
	}
}

// mergeGone follows the removal of a Run.
func (l *Ledger) mergeGone(before *record.Run) {
	gone := before.State
	gone.Stage, gone.Node = lifecycle.Removed, ""
	for _, e := range lifecycle.Effects(before.State, gone) {
		l.follow(before, e)
	}
	delete(l.view.runs, before.UID)
	delete(l.view.names, before.Key())
	if at, found := slices.BinarySearch(l.view.keys, before.Key()); found {
		l.view.keys = slices.Delete(l.view.keys, at, at+1)
	}
	l.view.archive(before, -1)
	l.timers.clear(before.UID)
	l.log.Debug("run removed", "run_uid", before.UID)
}

func (l *Ledger) follow(r *record.Run, e lifecycle.Effect) {
	switch e.Op {
	case lifecycle.Enqueue:
		l.queue.Add(r.Group(), placement.Waiting{UID: r.UID, Seq: r.Seq, Avoid: r.State.Avoid, Reason: r.State.Reason})
		l.passing = true
	case lifecycle.Dequeue:
		l.queue.Remove(r.UID)
	case lifecycle.Reserve:
		if l.view.held[e.Node] == nil {
			l.view.held[e.Node] = map[string]struct{}{}
		}
		l.view.held[e.Node][r.UID] = struct{}{}
	case lifecycle.Free:
		delete(l.view.held[e.Node], r.UID)
		if len(l.view.held[e.Node]) == 0 {
			delete(l.view.held, e.Node)
		}
		if n := l.view.nodes[e.Node]; n != nil {
			l.queue.Wake(n.Runtime)
			l.passing = true
		}
	case lifecycle.Tell:
		l.hub.tell(e.Node, r.UID)
	}
}

// mergeNode follows a change of a node; n is nil where it is forgotten.
func (l *Ledger) mergeNode(uid string, n *record.Node) {
	before := l.view.nodes[uid]
	if n == nil {
		delete(l.view.nodes, uid)
		l.timers.clear(uid)
		if before != nil {
			l.view.byRuntime[before.Runtime] = without(l.view.byRuntime[before.Runtime], uid)
		}
		return
	}
	l.view.nodes[uid] = n
	if at, ok := nodes.Due(l.cfg.Terms, n.State); ok {
		l.timers.set(uid, at)
	}
	if before == nil {
		line := append(slices.Clone(l.view.byRuntime[n.Runtime]), uid)
		slices.Sort(line)
		l.view.byRuntime[n.Runtime] = line
	}
	if before == nil || before.State.Phase != n.State.Phase || before.Functions != n.Functions || before.Tasks != n.Tasks {
		l.queue.Wake(n.Runtime)
		l.passing = true
		l.hub.tell(uid, "")
		l.log.Info("node", "node_uid", uid, "name", n.Name, "runtime", n.Runtime, "to", n.State.Phase)
	}
}

func without(line []string, uid string) []string {
	return slices.DeleteFunc(slices.Clone(line), func(s string) bool { return s == uid })
}
