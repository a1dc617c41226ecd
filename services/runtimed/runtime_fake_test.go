package runtimed_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/proto"

	executorv1 "github.com/hearth-run/hearth/gen/executor/v1"
	"github.com/hearth-run/hearth/gen/executor/v1/executorv1connect"
	"github.com/hearth-run/hearth/internal/kit/edge"
)

// runtimeFake is a Runtime Server in memory, with the fences of the contract.
type runtimeFake struct {
	executorv1connect.UnimplementedRuntimeHandler
	executorv1connect.UnimplementedFunctionRuntimeHandler
	// ahead is how far its clock is from ours.
	ahead time.Duration

	mu sync.Mutex
	// down: nothing is answered; unfitted: there is no FunctionRuntime.
	down, unfitted bool
	registrations  map[string]*registrationFake
	// attempts are those of all registration ids that ever were.
	attempts map[string]int32
	tasks    map[string]*executorv1.StatusResponse
	// calls are what was asked, in order.
	calls []string
	next  int
	// news is closed and made anew with every call.
	news chan struct{}
	// quiet: calls are not noted.
	quiet bool
	// polls counts FunctionStatus, lists List.
	polls, lists int
	// register and invoke answer where they are set.
	register func(ctx context.Context, req *executorv1.RegisterFunctionRequest) error
	invoke   func(ctx context.Context, req *executorv1.InvokeFunctionRequest) (*executorv1.InvokeFunctionResponse, error)
	execute  func(req *executorv1.ExecuteRequest) *executorv1.StatusResponse
}

type registrationFake struct {
	id, digest, dir string
	attempt         int32
	state           executorv1.FunctionRegistrationState
	activity        int64
	inFlight        int32
	fatal           string
}

func newRuntimeFake() *runtimeFake {
	return &runtimeFake{registrations: map[string]*registrationFake{}, attempts: map[string]int32{}, tasks: map[string]*executorv1.StatusResponse{}, ahead: 1000 * time.Hour, news: make(chan struct{})}
}

func (f *runtimeFake) enter(function bool, format string, args ...any) error {
	if format != "" && !f.quiet {
		f.calls = append(f.calls, fmt.Sprintf(format, args...))
		close(f.news)
		f.news = make(chan struct{})
	}
	switch {
	case f.down:
		return edge.New(connect.CodeUnavailable, "RUNTIME_UNAVAILABLE", "down", nil)
	case f.unfitted && function:
		return edge.New(connect.CodeUnimplemented, "UNIMPLEMENTED", "no such service", nil)
	}
	return nil
}

func (f *runtimeFake) Health(context.Context, *executorv1.HealthRequest) (*executorv1.HealthResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return &executorv1.HealthResponse{Healthy: true}, f.enter(false, "")
}

func (f *runtimeFake) RegisterFunction(ctx context.Context, req *executorv1.RegisterFunctionRequest) (*executorv1.RegisterFunctionResponse, error) {
	f.mu.Lock()
	err, hook := f.enter(true, "register %s#%d", req.GetRunUid(), req.GetRegistrationAttempt()), f.register
	f.mu.Unlock()
	if err == nil && hook != nil {
		err = hook(ctx, req)
	}
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.registrations[req.GetRunUid()]
	switch {
	case r != nil && req.GetRegistrationAttempt() < r.attempt:
		return nil, edge.New(connect.CodeFailedPrecondition, "REGISTRATION_ATTEMPT_STALE", "a higher attempt is known", nil)
	case r != nil && req.GetRegistrationAttempt() == r.attempt && req.GetRegistrationDigest() != r.digest:
		return nil, edge.New(connect.CodeAlreadyExists, "REGISTRATION_DIGEST_MISMATCH", "another digest", nil)
	case r == nil || req.GetRegistrationAttempt() > r.attempt:
		f.next++
		r = &registrationFake{
			id: fmt.Sprintf("reg_%d", f.next), digest: req.GetRegistrationDigest(), dir: req.GetWorkingDir(), attempt: req.GetRegistrationAttempt(),
			state: executorv1.FunctionRegistrationState_FUNCTION_REGISTRATION_STATE_READY, activity: time.Now().Add(f.ahead).UnixNano(),
		}
		f.registrations[req.GetRunUid()], f.attempts[r.id] = r, r.attempt
	}
	return &executorv1.RegisterFunctionResponse{
		Registration: &executorv1.FunctionRegistration{RunUid: req.GetRunUid(), RegistrationId: r.id}, State: r.state,
	}, nil
}

// find returns a registration by its reference.
func (f *runtimeFake) find(ref *executorv1.FunctionRegistration) (*registrationFake, error) {
	r := f.registrations[ref.GetRunUid()]
	switch {
	case r == nil:
		return nil, edge.New(connect.CodeNotFound, "RUN_NOT_FOUND", "no registration", nil)
	case r.id != ref.GetRegistrationId():
		return nil, edge.New(connect.CodeFailedPrecondition, "REGISTRATION_STALE", "stale", nil)
	}
	return r, nil
}

func (f *runtimeFake) FunctionStatus(_ context.Context, req *executorv1.FunctionStatusRequest) (*executorv1.FunctionStatusResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.enter(true, ""); err != nil {
		return nil, err
	}
	f.polls++
	r, err := f.find(req.GetRegistration())
	if err != nil {
		return nil, err
	}
	return &executorv1.FunctionStatusResponse{
		Registration: req.GetRegistration(), State: r.state, InFlight: r.inFlight, LastActivityUnixNano: r.activity, FatalError: r.fatal,
	}, nil
}

