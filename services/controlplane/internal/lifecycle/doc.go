// Package lifecycle owns how a Run moves from its creation to its end: a pure
// machine, without clock, log or I/O. State, event and time go in; the next state
// comes out, or a refusal that names state and event.
//
//	               Unplaceable
//	                 ╭──╮
//	created ──────▶ Waiting ──Place──▶ Placed ──Start──▶ Starting ──Ready──▶ Ready
//	                 ▲    ▲              │                  │                 │
//	      BackoffOver│    │first Lose,   ├──────────────────┴─────────────────┤
//	                 │    │Drain         │ Fail, Lose                         │ Drain, Cancel,
//	               Backoff◀──────────────┤                                    │ Delete, LifetimeOver
//	                 │     retryable     │ Finish                             ▼
//	 Cancel, Delete, │                   │ permanent,                     Releasing
//	    LifetimeOver │                   │ budget spent                       │ Released, Fail, Finish,
//	                 ▼                   ▼                                    │ Lose, Adopt
//	               Ended ◀────────────────────────────────────────────────────┘
//	                 │ TTLOver, Delete
//	                 ▼
//	              Removed
//
// What a user sees is the phase: Waiting and Backoff are PENDING, Placed is
// SCHEDULED, Starting is RUNNING, Ready is READY, Releasing is RUNNING (SCHEDULED
// if nothing had started), Ended is the outcome. So a Run that is READY answers
// invocations, always.
//
// A Run holds a reservation on its node in Placed, Starting, Ready and Releasing,
// and nowhere else; Effects tells its beginning and its end, each once.
//
// An attempt is fenced by its number and its node: a report that names others is
// refused with ErrFenced. An attempt that ended by a report may be reported again;
// one that ended because its node was lost may not.
//
// Two kinds of bad end of an attempt are kept apart (docs/decisions/0004-reassignment.md):
// a failure counts against the retry policy, a disruption (the node was lost or
// drained, the Runtime Server forgot the Run or could not be reached) does not.
// The first disruption in a row is answered at once, further ones with the policy's
// backoff, so that a Run that takes its node down cannot do it in a hot loop.
//
//hearth:machine
package lifecycle
