// Package nodes owns the leases of nodes: a pure machine that says when a node may
// be given Runs, when its promise to serve them has provably ended, and when it is
// forgotten.
//
//	               Renew               Renew
//	                ╭─╮                 ╭─╮
//	Register ─────▶ Live ───Drain────▶ Draining
//	                 │ │                │ │
//	      Supersede  │ │ Tick, Bury     │ │
//	   ╭─────────────┴─┼────────────────╯ │
//	   ▼               ▼                  │
//	 Fenced ────────▶ Lost ◀──────────────╯
//	       Tick, Bury  │ Tick, an hour later
//	                   ▼
//	                  Gone
//
// A node counts its lease from the moment at which it sent the request; this side
// from the moment at which it received it, and adds a margin for the clocks' rates.
// So the node has always stopped before Lost, and the effect HandOn, which comes
// exactly once, may give its Runs to others.
//
// Bury is word that the process is dead (its successor found its lock free): the
// lease has ended with it. Supersede is another process under the same name that
// cannot say so: the older one is no longer renewed, and its lease runs out.
//
// After a restart of the control plane nobody knows when leases were last renewed:
// Recover counts a whole one from there.
//
//hearth:machine
package nodes