func (f *runtimeFake) InvokeFunction(ctx context.Context, req *executorv1.InvokeFunctionRequest) (*executorv1.InvokeFunctionResponse, error) {
	f.mu.Lock()
	r, err := f.find(req.GetRegistration())
	if down := f.enter(true, "invoke %s %s", req.GetRegistration().GetRunUid(), req.GetInvocationId()); down != nil {
		err = down
	}
	hook := f.invoke
	if err == nil {
		r.inFlight, r.activity = 1, time.Now().Add(f.ahead).UnixNano()
	}
	f.mu.Unlock()
	if err != nil {
		return nil, err
	}
	defer func() {
		f.mu.Lock()
		r.inFlight, r.activity = 0, time.Now().Add(f.ahead).UnixNano()
		f.mu.Unlock()
	}()
	if hook != nil {
		return hook(ctx, req)
	}
	return &executorv1.InvokeFunctionResponse{
		Registration: req.GetRegistration(), InvocationId: cmp.Or(req.GetInvocationId(), "made-up"), Output: req.GetInput(), ContentType: req.GetContentType(),
		Outputs: map[string]string{"timeout": fmt.Sprint(req.GetTimeoutMillis())},
	}, nil
}

func (f *runtimeFake) UnregisterFunction(_ context.Context, req *executorv1.UnregisterFunctionRequest) (*executorv1.UnregisterFunctionResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	uid := req.GetRegistration().GetRunUid()
	if err := f.enter(true, "unregister %s cancel=%v", uid, req.GetCancelInFlight()); err != nil {
		return nil, err
	}
	r := f.registrations[uid]
	if r != nil && r.id != req.GetRegistration().GetRegistrationId() {
		return nil, edge.New(connect.CodeFailedPrecondition, "REGISTRATION_STALE", "stale", nil)
	}
	delete(f.registrations, uid)
	return &executorv1.UnregisterFunctionResponse{Registration: req.GetRegistration()}, nil
}

func (f *runtimeFake) Execute(_ context.Context, req *executorv1.ExecuteRequest) (*executorv1.ExecuteResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.enter(false, "execute %s", req.GetId()); err != nil {
		return nil, err
	}
	if f.tasks[req.GetId()] == nil {
		res := &executorv1.StatusResponse{State: executorv1.ExecutionState_EXECUTION_STATE_RUNNING}
		if f.execute != nil {
			res = f.execute(req)
		}
		res.Id = req.GetId()
		f.tasks[req.GetId()] = res
	}
	return &executorv1.ExecuteResponse{Id: req.GetId()}, nil
}

func (f *runtimeFake) Status(_ context.Context, req *executorv1.StatusRequest) (*executorv1.StatusResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.enter(false, ""); err != nil {
		return nil, err
	}
	if f.tasks[req.GetId()] == nil {
		return nil, edge.New(connect.CodeNotFound, "NOT_FOUND", "no such execution", nil)
	}
	return proto.CloneOf(f.tasks[req.GetId()]), nil
}

func (f *runtimeFake) List(context.Context, *executorv1.ListRequest) (*executorv1.ListResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.enter(false, ""); err != nil {
		return nil, err
	}
	f.lists++
	res := &executorv1.ListResponse{}
	for _, id := range slices.Sorted(maps.Keys(f.tasks)) {
		res.Entries = append(res.Entries, proto.CloneOf(f.tasks[id]))
	}
	return res, nil
}

func (f *runtimeFake) Cancel(_ context.Context, req *executorv1.CancelRequest) (*executorv1.CancelResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.enter(false, "cancel %s", req.GetId())
	if t := f.tasks[req.GetId()]; t != nil && err == nil && t.State == executorv1.ExecutionState_EXECUTION_STATE_RUNNING {
		t.State, t.ExitCode = executorv1.ExecutionState_EXECUTION_STATE_FAILED, 143
	}
	return &executorv1.CancelResponse{}, err
}

func (f *runtimeFake) Forget(_ context.Context, req *executorv1.ForgetRequest) (*executorv1.ForgetResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.enter(false, "forget %s", req.GetId()); err != nil {
		return nil, err
	}
	if t := f.tasks[req.GetId()]; t != nil && t.State == executorv1.ExecutionState_EXECUTION_STATE_RUNNING {
		return nil, edge.New(connect.CodeFailedPrecondition, "FAILED_PRECONDITION", "it is running", nil)
	}
	delete(f.tasks, req.GetId())
	return &executorv1.ForgetResponse{}, nil
}

// holds adds executions in a state, as something else has begun them.
func (f *runtimeFake) holds(state executorv1.ExecutionState, ids ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, id := range ids {
		f.tasks[id] = &executorv1.StatusResponse{Id: id, State: state}
	}
}

// held are the executions that there are.
func (f *runtimeFake) held() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Sorted(maps.Keys(f.tasks))
}

// set changes the fake.
func (f *runtimeFake) set(change func(f *runtimeFake)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

// asked returns what was asked so far, and forgets it.
func (f *runtimeFake) asked() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	calls := f.calls
	f.calls = nil
	return calls
}
