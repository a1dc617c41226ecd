package runtimetest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"strconv"

	executorv1 "github.com/hearth-run/hearth/gen/executor/v1"
)

// Short names of what the cases speak of all the time.
type (
	registration = executorv1.FunctionRegistration
	registered   = executorv1.RegisterFunctionResponse
	invoked      = executorv1.InvokeFunctionResponse
	unregistered = executorv1.UnregisterFunctionResponse
	statusAnswer = executorv1.FunctionStatusResponse
	state        = executorv1.FunctionRegistrationState
)

const (
	stateRegistering = executorv1.FunctionRegistrationState_FUNCTION_REGISTRATION_STATE_REGISTERING
	stateReady       = executorv1.FunctionRegistrationState_FUNCTION_REGISTRATION_STATE_READY
	stateDraining    = executorv1.FunctionRegistrationState_FUNCTION_REGISTRATION_STATE_DRAINING
	stateFailed      = executorv1.FunctionRegistrationState_FUNCTION_REGISTRATION_STATE_FAILED
)

const jsonType = "application/json"

// function is one function Run as the suite plays it: the request to register it
// and the reference that the target gave.
type function struct {
	t   *T
	req *executorv1.RegisterFunctionRequest
	dir string
	ref *registration
}

// function prepares a Run with a working directory of its own and registers
// nothing.
func (t *T) function(behaviour string) *function {
	uid := name("run")
	dir := t.path(uid)
	t.must(t.target.Fixtures.copyTo(dir))
	f := &function{t: t, dir: dir, req: &executorv1.RegisterFunctionRequest{
		RunUid:              uid,
		RegistrationAttempt: 1,
		WorkingDir:          dir,
		Handler:             t.target.Fixtures.Manifest.Handlers[behaviour],
		RegistrationDigest:  digest(uid, behaviour),
	}}
	t.cleanups = append(t.cleanups, f.discard)
	return f
}

// ready registers a function that has to become READY.
func (t *T) ready(behaviour string) *function {
	f := t.function(behaviour)
	f.becomeReady()
	return f
}

func digest(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		h.Write([]byte(p + "\x00"))
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// attempt returns the same Run with another attempt and behaviour, not yet
// registered.
func (f *function) attempt(n int32, behaviour string) *function {
	next := &function{t: f.t, dir: f.dir, req: &executorv1.RegisterFunctionRequest{
		RunUid:              f.req.GetRunUid(),
		RegistrationAttempt: n,
		WorkingDir:          f.dir,
		Handler:             f.t.target.Fixtures.Manifest.Handlers[behaviour],
		Env:                 maps.Clone(f.req.GetEnv()),
		RegistrationDigest:  digest(f.req.GetRunUid(), behaviour, strconv.Itoa(int(n))),
	}}
	f.t.cleanups = append(f.t.cleanups, next.discard)
	return next
}

// discard unregisters what is left, whatever the answer.
func (f *function) discard(ctx context.Context) {
	if f.ref.GetRegistrationId() == "" {
		return
	}
	_, _ = f.t.functions.UnregisterFunction(ctx, &executorv1.UnregisterFunctionRequest{Registration: f.ref, CancelInFlight: true})
}

func (f *function) beginRegister() *pending[*registered] {
	return begin(f.t, func(ctx context.Context) (*registered, error) { return f.t.functions.RegisterFunction(ctx, f.req) })
}

func (f *function) register() (*registered, error) {
	res, err := f.beginRegister().wait(f.t)
	if err == nil {
		f.ref = res.GetRegistration()
	}
	return res, err
}

// becomes registers and fails the case unless the state is want.
func (f *function) becomes(want state) {
	res, err := f.register()
	f.t.ok(err, "RegisterFunction")
	if res.GetState() == want {
		return
	}
	seen := res.GetState().String()
	if s, err := f.t.status(f.ref); err == nil && s.GetFatalError() != "" {
		seen += ", fatal_error " + clip([]byte(s.GetFatalError()))
	}
	f.t.fail("RegisterFunction to answer "+want.String(), "%s", seen)
}

func (f *function) becomeReady() { f.becomes(stateReady) }

// stranger is a reference that the target never gave for this Run.
func (f *function) stranger() *registration {
	return &registration{RunUid: f.req.GetRunUid(), RegistrationId: "reg_01HZZZZZZZZZZZZZZZZZZZZZZZ"}
}

func (t *T) status(ref *registration) (*statusAnswer, error) {
	return call(t, t.functions.FunctionStatus, &executorv1.FunctionStatusRequest{Registration: ref})
}

// status reads the status, which has to be given.
func (f *function) status() *statusAnswer {
	res, err := f.t.status(f.ref)
	f.t.ok(err, "FunctionStatus with the current ID")
	return res
}

func (t *T) beginInvoke(req *executorv1.InvokeFunctionRequest) *pending[*invoked] {
	return begin(t, func(ctx context.Context) (*invoked, error) { return t.functions.InvokeFunction(ctx, req) })
}

// request is an invocation with a JSON payload.
func (f *function) request(payload any) *executorv1.InvokeFunctionRequest {
	data, err := json.Marshal(payload)
	f.t.must(err)
	return &executorv1.InvokeFunctionRequest{Registration: f.ref, Input: data, ContentType: jsonType}
}

func (f *function) begin(payload any) *pending[*invoked] { return f.t.beginInvoke(f.request(payload)) }

func (f *function) invoke(payload any) (*invoked, error) { return f.begin(payload).wait(f.t) }

// send invokes with raw bytes.
func (f *function) send(input []byte) (*invoked, error) {
	return f.t.beginInvoke(&executorv1.InvokeFunctionRequest{Registration: f.ref, Input: input, ContentType: jsonType}).wait(f.t)
}

// answers fails the case unless a call succeeds and answers want as JSON.
func (f *function) answers(payload any, want string) *invoked {
	res, err := f.invoke(payload)
	f.t.ok(err, "the invocation")
	f.t.answered(res, want)
	return res
}

// answered fails the case unless the output is the JSON text want.
func (t *T) answered(res *invoked, want string) {
	t.check(sameJSON(res.GetOutput(), []byte(want)), "the output "+clip([]byte(want)), "%s", clip(res.GetOutput()))
}

func sameJSON(a, b []byte) bool {
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return false
	}
	p, err := json.Marshal(x)
	q, qerr := json.Marshal(y)
	return err == nil && qerr == nil && string(p) == string(q)
}

