package violator

import (
	"context"
	"errors"
	"strings"
	"time"

	"connectrpc.com/connect/v2"

	executorv1 "github.com/hearth-run/hearth/gen/executor/v1"
)

const (
	registering = executorv1.FunctionRegistrationState_FUNCTION_REGISTRATION_STATE_REGISTERING
	ready       = executorv1.FunctionRegistrationState_FUNCTION_REGISTRATION_STATE_READY
	draining    = executorv1.FunctionRegistrationState_FUNCTION_REGISTRATION_STATE_DRAINING
	failed      = executorv1.FunctionRegistrationState_FUNCTION_REGISTRATION_STATE_FAILED
)

// Why a registration, or a call of it, was ended.
var (
	errSuperseded   = errors.New("superseded by a higher attempt")
	errUnregistered = errors.New("unregistered")
	errLoadLimit    = errors.New("the load took too long")
)

// registration is guarded by Runtime.mu, but for what is closed or cancelled.
type registration struct {
	r       *Runtime
	uid, id string
	digest  string
	dir     string
	attempt int32
	env     map[string]string

	ctx    context.Context // done when the registration is over
	cancel context.CancelCauseFunc
	loaded chan struct{} // closed when the load has ended
	gone   chan struct{} // closed when no call is left of a draining one

	state    executorv1.FunctionRegistrationState
	fatal    string
	activity int64
	calls    int
	finished int // calls that have ended, for in-flight-never-falls
	previous string
	instance instance
}

func (g *registration) ref() *executorv1.FunctionRegistration {
	return &executorv1.FunctionRegistration{RunUid: g.uid, RegistrationId: g.id}
}

func (g *registration) end(cause error) { g.cancel(cause) }

type functions struct{ *Runtime }

func (f functions) RegisterFunction(ctx context.Context, req *executorv1.RegisterFunctionRequest) (*executorv1.RegisterFunctionResponse, error) {
	r := f.Runtime
	if err := r.validate(req); err != nil {
		return nil, err
	}
	g, err := r.admit(ctx, req)
	if err != nil {
		return nil, err
	}
	if !r.is("answers-before-load") {
		select {
		case <-g.loaded:
		case <-ctx.Done():
			if r.is("load-dies-with-caller") {
				r.drop(g, ctx.Err())
			}
			return nil, r.caller(ctx, g.uid, "")
		case <-g.ctx.Done():
			return nil, r.refuse(connect.CodeFailedPrecondition, "REGISTRATION_STALE", g.uid, "", "a higher attempt took its place")
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.registered(g)
}

func (r *Runtime) registered(g *registration) (*executorv1.RegisterFunctionResponse, error) {
	state := g.state
	switch {
	case r.is("answers-registering"):
		state = registering
	case state == failed && r.is("failed-load-is-internal"):
		delete(r.regs, g.uid)
		return nil, r.refuse(connect.CodeInternal, "INTERNAL", g.uid, "", g.fatal)
	}
	return &executorv1.RegisterFunctionResponse{Registration: g.ref(), State: state}, nil
}

// caller is the error for a caller that is gone.
func (r *Runtime) caller(ctx context.Context, uid, invocation string) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return r.refuse(connect.CodeDeadlineExceeded, "DEADLINE_EXCEEDED", uid, invocation, "the deadline passed")
	}
	return r.refuse(connect.CodeCanceled, "CANCELED", uid, invocation, "the caller went away")
}

func (r *Runtime) drop(g *registration, cause error) {
	g.end(cause)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.regs[g.uid] == g {
		delete(r.regs, g.uid)
	}
}

