// Package registration owns the life of one registration: one generation of a
// function on a Runtime Server. It is pure: state, event and time in; state and
// effects, or a refusal, out.
//
//	                loaded                 invoke
//	(start) ─► Registering ───────► Ready ◄────────► Busy ──┐
//	             │   │  │             │      ended   │ │    │ unregister
//	     invalid │   │  │ failed      │              │ │    ▼
//	             │   │  └──────►┐     │         lost │ │  Draining
//	             │   │          ▼     │              │ │    │ ended, deadline,
//	             │   │        Failed ◄┼──────────────┘ │    │ unregister-now
//	             │   │          │     │                │    │
//	             │   └──────────┴─────┴─ unregister(-now), supersede, stop
//	             │                         │           │    │
//	             ▼         closed          ▼           │    │
//	           Gone ◄────────────────── Closing ◄──────┴────┘
//
// Closing waits, in this order, for what still runs (a load or an invocation,
// told to end when Closing began) and for the end of every process; then the
// registration is Gone and its Run UID is free.
//
// Which registration is the current one of a Run, and that a higher attempt
// supersedes it, is judged in fence.go.
//
//hearth:machine
package registration