func clip(b []byte) string {
	if len(b) > 80 {
		return strconv.Quote(string(b[:80])) + "… (" + strconv.Itoa(len(b)) + " bytes)"
	}
	return strconv.Quote(string(b))
}

// hold starts an invocation of a holding fixture and returns once user code runs.
func (f *function) hold(tag string) *pending[*invoked] { return f.holdWith(f.request(tag), tag) }

func (f *function) holdWith(req *executorv1.InvokeFunctionRequest, tag string) *pending[*invoked] {
	p := f.t.beginInvoke(req)
	f.t.eventually("the handler to start", func() bool {
		if p.ended() && !f.there("started-"+tag) {
			f.t.fail("the handler to start", "the call ended: %s", verdict(p.err))
		}
		return f.there("started-" + tag)
	})
	return p
}

// idle waits until no invocation is in flight.
func (f *function) idle() {
	f.t.eventually("in_flight to become 0", func() bool { return f.status().GetInFlight() == 0 })
}

func (t *T) beginUnregister(req *executorv1.UnregisterFunctionRequest) *pending[*unregistered] {
	return begin(t, func(ctx context.Context) (*unregistered, error) { return t.functions.UnregisterFunction(ctx, req) })
}

// beginDrain starts an unregister that waits, with a timeout in milliseconds.
func (f *function) beginDrain(millis int64) *pending[*unregistered] {
	return f.t.beginUnregister(&executorv1.UnregisterFunctionRequest{Registration: f.ref, DrainTimeoutMillis: millis})
}

// unregister cancels at once.
func (f *function) unregister() error {
	_, err := f.t.beginUnregister(&executorv1.UnregisterFunctionRequest{Registration: f.ref, CancelInFlight: true}).wait(f.t)
	return err
}

// state waits until the status says want.
func (f *function) reaches(want state) {
	f.t.eventually("FunctionStatus to say "+want.String(), func() bool { return f.status().GetState() == want })
}

// plainRegister is a request of good form that registers nothing real.
func (t *T) plainRegister() *executorv1.RegisterFunctionRequest {
	return &executorv1.RegisterFunctionRequest{
		RunUid: name("run"), RegistrationAttempt: 1, WorkingDir: t.root, Handler: "a.b", RegistrationDigest: digest("plain"),
	}
}
