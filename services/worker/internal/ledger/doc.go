// Package ledger owns what a worker has given out: containers and memory, each
// reservation taken back exactly once, and how far one may grow. It is pure: its
// owner holds the lock.
//
//hearth:machine
package ledger
