package placement

import (
	"container/list"

	"github.com/hearth-run/hearth/services/controlplane/internal/lifecycle"
)

// Queue holds the waiting Runs, first come first served in each group. It knows
// which runtimes have changed, so that a pass looks at nothing else. Its methods
// cost the same however many Runs wait. The zero value is not usable; see NewQueue.
type Queue struct {
	lines map[Group]*line
	dirty map[string]bool
	place map[string]spot
}

type line struct {
	waiting *list.List // of *Waiting
	// told is the reason that those who wait were given.
	told lifecycle.Reason
}

type spot struct {
	group   Group
	element *list.Element
}

// Waiting is one Run in the queue.
type Waiting struct {
	UID string
	// Seq orders the two groups of one runtime among each other.
	Seq int64
	// Avoid is the node of its attempt before.
	Avoid string
	// Reason is the one that the Run shows.
	Reason lifecycle.Reason
}

// NewQueue returns an empty queue.
func NewQueue() *Queue {
	return &Queue{lines: map[Group]*line{}, dirty: map[string]bool{}, place: map[string]spot{}}
}

// Add appends a Run to its group's line.
func (q *Queue) Add(g Group, w Waiting) {
	l := q.lines[g]
	if l == nil {
		l = &line{waiting: list.New()}
		q.lines[g] = l
	}
	q.place[w.UID] = spot{g, l.waiting.PushBack(&w)}
	q.dirty[g.Runtime] = true
}

// Remove takes a Run out, wherever it stands; one that is not there is no error.
func (q *Queue) Remove(uid string) {
	at, ok := q.place[uid]
	if !ok {
		return
	}
	delete(q.place, uid)
	l := q.lines[at.group]
	l.waiting.Remove(at.element)
	if l.waiting.Len() == 0 {
		delete(q.lines, at.group)
	}
}

// Told notes which reason a waiting Run shows now.
func (q *Queue) Told(uid string, r lifecycle.Reason) {
	if at, ok := q.place[uid]; ok {
		at.element.Value.(*Waiting).Reason = r
	}
}

// Wake has the next pass look at a runtime: a node of it has changed.
func (q *Queue) Wake(runtime string) { q.dirty[runtime] = true }

// Len is how many Runs wait.
func (q *Queue) Len() int { return len(q.place) }

// Verdict is why a new Run of the group would have to wait, 0 where it would not
// or where that is not known yet.
func (q *Queue) Verdict(g Group) lifecycle.Reason {
	if l := q.lines[g]; l != nil && !q.dirty[g.Runtime] {
		return l.told
	}
	return 0
}

// Decision is what to try to commit for one Run: Node is the chosen node's uid, or
// empty with the reason to wait.
type Decision struct {
	UID, Node string
	Reason    lifecycle.Reason
}

// Decide makes at most limit decisions on what nodes says of each changed runtime.
// The queue stays as it is but for its dirt: who was placed is removed by the
// caller, once that is committed. done false asks for another pass.
func (q *Queue) Decide(nodes func(runtime string) []Node, limit int) (out []Decision, done bool) {
	for runtime := range q.dirty {
		decided, finished := q.runtime(runtime, nodes(runtime), limit-len(out))
		out = append(out, decided...)
		if !finished {
			return out, false
		}
		delete(q.dirty, runtime)
	}
	return out, true
}

// runtime walks both lines of a runtime, the older head first.
func (q *Queue) runtime(name string, nodes []Node, limit int) (out []Decision, done bool) {
	a, b := q.head(Group{name, false}), q.head(Group{name, true})
	for {
		cursor := older(a, b)
		if cursor == nil {
			return out, true
		}
		if len(out) >= limit {
			return out, false
		}
		w := cursor.at.Value.(*Waiting)
		i, reason := Choose(nodes, cursor.group, w.Avoid)
		if i < 0 {
			out = append(out, q.tell(cursor, reason, limit-len(out))...)
			if cursor.at != nil {
				return out, false
			}
			continue
		}
		nodes[i].Reserved++
		out = append(out, Decision{UID: w.UID, Node: nodes[i].UID})
		cursor.at = cursor.at.Next()
	}
}

type cursor struct {
	group Group
	line  *line
	at    *list.Element
}

func (q *Queue) head(g Group) *cursor {
	l := q.lines[g]
	if l == nil {
		return &cursor{group: g}
	}
	return &cursor{group: g, line: l, at: l.waiting.Front()}
}

func older(a, b *cursor) *cursor {
	switch {
	case a.at == nil && b.at == nil:
		return nil
	case a.at == nil:
		return b
	case b.at == nil:
		return a
	case a.at.Value.(*Waiting).Seq <= b.at.Value.(*Waiting).Seq:
		return a
	}
	return b
}

// tell gives those who wait their reason. Where the line's is the same as before,
// only the newest at its end can lack it, so the walk goes from there and stops at
// the first that has it.
func (q *Queue) tell(c *cursor, reason lifecycle.Reason, limit int) (out []Decision) {
	same := c.line.told == reason
	for e := c.line.waiting.Back(); e != nil; e = e.Prev() {
		w := e.Value.(*Waiting)
		if w.Reason == reason {
			if same {
				break
			}
		} else {
			if len(out) >= limit {
				return out
			}
			out = append(out, Decision{UID: w.UID, Reason: reason})
		}
		if e == c.at {
			break
		}
	}
	c.line.told, c.at = reason, nil
	return out
}
