// Package invoke owns one invocation: find the Run in the route table, dispatch
// once to the node that serves it, judge what came back. Nothing here is ever
// repeated after dispatch.
package invoke

import (
	"context"
	"fmt"
	"time"

	"connectrpc.com/connect/v2"
	"github.com/oklog/ulid/v2"

	executorv1 "github.com/hearth-run/hearth/gen/executor/v1"
	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/gen/hearth/v1/hearthv1connect"
	"github.com/hearth-run/hearth/internal/kit/edge"
	"github.com/hearth-run/hearth/internal/kit/hop"
	"github.com/hearth-run/hearth/services/gateway/internal/route"
)

// Grace is how long after an invocation's deadline its node may still answer: it
// ends the function first, so that the caller of the next invocation, who has
// seen this one time out, does not find it still active.
const Grace = time.Second

// Limits bound an invocation.
type Limits struct {
	// Default and Most are the time of an invocation that asks for none, and the
	// longest that may be asked for.
	Default, Most time.Duration
	// Look is the time for the second look at the control plane.
	Look time.Duration
	// Settle is how long a call waits for a Run whose node is starting it.
	Settle time.Duration
}

// Call is one invocation, its shape checked.
type Call struct {
	Namespace, Name string
	// RunUID is a fence; empty: whichever Run has the name.
	RunUID string
	// InvocationID is at most 128 bytes of printable ASCII; empty: made up.
	InvocationID string
	// Input is at most 1 MiB and must not be touched again.
	Input       []byte
	ContentType string
	// Timeout is 0 for the default.
	Timeout time.Duration
	// Traceparent is passed on as it is.
	Traceparent string
}

// Answer is what a function returned.
type Answer struct {
	RunUID, InvocationID string
	Output               []byte
	ContentType          string
	Outputs              map[string]string
}

// Invoker makes invocations. Safe for concurrent use; it holds no lock.
type Invoker struct {
	limits  Limits
	book    *route.Book
	control hearthv1connect.RouteServiceClient
}

// New returns an invoker that reads routes from book, and asks control only for
// the second look.
func New(limits Limits, book *route.Book, control hearthv1connect.RouteServiceClient) *Invoker {
	return &Invoker{limits: limits, book: book, control: control}
}

// Do makes one invocation. An error has its code, reason and text for the wire.
func (i *Invoker) Do(ctx context.Context, call Call) (Answer, error) {
	if call.InvocationID == "" {
		call.InvocationID = ulid.Make().String()
	}
	found, err := i.find(ctx, call)
	if err != nil {
		return Answer{}, verdicts.Error(err, facts(call, known(found, call)))
	}
	timeout, err := i.timeout(ctx, call.Timeout)
	if err != nil {
		return Answer{}, verdicts.Error(err, facts(call, found.RunUID))
	}
	answer, err := dispatch(ctx, call, found, timeout)
	if err != nil {
		return Answer{}, i.judge(ctx, call, found, err)
	}
	return answer, nil
}

// find returns a route that can be dispatched to. Who was told by the control
// plane that a Run is ready can be here before the watch is: so a call waits for
// a moment where the Run's node is about to finish starting it.
func (i *Invoker) find(ctx context.Context, call Call) (*route.Route, error) {
	r, err := i.look(call)
	if err == nil || r == nil || !starting(r.Phase) {
		return r, err
	}
	ctx, cancel := context.WithTimeout(ctx, i.limits.Settle)
	defer cancel()
	for {
		changed := i.book.Changed()
		if r, err = i.look(call); err == nil {
			return r, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return r, err
		}
	}
}

// starting says that a node has the Run, and may have said more by now: of a quick
// start it says only the end.
func starting(phase hearthv1.RunPhase) bool {
	return phase == hearthv1.RunPhase_RUN_PHASE_SCHEDULED || phase == hearthv1.RunPhase_RUN_PHASE_RUNNING
}

// look reads the table once.
func (i *Invoker) look(call Call) (*route.Route, error) {
	// The order counts: a table that becomes whole between the two reads was
	// whole when it was read.
	whole := i.book.Complete()
	r := i.book.Table().Lookup(call.Namespace, call.Name)
	if r == nil && !whole {
		return nil, ErrStarting
	}
	return r, check(r, call)
}

func (i *Invoker) timeout(ctx context.Context, asked time.Duration) (time.Duration, error) {
	if asked < 0 || asked > i.limits.Most {
		return 0, edge.Publicf(ErrTimeout, "timeout of %d ms: want 0 (the default, %d ms) to %d ms",
			asked.Milliseconds(), i.limits.Default.Milliseconds(), i.limits.Most.Milliseconds())
	}
	if asked == 0 {
		asked = i.limits.Default
	}
	if deadline, ok := ctx.Deadline(); ok {
		asked = min(asked, time.Until(deadline))
	}
	if asked <= 0 {
		return 0, context.DeadlineExceeded
	}
	return asked, nil
}

// dispatch is the one call of the node.
func dispatch(ctx context.Context, call Call, r *route.Route, timeout time.Duration) (Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout+Grace)
	defer cancel()
	ctx, info := connect.NewClientContext(ctx)
	hop.Fence{Attempt: r.Attempt, NodeUID: r.NodeUID}.Write(info.RequestHeader())
	if call.Traceparent != "" {
		info.RequestHeader().Set(hop.Traceparent, call.Traceparent)
	}
	res, err := r.Node.InvokeFunction(ctx, &executorv1.InvokeFunctionRequest{
		Registration:  &executorv1.FunctionRegistration{RunUid: r.RunUID},
		InvocationId:  call.InvocationID,
		Input:         call.Input,
		ContentType:   call.ContentType,
		TimeoutMillis: max(timeout.Milliseconds(), 1),
	})
	if err != nil {
		return Answer{}, fmt.Errorf("invoke run %s on node %s: %w", r.RunUID, r.NodeUID, err)
	}
	return Answer{
		RunUID:       r.RunUID,
		InvocationID: call.InvocationID,
		Output:       res.GetOutput(),
		ContentType:  res.GetContentType(),
		Outputs:      res.GetOutputs(),
	}, nil
}

// known is the UID of the Run that a refused call was meant for.
func known(r *route.Route, call Call) string {
	if call.RunUID == "" && r != nil {
		return r.RunUID
	}
	return call.RunUID
}

func facts(call Call, uid string) map[string]string {
	return map[string]string{edge.RunUID: uid, edge.InvocationID: call.InvocationID}
}
