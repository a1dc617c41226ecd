package violator

import (
	"context"
	"errors"
	"time"

	"connectrpc.com/connect/v2"
	"google.golang.org/genproto/googleapis/rpc/errdetails"

	executorv1 "github.com/hearth-run/hearth/gen/executor/v1"
)

func (f functions) InvokeFunction(ctx context.Context, req *executorv1.InvokeFunctionRequest) (*executorv1.InvokeFunctionResponse, error) {
	r := f.Runtime
	if err := r.validate(req); err != nil {
		return nil, err
	}
	id := r.invocationID(req.GetInvocationId())
	g, err := r.enter(ctx, req, id)
	if err != nil {
		return nil, err
	}
	c := &call{g: g, id: id, input: req.GetInput(), contentType: req.GetContentType(), outputs: map[string]string{}}
	ctx, stop := r.bound(ctx, g, req.GetTimeoutMillis())
	defer stop()
	output, err := r.run(ctx, c, req)
	r.leave(ctx, g, err)
	if err != nil {
		return nil, r.blame(ctx, c, err)
	}
	res := &executorv1.InvokeFunctionResponse{Registration: g.ref(), InvocationId: id, Output: output, ContentType: r.contentType(output), Outputs: c.outputs}
	if r.is("invoke-without-registration") {
		res.Registration = nil
	}
	return res, nil
}

func (r *Runtime) invocationID(given string) string {
	switch {
	case given != "" && !r.is("own-invocation-id"):
		return given
	case r.is("same-generated-id"):
		return "00000000000000000000000001"
	case r.is("plain-generated-id"):
		return "invocation-" + ulid()
	}
	return ulid()
}

// enter takes the one slot of the registration.
func (r *Runtime) enter(ctx context.Context, req *executorv1.InvokeFunctionRequest, id string) (*registration, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked++
	defer func() { r.asked-- }()
	if r.is("counts-refused") {
		// Let the others in, so that somebody can see the count.
		r.mu.Unlock()
		r.await(ctx, time.Millisecond)
		r.mu.Lock()
	}
	for {
		g, err := r.find(req.GetRegistration(), id, "invoke-knows-no-stale")
		if err != nil {
			return nil, err
		}
		if err := r.admissible(g, req, id); err != nil {
			return nil, err
		}
		if r.free(g) {
			g.calls++
			r.calling++
			if !r.is("activity-not-at-start") {
				r.touch(g)
			}
			return g, nil
		}
		if !r.is("queues") {
			return nil, r.refuse(connect.CodeResourceExhausted, "INVOCATION_ACTIVE", g.uid, id, "an invocation is active")
		}
		r.mu.Unlock()
		done := r.await(ctx, time.Millisecond)
		r.mu.Lock()
		if !done {
			return nil, r.caller(ctx, g.uid, id)
		}
	}
}

// await pauses; false means that the caller or the fake is gone.
func (r *Runtime) await(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	case <-r.ctx.Done():
		return false
	}
}

func (r *Runtime) free(g *registration) bool {
	if r.is("one-call-per-server") {
		return r.calling == 0
	}
	return g.calls == 0 || r.is("lets-two-in")
}

// admissible says whether a registration in its state takes this invocation.
func (r *Runtime) admissible(g *registration, req *executorv1.InvokeFunctionRequest, id string) error {
	invalid := func(text string) error {
		return r.refuse(connect.CodeInvalidArgument, "INVALID_ARGUMENT", g.uid, id, text)
	}
	switch {
	case g.state == registering && g.previous == "":
		return r.refuse(connect.CodeFailedPrecondition, "REGISTRATION_NOT_READY", g.uid, id, "the load has not ended")
	case g.state == failed && !r.is("invokes-failed"):
		return r.refuse(connect.CodeFailedPrecondition, "REGISTRATION_FAILED", g.uid, id, "the load failed")
	case g.state == draining && !r.is("invokes-draining"):
		return r.refuse(connect.CodeFailedPrecondition, "REGISTRATION_DRAINING", g.uid, id, "draining")
	case g.state == draining:
		return r.refuse(connect.CodeResourceExhausted, "INVOCATION_ACTIVE", g.uid, id, "an invocation is active")
	case len(id) >= 128 && r.is("refuses-long-invocation-id"):
		return invalid("invocation_id: too long")
	case len(req.GetInput()) >= 1<<20 && r.is("refuses-full-input"):
		return invalid("input: too long")
	case req.GetTimeoutMillis() >= 900_000 && r.is("refuses-longest-timeout"):
		return invalid("timeout_millis: too long")
	case req.GetContentType() != "application/json" && r.is("refuses-charset"):
		return invalid("content_type: unknown")
	}
	return nil
}

