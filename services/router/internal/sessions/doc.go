// Package sessions owns which calls share a container, and their turn: the calls
// of one session run one after the other, first come, first served, in one
// container. It is a pure machine: events with their time go in, effects come out.
//
//	        Call              Pin: the first answer,
//	                          or a report of the container
//	absent ──────▶ open ─────────────────────────▶ pinned ◀─┐ Pin
//	   │            ▲ ▲                              │ │ └──┘
//	   │ Pin        │ └──────────────────────────────┘ │
//	   └───────────────▶ pinned    Unpin (ERROR)       │
//	     (relearned)│                                  │
//	                │ Done: failed                     │ Done: failed,
//	                ▼                                  ▼ Gone
//	             expired ◀─────────────────────────────┘
//	                │ after an hour, or when too many have expired since
//	                ▼
//	             absent
//
// An open session without calls is forgotten: there is nothing to remember of it.
// Expired is told, not forgotten: the state that the session had is lost, and a
// call must not begin anew without its caller knowing. What ends a session is
// taken before the turn passes on, so that no waiting call ever meets a container
// that is being destroyed; a late report of that container changes nothing.
//
//hearth:machine
package sessions
