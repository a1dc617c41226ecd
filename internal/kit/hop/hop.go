// Package hop owns the headers that calls carry from one Hearth service to the
// next. The contract's messages have no room for them: they say for whom a call
// is meant, not what it asks.
package hop

import (
	"fmt"
	"strconv"

	"connectrpc.com/connect/v2"
)

// Headers of a hop from a gateway to runtimed, and from runtimed to its peer.
const (
	// Attempt is the attempt of the Run that the caller's route named, in decimal.
	Attempt = "Hearth-Attempt"
	// NodeUID is the node that the caller's route named.
	NodeUID = "Hearth-Node-Uid"
	// Forwarded is set by a runtimed that passes a call on to a peer, with its own
	// node uid. Whoever receives it serves the call or refuses it, and never
	// passes it on again.
	Forwarded = "Hearth-Hop"
	// Traceparent is passed on as it came (W3C Trace Context).
	Traceparent = "Traceparent"
)

// Fence is the part of the triple (run_uid, attempt, node_uid) that travels
// beside the message, which has the run_uid. A receiver that is not this node,
// or does not hold this attempt, refuses with FailedPrecondition, NODE_FENCED.
type Fence struct {
	// Attempt is from 1; 0 where the caller knows no attempt.
	Attempt int32
	// NodeUID is empty where the caller knows no node.
	NodeUID string
}

// Write puts the fence into the headers of a call.
func (f Fence) Write(h *connect.Header) {
	if f.Attempt != 0 {
		h.Set(Attempt, strconv.FormatInt(int64(f.Attempt), 10))
	}
	if f.NodeUID != "" {
		h.Set(NodeUID, f.NodeUID)
	}
}

// Read returns the fence of a call; headers that are absent leave zero values.
// Errors: an attempt that is not a whole number from 1 to 2 147 483 647.
func Read(h *connect.Header) (Fence, error) {
	f := Fence{NodeUID: h.Get(NodeUID)}
	text := h.Get(Attempt)
	if text == "" {
		return f, nil
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 1 {
		return Fence{}, fmt.Errorf("header %s is %q: want a whole number from 1 to 2147483647", Attempt, text)
	}
	f.Attempt = int32(n)
	return f, nil
}
