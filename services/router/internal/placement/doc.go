// Package placement owns where executions go: what the workers have said of
// themselves, what was promised to calls since, and the choice of a worker. It
// is a pure machine: events with their time go in, choices and effects come out;
// no clock, log, lock, goroutine or I/O. One caller at a time.
//
// A worker:
//
//	          READY            BUSY, ERROR
//	absent ─────────▶ ready ◀───────────────▶ busy, error
//	   ▲                │   takes calls only     │
//	   └────────────────┴──── when ready ────────┘
//	       REMOVED, or evicted: silent, unreachable
//
// A claim is what one container takes of a worker (memory, GPU memory, one of
// max_executors). It is counted once, wherever it stands:
//
//	          Place              a container is known
//	(nothing) ─────▶ reservation ─────────────────────▶ container's promise
//	                     │ Release                          │ the next utilization
//	                     ▼                                  ▼ report of the worker
//	                 (nothing) ◀───────────────────── part of what is reported
//	                             REMOVED, or Release
//	                             that keeps nothing
//
// A reservation is released once; a second release is told apart and does
// nothing. A call into a live container (session affinity) claims nothing but
// counts as in flight.
//
// The choice is exactly that of filtering all workers and sorting the rest, and
// costs the same at any number of them: workers stand in buckets by the power of
// two of their free memory (gpu workers of their free GPU memory too), and each
// bucket is a tournament in the order of choice. All workers of a bucket above
// the demand fit, so its winner is its answer; in the one bucket that the demand
// itself falls into, the search leaves out every branch in which nobody has
// enough.
//
//hearth:machine
package placement
