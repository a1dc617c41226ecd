// Package desk owns the calls of gateways: it finds the Run, checks every fence,
// calls the Runtime Server once, and checks the answer. It never repeats a call.
package desk

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"connectrpc.com/connect/v2"

	executorv1 "github.com/hearth-run/hearth/gen/executor/v1"
	"github.com/hearth-run/hearth/gen/executor/v1/executorv1connect"
	"github.com/hearth-run/hearth/internal/kit/edge"
	"github.com/hearth-run/hearth/internal/kit/hop"
	"github.com/hearth-run/hearth/services/runtimed/internal/clock"
	"github.com/hearth-run/hearth/services/runtimed/internal/outputs"
)

// MaxPayload bounds input and output, in bytes.
const MaxPayload = 1 << 20

// Grace is how much longer than the invocation's timeout a call waits for the
// Runtime Server's own verdict on it.
const Grace = 3 * time.Second

// Peers finds the node that serves a Run elsewhere.
type Peers interface {
	// Find returns the peer that serves the Run; ok is false where none is known.
	Find(runUID string) (p Peer, ok bool)
}

// Peer is another node, and the attempt that it serves.
type Peer struct {
	Fence  hop.Fence
	Client executorv1connect.FunctionRuntimeClient
}

// Desk serves FunctionRuntime to gateways. It has no goroutine of its own.
type Desk struct {
	table
	runtime executorv1connect.FunctionRuntimeClient
	clock   clock.Clock
	peers   Peers
	log     *slog.Logger
	// gate is the present lease; entries of an earlier one keep theirs.
	gate atomic.Pointer[Gate]
}

// New returns a desk that holds no Run. peers may be nil.
func New(runtime executorv1connect.FunctionRuntimeClient, clock clock.Clock, peers Peers, log *slog.Logger) *Desk {
	d := &Desk{runtime: runtime, clock: clock, peers: peers, log: log}
	d.gate.Store(&Gate{})
	return d
}

// Install makes gate the present one.
func (d *Desk) Install(gate *Gate) { d.gate.Store(gate) }

// Serving says whether the node's lease holds.
func (d *Desk) Serving() bool { return d.gate.Load().opened(d.clock()) }

// Put makes an entry the present one of its Run.
func (d *Desk) Put(e *Entry) {
	d.ended.drop(e.RunUID)
	d.entries.Store(e.RunUID, e)
}

// Remove forgets a Run. over: it has ended for good, and callers are told so for
// a while.
func (d *Desk) Remove(runUID string, over bool) {
	if over {
		d.ended.add(runUID)
	}
	d.entries.Delete(runUID)
}

// Knows says whether the node holds a Run, or held it to its end lately.
func (d *Desk) Knows(runUID string) bool { return d.get(runUID) != nil || d.ended.has(runUID) }

// InvokeFunction executes one invocation for a gateway or for a peer.
func (d *Desk) InvokeFunction(ctx context.Context, req *executorv1.InvokeFunctionRequest) (*executorv1.InvokeFunctionResponse, error) {
	res, err := d.invoke(ctx, req)
	if err != nil {
		return nil, Edge.Error(err, map[string]string{
			edge.RunUID: req.GetRegistration().GetRunUid(), edge.InvocationID: req.GetInvocationId(),
		})
	}
	return res, nil
}

func (d *Desk) invoke(ctx context.Context, req *executorv1.InvokeFunctionRequest) (*executorv1.InvokeFunctionResponse, error) {
	if req.GetRegistration().GetRegistrationId() != "" {
		return nil, ErrRegistrationID
	}
	if len(req.GetInput()) > MaxPayload {
		return nil, ErrInput
	}
	info, _ := connect.CallInfoForServerContext(ctx)
	fence, err := hop.Read(info.RequestHeader())
	if err != nil {
		return nil, edge.Publicf(ErrHeader, "%v", err)
	}
	entry := d.get(req.GetRegistration().GetRunUid())
	if entry == nil {
		return d.elsewhere(ctx, req, fence, info.RequestHeader())
	}
	if err := d.admit(entry, fence); err != nil {
		return nil, err
	}
	return d.call(ctx, entry, req)
}

// admit checks the triple and the lease, then whether the function answers.
func (d *Desk) admit(e *Entry, fence hop.Fence) error {
	switch {
	case fence.NodeUID != "" && fence.NodeUID != e.Gate.UID,
		fence.Attempt != 0 && fence.Attempt != e.Attempt,
		!e.Gate.opened(d.clock()):
		return ErrFenced
	case e.Standing == Preparing:
		return ErrNotReady
	case e.Standing == Draining:
		return ErrDraining
	}
	return nil
}

