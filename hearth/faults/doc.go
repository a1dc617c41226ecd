// Package faults holds the test of the promises of the functions plane: the real
// services, in synthetic time, with every process killed, cut off, frozen and
// restarted at random, against a model of what must never happen. Only user code
// is a fake, and it is the witness.
//
// The claims, each with a planted bug that a test sees caught:
//
//	acked     a create that was acknowledged is never lost
//	served    at most one node serves a Run at any instant
//	single    at most one invocation of a Run is executed at any instant
//	fenced    a stale registration ID or triple never invokes, changes or removes
//	once      an invocation ID is dispatched at most once
//	settled   once faults stop, every Run ends or is Ready and answers
//	returned  once Runs have ended, capacity comes back whole and nothing is loaded
//
// The seed of a run is printed; FAULTS_SEED repeats it, FAULTS_STEPS
// makes it longer.
package faults
