// Package node drives one node: it keeps the lease, follows the assignments, and
// owns one goroutine for each attempt that the node holds.
//
//	Node.Run ── monitor              handshakes with the Runtime Server
//	    └────── session              one node uid, from RegisterNode to the lease's end
//	              ├── keep           renews the lease
//	              ├── watch          receives assignments
//	              └── owner …        one a Run: drives assignment.State
//
// The session's own goroutine alone touches the map of owners. An owner ends when
// its attempt is gone; a session ends when it holds none; Run returns after both.
package node
