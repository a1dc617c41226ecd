// Package lease owns the judgement whether a node may serve: a pure machine.
//
//	vacant ── grant ──▶ held ── grant ──▶ held
//	   │                 │
//	   │ grant (late)    │ tick at the deadline, grant after it, refuse
//	   ▼                 ▼
//	  lost ◀─────────────┘
//
// A lease is counted from the moment at which its request was sent, by the
// node's own clock; the control plane counts from the moment at which the
// request arrived, and adds a margin. So the node stops first, whatever the
// network does. A lease that has run out never comes back: an answer that
// arrives after the deadline is refused, for the control plane may have given
// the Runs away in between.
//
//hearth:machine
package lease
