package violator

import (
	"context"
	"time"

	"connectrpc.com/connect/v2"

	executorv1 "github.com/hearth-run/hearth/gen/executor/v1"
)

// find returns the registration that ref names. lax is the switch with which a
// stale ID is as good as the current one. The caller holds mu.
func (r *Runtime) find(ref *executorv1.FunctionRegistration, invocation, lax string) (*registration, error) {
	uid, id := ref.GetRunUid(), ref.GetRegistrationId()
	if id == "" && !r.is("takes-empty-id") && (ref != nil || !r.is("takes-no-registration")) {
		return nil, r.refuse(connect.CodeInvalidArgument, "INVALID_ARGUMENT", uid, invocation, "registration_id: empty")
	}
	g := r.regs[uid]
	if g == nil || (g.state == registering && r.is("loading-is-absent")) {
		if r.is("absent-is-stale") {
			return nil, r.refuse(connect.CodeFailedPrecondition, "REGISTRATION_STALE", uid, invocation, "no registration")
		}
		return nil, r.refuse(connect.CodeNotFound, "RUN_NOT_FOUND", uid, invocation, "no registration of this Run")
	}
	switch {
	case id == g.id, id == "", r.is(lax), id == g.previous && g.state == registering, r.is("ids-of-any-run") && r.anywhere(id):
		return g, nil
	}
	return nil, r.refuse(connect.CodeFailedPrecondition, "REGISTRATION_STALE", uid, invocation, "this registration was replaced")
}

func (r *Runtime) anywhere(id string) bool {
	for _, g := range r.regs {
		if g.id == id {
			return true
		}
	}
	return false
}

func (f functions) FunctionStatus(_ context.Context, req *executorv1.FunctionStatusRequest) (*executorv1.FunctionStatusResponse, error) {
	r := f.Runtime
	if err := r.validate(req); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	g, err := r.find(req.GetRegistration(), "", "status-knows-no-stale")
	if err != nil {
		return nil, err
	}
	if g.state == draining && r.is("draining-status-refused") {
		return nil, r.refuse(connect.CodeFailedPrecondition, "REGISTRATION_DRAINING", g.uid, "", "draining")
	}
	if r.is("status-is-activity") {
		r.touch(g)
	}
	res := &executorv1.FunctionStatusResponse{Registration: g.ref(), State: g.state, InFlight: int32(g.calls), LastActivityUnixNano: g.activity, FatalError: g.fatal}
	switch {
	case r.is("status-without-registration"):
		res.Registration = nil
	case r.is("in-flight-always-zero"):
		res.InFlight = 0
	case r.is("in-flight-never-falls"):
		res.InFlight += int32(g.finished)
	case r.is("counts-refused"):
		res.InFlight += int32(r.asked)
	}
	return res, nil
}

func (f functions) UnregisterFunction(ctx context.Context, req *executorv1.UnregisterFunctionRequest) (*executorv1.UnregisterFunctionResponse, error) {
	r := f.Runtime
	if err := r.validate(req); err != nil {
		return nil, err
	}
	g, err := r.retire(req)
	if err != nil {
		return nil, err
	}
	res := &executorv1.UnregisterFunctionResponse{Registration: req.GetRegistration()}
	if r.is("unregister-without-registration") {
		res.Registration = nil
	}
	if g == nil {
		return res, nil
	}
	r.drain(ctx, g, req)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.regs[g.uid] == g && !r.is("unregister-keeps") {
		delete(r.regs, g.uid)
	}
	g.end(errUnregistered)
	r.reap(g, true, errUnregistered)
	return res, nil
}

// retire makes the registration drain; nil without an error is an absent one.
func (r *Runtime) retire(req *executorv1.UnregisterFunctionRequest) (*registration, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	ref := req.GetRegistration()
	if ref.GetRegistrationId() != "" && r.regs[ref.GetRunUid()] == nil && !r.is("absent-unregister-refused") {
		return nil, nil
	}
	g, err := r.find(ref, "", "unregister-knows-no-stale")
	switch {
	case err != nil:
		return nil, err
	case g.state == failed && r.is("failed-cannot-go"):
		return nil, r.refuse(connect.CodeFailedPrecondition, "REGISTRATION_FAILED", g.uid, "", "failed")
	case g.state == draining && r.is("refused-during-drain"):
		return nil, r.refuse(connect.CodeFailedPrecondition, "REGISTRATION_DRAINING", g.uid, "", "draining")
	}
	g.state = draining
	if g.calls == 0 {
		g.close()
	}
	return g, nil
}

// close says that no call is left; the caller holds mu.
func (g *registration) close() {
	select {
	case <-g.gone:
	default:
		close(g.gone)
	}
}

// drain waits for the calls of g as long as the request says, then cancels them.
func (r *Runtime) drain(ctx context.Context, g *registration, req *executorv1.UnregisterFunctionRequest) {
	limit := time.Duration(req.GetDrainTimeoutMillis()) * time.Millisecond
	switch {
	case limit <= 0 && r.is("zero-drain-is-for-ever"), limit > 0 && r.is("drains-for-ever"):
		limit = time.Hour
	case limit <= 0 && r.is("zero-drain-is-no-time"):
		limit = time.Nanosecond
	case limit <= 0:
		limit = r.cfg.Drain
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	if (!req.GetCancelInFlight() || r.is("cancel-waits")) && !r.is("drain-cancels") {
		select {
		case <-g.gone:
		case <-timer.C:
		case <-r.ctx.Done():
		case <-ctx.Done(): // the fake's callers only leave when the test is over
		}
	}
	g.end(errUnregistered)
	select {
	case <-g.gone:
	case <-r.ctx.Done():
	}
}