// bound derives the call's context: the caller's, the timeout, and the
// registration's end.
func (r *Runtime) bound(ctx context.Context, g *registration, millis int64) (context.Context, func()) {
	if r.is("ignores-caller") {
		ctx = context.WithoutCancel(ctx)
	}
	limit := time.Duration(millis) * time.Millisecond
	switch {
	case limit <= 0 && r.is("zero-is-no-time"):
		limit = time.Nanosecond
	case limit <= 0 && r.is("zero-is-for-ever"), limit < 10*time.Millisecond && limit > 0 && r.is("short-timeouts-ignored"):
		limit = time.Hour
	case limit <= 0:
		limit = r.cfg.Invoke
	}
	ctx, cancel := context.WithCancelCause(ctx)
	unhook := context.AfterFunc(g.ctx, func() { cancel(context.Cause(g.ctx)) })
	ctx, stop := context.WithTimeout(ctx, limit)
	return ctx, func() { stop(); unhook(); cancel(nil) }
}

// leave gives the slot back.
func (r *Runtime) leave(ctx context.Context, g *registration, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	g.calls--
	r.calling--
	g.finished++
	if !r.is("activity-not-at-end") {
		r.touch(g)
	}
	r.reap(g, false, context.Cause(ctx))
	var f *failure
	switch {
	case errors.As(err, &f) && r.is("failure-is-fatal"):
		g.fatal = f.text
	case errors.As(err, &f) && f.exit != "" && r.is("exit-ends-registration"):
		g.state = failed
	case errors.Is(err, context.DeadlineExceeded) && r.is("timeout-fails-registration"):
		g.state = failed
	}
	if g.calls == 0 && g.state == draining {
		g.close()
	}
}

// blame is the error of a call that was not answered.
func (r *Runtime) blame(ctx context.Context, c *call, err error) error {
	var f *failure
	var b *bad
	switch {
	case errors.As(err, &f):
		return r.handlerError(c, f)
	case errors.As(err, &b):
		return r.refuse(b.code, b.reason, c.g.uid, c.id, b.text)
	case errors.Is(context.Cause(ctx), errSuperseded), errors.Is(context.Cause(ctx), errUnregistered):
		return r.refuse(connect.CodeCanceled, "CANCELED", c.g.uid, c.id, context.Cause(ctx).Error())
	case errors.Is(err, context.DeadlineExceeded) && r.is("timeout-is-internal"):
		return r.refuse(connect.CodeInternal, "INTERNAL", c.g.uid, c.id, "timeout")
	default:
		return r.caller(ctx, c.g.uid, c.id)
	}
}

func (r *Runtime) handlerError(c *call, f *failure) error {
	var meta []string
	if !r.is("error-without-type") {
		meta = append(meta, "type", f.kind)
	}
	if f.exit != "" && !r.is("error-without-exit-code") {
		meta = append(meta, "exit_code", f.exit)
	}
	code := connect.CodeInternal
	if r.is("failure-is-unknown") {
		code = connect.CodeUnknown
	}
	err := r.refuse(code, "HANDLER_ERROR", c.g.uid, c.id, f.text, meta...)
	var e *connect.Error
	if !errors.As(err, &e) || r.is("error-without-trace") {
		return err
	}
	trace := f.text
	for r.is("error-with-long-trace") && len(trace) < 5000 {
		trace += "\n" + f.text
	}
	return withDetail(e, &errdetails.DebugInfo{Detail: trace})
}