// admit finds the registration that the request means, or starts it.
func (r *Runtime) admit(ctx context.Context, req *executorv1.RegisterFunctionRequest) (*registration, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	uid, attempt := req.GetRunUid(), req.GetRegistrationAttempt()
	current := r.regs[uid]
	if current != nil && current.attempt == attempt {
		g, err := r.repeat(current, req)
		if g != nil || err != nil {
			return g, err
		}
	}
	if attempt < r.highest[uid] && !r.is("takes-lower-attempt") && (current != nil || !r.is("forgets-attempts")) {
		return nil, r.refuse(connect.CodeFailedPrecondition, "REGISTRATION_ATTEMPT_STALE", uid, "", "a higher attempt was seen")
	}
	if err := r.check(req); err != nil {
		return nil, err
	}
	if current != nil && current.state == failed && r.is("failed-for-ever") {
		return current, nil
	}
	if current != nil && r.is("hung-load-wedges") && current.state == registering {
		r.mu.Unlock()
		select {
		case <-current.loaded:
		case <-r.ctx.Done():
		}
		r.mu.Lock()
	}
	g := r.create(req, current)
	if current != nil && current.attempt != attempt && !r.is("higher-lets-call-run") {
		current.end(errSuperseded)
	}
	r.start(g, req.GetHandler())
	return g, nil
}

// repeat answers a request for the attempt that is there; neither value means
// that it has to start anew.
func (r *Runtime) repeat(g *registration, req *executorv1.RegisterFunctionRequest) (*registration, error) {
	same := g.digest == req.GetRegistrationDigest() || r.is("ignores-digest")
	if r.is("compares-dirs") {
		same = same && g.dir == req.GetWorkingDir()
	}
	switch {
	case !same:
		if r.is("mismatch-replaces") {
			delete(r.regs, g.uid)
		}
		return nil, r.refuse(connect.CodeAlreadyExists, "REGISTRATION_DIGEST_MISMATCH", g.uid, "", "this attempt has another digest")
	case r.is("reloads-on-repeat"), r.is("races-on-register") && g.state == registering, r.is("reloads-failed") && g.state == failed:
		return nil, nil
	case r.is("new-id-on-repeat"):
		g.id = "reg_" + ulid()
	}
	return g, nil
}

func (r *Runtime) create(req *executorv1.RegisterFunctionRequest, current *registration) *registration {
	ctx, cancel := context.WithCancelCause(r.ctx)
	g := &registration{
		r: r, uid: req.GetRunUid(), id: r.newID(req.GetRunUid()), digest: req.GetRegistrationDigest(), dir: req.GetWorkingDir(),
		attempt: req.GetRegistrationAttempt(), env: req.GetEnv(), ctx: ctx, cancel: cancel,
		loaded: make(chan struct{}), gone: make(chan struct{}), state: registering,
	}
	if current != nil && r.is("fences-after-load") {
		g.previous = current.id
	}
	r.regs[g.uid] = g
	r.highest[g.uid] = max(r.highest[g.uid], g.attempt)
	return g
}

func (r *Runtime) newID(uid string) string {
	switch {
	case r.is("long-registration-id"):
		return "reg_" + strings.Repeat(ulid(), 6)
	case r.is("bare-registration-id"):
		return ulid()
	case r.is("ids-from-uid"):
		return "reg_" + uid
	}
	return "reg_" + ulid()
}

// start loads the handler in the background.
func (r *Runtime) start(g *registration, handler string) {
	r.background(func() {
		limit := r.cfg.Load
		if r.is("no-load-limit") {
			limit = time.Hour
		}
		ctx, cancel := context.WithTimeoutCause(g.ctx, limit, errLoadLimit)
		defer cancel()
		if r.is("races-on-register") {
			r.await(ctx, 200*time.Millisecond)
		}
		fatal := load(ctx, g, handler)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.reap(g, fatal != "", context.Cause(ctx))
		r.settle(g, fatal)
		close(g.loaded)
	})
}

// settle records how a load ended.
func (r *Runtime) settle(g *registration, fatal string) {
	if fatal == "" {
		g.state = ready
		if !r.is("activity-unset-at-ready") {
			r.touch(g)
		}
		return
	}
	g.state = failed
	switch {
	case r.is("no-fatal-error"):
	case r.is("long-fatal-error"):
		g.fatal = fatal
	default:
		g.fatal = strings.ToValidUTF8(fatal[:min(len(fatal), 4096)], "")
	}
}

func (r *Runtime) touch(g *registration) {
	g.activity = max(time.Now().UnixNano(), g.activity+1)
	if r.is("activity-in-millis") {
		g.activity = time.Now().UnixMilli()
	}
}
