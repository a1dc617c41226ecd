// Package placement owns the choice of a node for a waiting Run: a judgement on a
// snapshot, which the ledger commits separately and may refuse.
package placement

import "github.com/hearth-run/hearth/services/controlplane/internal/lifecycle"

// Node is a node as the judgement sees it.
type Node struct {
	UID, Runtime     string
	Functions, Tasks bool
	// Live says that it may be given Runs.
	Live bool
	// Capacity and Reserved are in Runs.
	Capacity, Reserved int
}

// Group is what a waiting Run needs: all of a group need the same.
type Group struct {
	Runtime string
	Task    bool
}

func (n Node) supports(g Group) bool {
	if g.Task {
		return n.Tasks
	}
	return n.Functions
}

// Choose returns the index of the least loaded node for one Run of the group, or
// -1 and why the Run must wait. avoid is a node's uid that is taken only where no
// other has room. nodes are those of the group's runtime. Ties go to the first.
func Choose(nodes []Node, g Group, avoid string) (int, lifecycle.Reason) {
	best, second, reason := -1, -1, lifecycle.NoNode
	for i, n := range nodes {
		if n.Runtime != g.Runtime || !n.Live {
			continue
		}
		if !n.supports(g) {
			if reason == lifecycle.NoNode {
				reason = lifecycle.ModeUnsupported
			}
			continue
		}
		reason = lifecycle.NoCapacity
		switch {
		case n.Reserved >= n.Capacity:
		case n.UID == avoid:
			second = i
		case best < 0 || lighter(n, nodes[best]):
			best = i
		}
	}
	switch {
	case best >= 0:
		return best, 0
	case second >= 0:
		return second, 0
	}
	return -1, reason
}

// lighter compares loads by cross multiplication, exactly.
func lighter(a, b Node) bool {
	return int64(a.Reserved)*int64(b.Capacity) < int64(b.Reserved)*int64(a.Capacity)
}
