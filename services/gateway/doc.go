// Package gateway owns the front for invocations: the HTTP routes, InvokeService,
// and the route table that both read.
//
//	internal/route   where each Run is served: an immutable table, and the watch
//	                 that swaps it
//	internal/invoke  one invocation: look up, dispatch once, judge the answer
//	internal/logs    the log of a Run: find its node, pass its stream on
//	internal/front   how invocations come in over HTTP and how answers go out
//
// A gateway has no state that matters: any number of them may stand side by side.
package gateway