// call dispatches once. A process that is stopped between the check of the lease
// and the write to the socket, for longer than the lease, dispatches when it wakes:
// the contract gives the Runtime Server nothing to refuse that by. It is one call
// at most, and no other node was given it.
func (d *Desk) call(ctx context.Context, e *Entry, req *executorv1.InvokeFunctionRequest) (*executorv1.InvokeFunctionResponse, error) {
	timeout, err := d.timeout(ctx, e, req.GetTimeoutMillis())
	if err != nil {
		return nil, err
	}
	work, cancel := context.WithTimeout(ctx, timeout+Grace)
	defer cancel()
	defer context.AfterFunc(e.Work, cancel)()
	// The message is new, its bytes are shared: nobody writes to them.
	res, err := d.runtime.InvokeFunction(work, &executorv1.InvokeFunctionRequest{
		Registration:  &executorv1.FunctionRegistration{RunUid: e.RunUID, RegistrationId: e.RegistrationID},
		InvocationId:  req.GetInvocationId(),
		Input:         req.GetInput(),
		ContentType:   req.GetContentType(),
		TimeoutMillis: millis(timeout),
	})
	if err != nil {
		return nil, d.failed(ctx, e, req, err)
	}
	if err := check(res); err != nil {
		return nil, err
	}
	// The id of the registration stays here.
	res.Registration = &executorv1.FunctionRegistration{RunUid: e.RunUID}
	return res, nil
}

func (d *Desk) timeout(ctx context.Context, e *Entry, asked int64) (time.Duration, error) {
	var call, life bound
	if deadline, ok := ctx.Deadline(); ok {
		call = bound{time.Until(deadline), true}
	}
	if e.Deadline != 0 {
		life = bound{e.Deadline - d.clock(), true}
		if life.left <= 0 {
			return 0, ErrLifetime
		}
	}
	timeout := budget(asked, call, life)
	if timeout <= 0 {
		return 0, context.DeadlineExceeded
	}
	return timeout, nil
}

// failed says what became of a call that the Runtime Server did not answer well.
func (d *Desk) failed(ctx context.Context, e *Entry, req *executorv1.InvokeFunctionRequest, err error) error {
	var peer *connect.Error
	answered := errors.As(err, &peer) && peer.IsRemote()
	if ctx.Err() == nil && e.Work.Err() != nil {
		// We cut it off ourselves, after it was dispatched: no refusal, and its caller
		// must not take it for one.
		return fmt.Errorf("%w: %w: %w", ErrCut, context.Cause(e.Work), err)
	}
	if ctx.Err() != nil && !answered {
		return ctx.Err()
	}
	if !answered {
		e.Suspect()
		if connect.CodeOf(err) == connect.CodeDeadlineExceeded || errors.Is(err, context.DeadlineExceeded) {
			return context.DeadlineExceeded
		}
		return fmt.Errorf("%w: %w", ErrRuntime, err)
	}
	switch peer.Code() {
	case connect.CodeUnavailable, connect.CodeNotFound, connect.CodeFailedPrecondition, connect.CodeUnimplemented:
		e.Suspect()
	}
	return edge.Restate(err, map[string]string{edge.RunUID: e.RunUID, edge.InvocationID: req.GetInvocationId()})
}

// check holds the Runtime Server to the bounds of an answer.
func check(res *executorv1.InvokeFunctionResponse) error {
	switch {
	case len(res.GetOutput()) > MaxPayload:
		return ErrResponse
	case len(res.GetInvocationId()) == 0 || len(res.GetInvocationId()) > 128:
		return edge.Publicf(ErrAnswer, "the Runtime Server answered with an invocation id of %d bytes: 1 to 128 are allowed", len(res.GetInvocationId()))
	case len(res.GetContentType()) > 256:
		return edge.Publicf(ErrAnswer, "the Runtime Server answered with a content type of %d bytes: at most 256 are allowed", len(res.GetContentType()))
	}
	if err := outputs.Check(res.GetOutputs()); err != nil {
		return publish(err)
	}
	return nil
}

func publish(err error) error {
	for _, sentinel := range []error{outputs.ErrInvalid, outputs.ErrTooLarge} {
		if errors.Is(err, sentinel) {
			return edge.Publicf(sentinel, "%v", err)
		}
	}
	return err
}
