package ledger

import (
	"context"
	"fmt"
	"time"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/services/controlplane/internal/lifecycle"
	"github.com/hearth-run/hearth/services/controlplane/internal/nodes"
	"github.com/hearth-run/hearth/services/controlplane/internal/record"
	"github.com/hearth-run/hearth/services/controlplane/internal/store"
)

// Create stores a new Run: of draft, what the user says counts, and its UID. source
// is the whole one; draft's spec has no contents.
// Errors: ErrRunExists.
func (l *Ledger) Create(ctx context.Context, draft record.Run, source *hearthv1.Source, size int) (*record.Run, error) {
	r := draft
	err := l.do(ctx, size, func(t *tx) error {
		if t.named(r.Namespace, r.Name) != nil {
			return ErrRunExists
		}
		t.seq++
		r.Seq, r.State = t.seq, lifecycle.New(t.now)
		if reason := l.queue.Verdict(r.Group()); reason != 0 {
			r.State, _ = lifecycle.Apply(r.Policy, r.State, lifecycle.Event{Kind: lifecycle.Unplaceable, Reason: reason}, t.now)
		}
		t.changes.Sources[r.UID] = source
		t.put(nil, &r)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &r, nil
}

// End asks for the end of a Run: kind is Cancel or Delete. It returns the Run as it
// stands then.
// Errors: ErrRunNotFound.
func (l *Ledger) End(ctx context.Context, namespace, name, uid string, kind lifecycle.Kind) (*record.Run, error) {
	var out *record.Run // the owner's, unless it has answered without an error
	err := l.do(ctx, 0, func(t *tx) error {
		r := t.named(namespace, name)
		if r == nil || uid != "" && r.UID != uid {
			return ErrRunNotFound
		}
		removed := *r
		err := t.stepWith(r, lifecycle.Event{Kind: kind}, func(next *record.Run) { removed = *next })
		if out = t.run(r.UID); out == nil {
			removed.Version = t.version
			out = &removed
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Report is what a node says of an assignment.
type Report struct {
	RunUID  string
	Event   lifecycle.Event
	Outputs map[string]string
	Streams store.Streams
}

// Report applies what a node says.
// Errors: ErrRunNotFound, ErrReport, lifecycle.ErrFenced and ErrRefused.
func (l *Ledger) Report(ctx context.Context, p Report) error {
	return l.do(ctx, len(p.Streams.Stdout)+len(p.Streams.Stderr), func(t *tx) error {
		r := t.run(p.RunUID)
		if r == nil {
			return ErrRunNotFound
		}
		if n := t.node(p.Event.Node); n == nil || !n.State.May() {
			return fmt.Errorf("%w: the node's lease is over", lifecycle.ErrFenced)
		}
		if kind := p.Event.Kind; r.Policy.Task && kind == lifecycle.Report || !r.Policy.Task && kind == lifecycle.Finish {
			return ErrReport
		}
		return t.stepWith(r, p.Event, func(next *record.Run) {
			if p.Event.Kind == lifecycle.Finish {
				next.Outputs = p.Outputs
				t.changes.Streams[r.UID] = p.Streams
			}
		})
	})
}

// Register makes a node known, or renews the lease of one that is.
// Errors: ErrNodeName, ErrPredecessor, nodes.ErrFenced.
func (l *Ledger) Register(ctx context.Context, n *record.Node, predecessor string, received time.Time) error {
	return l.do(ctx, 0, func(t *tx) error {
		if known := t.node(n.UID); known != nil {
			if known.Name != n.Name {
				return ErrNodeName
			}
			_, err := t.stepNode(known, nodes.Register, received, nil)
			return err
		}
		before := t.node(predecessor)
		if before != nil && before.Name != n.Name {
			return ErrPredecessor
		}
		heir, err := t.stepNode(n, nodes.Register, received, nil)
		if err != nil {
			return err
		}
		return t.succeed(heir, before)
	})
}

// succeed settles what a new process of a node means for the older ones.
func (t *tx) succeed(heir, dead *record.Node) error {
	if dead != nil {
		if _, err := t.stepNode(dead, nodes.Bury, t.now, heir); err != nil {
			return err
		}
	}
	for uid := range t.l.view.nodes {
		n := t.node(uid)
		if n == nil || n.Name != heir.Name || uid == heir.UID {
			continue
		}
		if _, err := t.stepNode(n, nodes.Supersede, t.now, nil); err != nil {
			return err
		}
	}
	return nil
}

// Renew prolongs a node's lease, counted from received, and takes over what it
// supports.
// Errors: ErrNodeUnknown, nodes.ErrFenced.
func (l *Ledger) Renew(ctx context.Context, uid string, functions, tasks bool, received time.Time) error {
	return l.do(ctx, 0, func(t *tx) error {
		n := t.node(uid)
		if n == nil {
			return ErrNodeUnknown
		}
		next, err := t.stepNode(n, nodes.Renew, received, nil)
		if err != nil {
			return err
		}
		if next.Functions != functions || next.Tasks != tasks {
			next.Functions, next.Tasks = functions, tasks
			t.putNode(next, true)
		}
		return nil
	})
}

// Drain stops placing Runs on a node and asks for those that it has. It returns how
// many it still has.
// Errors: ErrNodeUnknown.
func (l *Ledger) Drain(ctx context.Context, uid string) (int, error) {
	var remaining int // as in End
	err := l.do(ctx, 0, func(t *tx) error {
		n := t.node(uid)
		if n == nil {
			return ErrNodeUnknown
		}
		_, err := t.stepNode(n, nodes.Drain, t.now, nil)
		remaining = t.reserved(uid)
		return err
	})
	if err != nil {
		return 0, err
	}
	return remaining, nil
}
