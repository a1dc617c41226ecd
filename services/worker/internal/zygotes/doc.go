// Package zygotes owns the zygotes of a worker while it runs: the tree of their
// processes and the containers that stand ready before each. What to keep and to
// make is package hotset's; this one carries it out and tells it what came of it.
//
//	call ──Take──▶ hotset.Choose ──▶ a container that stands ready   (POOLED)
//	                  │              a zygote to fork from           (CHECKPOINT)
//	                  │              nothing                         (COLD)
//	                  └─ effects: grow, close, fill, drop, in goroutines of their own,
//	                     off the call's path; each ends with an event back to hotset
//
// A call never waits for a zygote to grow, for a container to be made ahead, or for
// one to be taken down.
package zygotes
