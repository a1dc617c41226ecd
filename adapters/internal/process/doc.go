// Package process owns groups of processes: each is started so that all that
// descends from it can be ended at once and is proven to be gone.
//
// Where a writable cgroup v2 hierarchy exists, a group is a cgroup: nothing that
// descends from a member can leave it, cgroup.kill ends it whole, cgroup.events
// says when it is empty. Elsewhere a group is a process group, the walk of /proc
// from its roots, and a variable (HEARTH_GROUP) by which orphans are known; a
// daemon that cleared its environment before this process looked can escape
// that, so prefer a cgroup.
//
// This process becomes a child subreaper: orphans of a group become its children
// and are reaped here, by pid and only if they belong to a group of the keeper.
// Children of other packages are never waited for.
//
// Three things end what a server leaves behind: Close, in the ordinary case; a
// guard, a small shell that waits for the end of a pipe which only the server
// holds, after kill -9 of the server; and the sweep of Open, after kill -9 of
// both.
package process
