// Package ledger owns all Runs and nodes as they are committed, and the one
// goroutine that changes them.
//
// A turn of that goroutine takes the commands that have come in, the events that
// time has brought and the placements that have become possible, applies them to an
// overlay, and commits the overlay in one transaction: many writers share one fsync.
// Only then are the view for readers, the queue, the timers and the journal brought
// up to date, and the writers answered. Where the commit fails, the overlay is
// dropped, and every writer of the turn is told so.
//
//	commands ─╮
//	timers   ─┼─▶ tx (overlay) ─▶ store.Commit ─▶ merge ─▶ view, journal, queue, timers
//	queue    ─╯                                     ╰─▶ nodes' subscriptions, answers
//
// After a start everything but the store's contents is derived again from the Runs'
// states, by the same code that follows a change.
package ledger
