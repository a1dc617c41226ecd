// Package container owns the life of one container as a pure state machine:
// what may happen to it when, and what then has to be done. The supervisor that
// owns the container carries the effects out.
//
//	           started                finished ok, session
//	Starting ───────────▶ Busy ─────────────────────────────▶ Idle
//	   │                   ▲  │                                │ │
//	   │ start failed      │  │ finished otherwise             │ │
//	   │ died, stopped     │  │ died, stopped                  │ │ idle expired
//	   ▼                   │  ▼                                │ │ died, stopped
//	Removed ◀──────────────┼──────────────────────────────────┼─┘
//	                       └──────── acquired (own session) ───┘
//
// A container serves one session or one call without a session, never two of
// either.
//
//hearth:machine
package container
