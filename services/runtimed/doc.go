// Package runtimed owns one Runtime Server on behalf of the control plane: it
// prepares sources, registers functions and executes tasks, and answers the
// invocations of gateways while its lease holds.
//
//	control plane ──assignments──▶ runtimed ──executor.v1──▶ Runtime Server
//	                ◀──reports───    ▲
//	                                 └── InvokeFunction ── gateway, peers
//
// What it promises: it serves a Run only under a lease that holds by its own
// clock, under the triple (run_uid, attempt, node_uid) that the control plane
// gave it; a call is dispatched once or not at all; a report that says an attempt
// is over is sent after nothing of it is left. What it has begun on the Runtime
// Server is written down before it is begun, so that its next process can find it
// or undo it; what is executed there and not written down, it is asked for whenever
// it was away.
package runtimed
