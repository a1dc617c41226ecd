package placement

import (
	"fmt"
	"slices"
	"testing"

	"github.com/hearth-run/hearth/services/controlplane/internal/lifecycle"
)

func TestChoose(t *testing.T) {
	node := func(uid string, reserved, capacity int) Node {
		return Node{UID: uid, Runtime: "python", Functions: true, Live: true, Reserved: reserved, Capacity: capacity}
	}
	dead, deaf, other := node("dead", 0, 9), node("deaf", 0, 9), node("other", 0, 9)
	dead.Live, deaf.Functions, other.Runtime = false, false, "bash"
	for _, tc := range []struct {
		name   string
		nodes  []Node
		avoid  string
		want   int
		reason lifecycle.Reason
	}{
		{"none", nil, "", -1, lifecycle.NoNode},
		{"another runtime", []Node{other}, "", -1, lifecycle.NoNode},
		{"not live", []Node{dead}, "", -1, lifecycle.NoNode},
		{"no functions", []Node{dead, deaf}, "", -1, lifecycle.ModeUnsupported},
		{"full", []Node{deaf, node("a", 2, 2)}, "", -1, lifecycle.NoCapacity},
		{"full, then deaf", []Node{node("a", 2, 2), deaf}, "", -1, lifecycle.NoCapacity},
		{"least loaded by share", []Node{node("a", 1, 2), node("b", 2, 8), node("c", 3, 9)}, "", 1, 0},
		{"tie", []Node{node("a", 1, 4), node("b", 2, 8)}, "", 0, 0},
		{"avoid", []Node{node("a", 0, 4), node("b", 3, 4)}, "a", 1, 0},
		{"nothing else", []Node{node("a", 0, 4), node("b", 4, 4)}, "a", 0, 0},
	} {
		got, reason := Choose(tc.nodes, Group{Runtime: "python"}, tc.avoid)
		if got != tc.want || reason != tc.reason {
			t.Errorf("%s: %d %v, want %d %v", tc.name, got, reason, tc.want, tc.reason)
		}
	}
}

// commit does what the ledger does with decisions.
func commit(q *Queue, decisions []Decision) (words []string) {
	for _, d := range decisions {
		if d.Node != "" {
			q.Remove(d.UID)
		} else {
			q.Told(d.UID, d.Reason)
		}
		words = append(words, fmt.Sprintf("%s %s%s", d.UID, d.Node, map[bool]string{true: d.Reason.String()}[d.Node == ""]))
	}
	return words
}

func TestQueue(t *testing.T) {
	q, function, task := NewQueue(), Group{"python", false}, Group{"python", true}
	nodes := []Node{{UID: "n", Runtime: "python", Functions: true, Tasks: true, Live: true, Capacity: 2}}
	see := func(string) []Node { return slices.Clone(nodes) }
	expect := func(limit int, done bool, want ...string) {
		t.Helper()
		decisions, finished := q.Decide(see, limit)
		if got := commit(q, decisions); !slices.Equal(got, want) || finished != done {
			t.Errorf("%v %v, want %v %v", got, finished, want, done)
		}
	}
	expect(9, true)
	q.Add(function, Waiting{UID: "f1", Seq: 1})
	q.Add(task, Waiting{UID: "t2", Seq: 2})
	q.Add(function, Waiting{UID: "f3", Seq: 3})
	expect(9, true, "f1 n", "t2 n", "f3 NO_CAPACITY")
	nodes[0].Reserved = 2
	expect(9, true)
	if q.Verdict(function) != lifecycle.NoCapacity || q.Verdict(task) != 0 {
		t.Error("verdicts", q.Verdict(function), q.Verdict(task))
	}
	// Only who does not know yet is told again.
	q.Add(function, Waiting{UID: "f4", Seq: 4})
	expect(9, true, "f4 NO_CAPACITY")
	// The reason changes for all, in bounded passes.
	nodes[0].Live = false
	q.Wake("python")
	expect(1, false, "f4 NO_NODE")
	expect(1, true, "f3 NO_NODE")
	// First come, first served.
	nodes[0] = Node{UID: "m", Runtime: "python", Functions: true, Live: true, Capacity: 1}
	q.Wake("python")
	expect(9, true, "f3 m", "f4 NO_CAPACITY")
	q.Remove("f4")
	q.Remove("f4")
	if q.Len() != 0 || len(q.lines) != 0 {
		t.Error("something is left")
	}
}
