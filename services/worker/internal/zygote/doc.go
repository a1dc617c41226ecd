// Package zygote owns one template process of the worker's: imports done, nothing run,
// forked once for each container that begins with them.
//
//	Start ─▶ root ──Grow(modules)──▶ zygote ──Grow(modules)──▶ …
//	           │                        │
//	           │                        └─ *UnfitError: never was one
//	         Enter(container) ─▶ fork ─▶ walls ─▶ executor
//
// Every process here, grown ones and those in containers included, is a child of the
// driver's one thread, as the first processes of cold containers are: each dies with
// the worker and with nobody else, and is reaped by it. A zygote that ends, however,
// takes nothing along: its containers and what grew from it live on.
package zygote
