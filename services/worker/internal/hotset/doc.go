// Package hotset owns which imports a worker keeps warm: it learns from the calls'
// imports which sets are worth a zygote, from which other zygote each grows, how
// many containers stand ready before each, and what goes when memory is short. It
// is a pure machine: events with their time go in, effects come out; the supervisor
// that owns the processes carries them out and tells what came of it.
//
// A set:
//
//	         worth it, pinned, warmed          grown
//	Known ─────────────────────────▶ Growing ────────▶ Live
//	  ▲                               │  │              │  │
//	  │ rested       failed (passing) │  │ unfit        │  │ evicted, unpinned
//	Resting ◀─────────────────────────┘  ▼              │  ▼
//	  ▲                                Unfit            │ Closing ──closed──▶ Known
//	  │                                  │ warmed       │
//	  │          died                    ▼              │
//	  └──────────────────────────────  Known ◀──────────┘ (by way of Resting)
//
// Learning. Every call adds one to the count of its set, which halves each
// HalfLife. A set is a call's top-level modules without those that the root has
// anyway and without those that were found unfit: so it is the same set whatever
// harmless names stand beside them.
//
// Worth. What a set saves is its count times the import time that its calls would
// pay without it (its own, less that of the best other live set within it). What it
// costs is the memory that it added when it was grown, measured before anything was
// forked from it. Value per byte decides: a set that wants to grow may displace
// leaves that are worth less per byte by a margin, never pinned ones, never the root.
//
// Tree. A set grows from the live set within it that holds the most memory. Where
// two sets that are called share more than any live set holds, what they share
// grows first, and both grow from that. Only leaves are evicted: what an inner set
// holds, its children share. When an inner set dies, its memory counts with the
// oldest of its children.
//
// Pools. A set that is called has containers made ahead, as many as calls come in
// Cover, at most MaxPool; pinned ones and the root at least MinPool. Memory that the
// zygotes leave of the budget bounds them, most called first.
//
//hearth:machine
package hotset
