// Package route owns where Runs are served: an immutable table that calls read
// without a lock, and the watch of the control plane that swaps it.
package route

import (
	"hash/maphash"

	"github.com/hearth-run/hearth/gen/executor/v1/executorv1connect"
	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
)

// Route says where one Run is served. It never changes once it is in a table.
type Route struct {
	Namespace, Name string
	RunUID          string
	NodeUID         string
	Attempt         int32
	Phase           hearthv1.RunPhase
	Reason          hearthv1.RunReason
	// Function is false for a task, which cannot be invoked.
	Function bool
	// Node calls the runtimed that serves the Run; nil unless Phase is READY.
	Node executorv1connect.FunctionRuntimeClient
	// LogAddress is where the Run's log is; empty before its first placement.
	LogAddress string

	hash uint64
}

// fanout is the number of leaves of a table, and of buckets of a leaf.
const fanout = 64

// leaf holds one 64th of a table. A bucket is a short list without order.
type leaf [fanout][]*Route

// Table maps namespace and name to a Route. It is immutable: With makes the next
// one and shares with it every leaf and bucket that did not change, so a change
// of one Run copies about 1 KiB, however many Runs there are.
type Table struct {
	seed   maphash.Seed
	leaves [fanout]*leaf
	size   int
}

// NewTable returns an empty table.
func NewTable() *Table {
	t := &Table{seed: maphash.MakeSeed()}
	empty := new(leaf)
	for i := range t.leaves {
		t.leaves[i] = empty
	}
	return t
}

// Size is the number of routes.
func (t *Table) Size() int { return t.size }

// Lookup returns the route of a Run by name, nil if there is none.
func (t *Table) Lookup(namespace, name string) *Route {
	hash := t.hash(namespace, name)
	for _, r := range t.bucket(hash) {
		if r.hash == hash && r.Name == name && r.Namespace == namespace {
			return r
		}
	}
	return nil
}

// With returns the table after changes: first the routes of removed go, each only
// where the table still has that Run under the name (a late removal does not
// evict the successor), then put takes its places.
func (t *Table) With(put, removed []*Route) *Table {
	next := *t
	var own [fanout]bool
	for _, r := range removed {
		next.edit(r, &own, func(bucket []*Route, at int) []*Route {
			if at < 0 || bucket[at].RunUID != r.RunUID {
				return bucket
			}
			next.size--
			return append(append(make([]*Route, 0, len(bucket)-1), bucket[:at]...), bucket[at+1:]...)
		})
	}
	for _, r := range put {
		next.edit(r, &own, func(bucket []*Route, at int) []*Route {
			bucket = append(make([]*Route, 0, len(bucket)+1), bucket...)
			if at >= 0 {
				bucket[at] = r
				return bucket
			}
			next.size++
			return append(bucket, r)
		})
	}
	return &next
}

// edit replaces the bucket of r in a leaf that this table alone has; own says
// which leaves those are. change gets the index of r's name, or -1.
func (t *Table) edit(r *Route, own *[fanout]bool, change func(bucket []*Route, at int) []*Route) {
	if r.hash == 0 {
		r.hash = t.hash(r.Namespace, r.Name)
	}
	i, j := r.hash%fanout, r.hash/fanout%fanout
	if !own[i] {
		copied := *t.leaves[i]
		t.leaves[i], own[i] = &copied, true
	}
	bucket, at := t.leaves[i][j], -1
	for k, other := range bucket {
		if other.hash == r.hash && other.Name == r.Name && other.Namespace == r.Namespace {
			at = k
		}
	}
	t.leaves[i][j] = change(bucket, at)
}

func (t *Table) bucket(hash uint64) []*Route {
	return t.leaves[hash%fanout][hash/fanout%fanout]
}

// hash is never 0, which marks a route that was not hashed yet.
func (t *Table) hash(namespace, name string) uint64 {
	return maphash.String(t.seed, namespace)*31 ^ maphash.String(t.seed, name) | 1<<63
}
