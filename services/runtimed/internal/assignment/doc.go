// Package assignment owns the life of one attempt of one Run on this node: a pure
// machine.
//
//	new
//	 │ start
//	 ▼         prepared, a function              registered
//	preparing ──────────────────────▶ registering ─────────▶ ready
//	 │    │ prepared, a task               │                   │
//	 │    ▼           ended                │                   │
//	 │   executing ──────────▶ reporting ──┼─ reported ──▶ forgetting ── cleaned ──▶ gone
//	 │    │                   (finished)   │                   │
//	 ▼    ▼                                ▼                   ▼
//	 fail, release, refused, fence: releasing ◀────────────── (ready only)
//	                                  │    │
//	 cleaned, failed or released      │    │ cleaned, abandoned
//	             ┌────────────────────┘    └──────────────▶ gone
//	             ▼
//	         reporting ── reported, refused, fence ───────▶ gone
//
// Whatever ends the work, it is released before anything is reported: a report
// says that nothing of the attempt is left on the node. Only a task's result is
// reported first and forgotten afterwards, so that it cannot be lost in between.
// A later release takes the place of an earlier failure that was not reported
// yet, a fence takes the place of both: who lost the lease has nothing to say.
//
//hearth:machine
package assignment
