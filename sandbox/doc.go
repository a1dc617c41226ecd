// Package sandbox owns the words for walls around a process: what a container is
// asked to be (Spec), what can be done with it (Container), and what a driver is
// (Driver). It builds no wall itself: drivers are sub-packages (process; gvisor to
// come), and sandboxtest is the suite that every one of them passes.
//
// A container goes through four states, in this order and never back:
//
//	Create ──▶ created ──Start──▶ running ──(ends, or Kill)──▶ ended ──Destroy──▶ gone
//	             │                   │                           ▲
//	             └──────Destroy──────┴──────────Destroy──────────┘
//
// Destroy is right in every state and kills first. Kill and Destroy may be repeated,
// also at the same time; each returns only once it is proven that no process is left.
package sandbox
