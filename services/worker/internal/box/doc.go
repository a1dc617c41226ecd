// Package box owns one container each: the sandbox, the executor in it and the
// goroutine that owns both. What may happen when is package container's; a box
// carries it out.
//
// A call holds a box from Acquire to Finish. The executor is talked to over a
// control socket that lives as long as the container (what it prints, packages it
// asks for) and one connection a call.
package box
