// Package pyrunner owns the Python side of both planes: an embedded Python
// package, how it is installed and started, and (in frame, message and template)
// the Go counterpart of its protocol, held together by golden vectors.
//
// A template process does the imports once and never runs a call. Everything
// that runs calls is forked from it:
//
//	        start                load              fork
//	Go ───────────────▶ process ──────▶ template ──────────▶ child ── calls ──▶
//	                       │               ▲  │ reap            │
//	                       │ imports left  │  ▼                 ▼
//	                       ▼ threads       └─ swept ◀──── exit or SIGKILL
//	                     serve: the process itself answers; no template
//
// A template can grow another one, which begins with its imports and has surroundings
// of its own: registrations without the start of an interpreter, trees of zygotes.
//
//	template ──Grow──▶ template ──Load──▶ …   (as its child, or as its sibling)
//	    └──Enter──▶ executor in a container   (always a sibling; entry "zygote" only)
//
// A child is reseeded, leads a session of its own, adopts what its calls leave
// behind and dies with its template. What the child then does is its mode:
// "function" answers calls of one handler, "executor" runs pickled calls.
package pyrunner
