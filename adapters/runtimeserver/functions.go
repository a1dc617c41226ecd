package runtimeserver

import (
	"context"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/hearth-run/hearth/adapters/runtimeserver/internal/registration"
	executorv1 "github.com/hearth-run/hearth/gen/executor/v1"
	"github.com/hearth-run/hearth/internal/kit/edge"
)

// functions serves executor.v1.FunctionRuntime.
type functions struct{ *Server }

// RegisterFunction creates or resumes a registration and waits for its load.
func (s *functions) RegisterFunction(ctx context.Context, req *executorv1.RegisterFunctionRequest) (*executorv1.RegisterFunctionResponse, error) {
	o, err := s.register(ctx, req)
	if err != nil {
		return nil, table.Error(err, map[string]string{edge.RunUID: req.GetRunUid()})
	}
	return &executorv1.RegisterFunctionResponse{Registration: o.reference(), State: wire(o.snapshot().Phase)}, nil
}

// register finds or makes the registration and waits until its load has ended.
func (s *functions) register(ctx context.Context, req *executorv1.RegisterFunctionRequest) (*owner, error) {
	if err := s.admit(ctx); err != nil {
		return nil, err
	}
	wanted := registration.Identity{Attempt: req.GetRegistrationAttempt(), Digest: req.GetRegistrationDigest()}
	if wanted.Attempt < 1 {
		return nil, edge.Publicf(errArgument, "registration_attempt is %d; attempts count from 1", wanted.Attempt)
	}
	o, err := s.lookUp(req.GetRunUid(), wanted)
	if err != nil {
		return nil, err
	}
	if o == nil {
		f, err := s.function(req)
		if err != nil {
			return nil, err
		}
		if o, err = s.commit(wanted, f, req.GetEnv()); err != nil {
			return nil, err
		}
	}
	select {
	case <-o.answered:
		return o, o.registerErr
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// lookUp returns the registration that a call joins, nil when one is to be made.
func (s *Server) lookUp(run string, wanted registration.Identity) (*owner, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, o, err := s.judge(run, wanted)
	return o, err
}

// judge asks the fence, with the lock held.
func (s *Server) judge(run string, wanted registration.Identity) (before, join *owner, err error) {
	o := s.runs[run]
	var current registration.Identity
	var phase registration.Phase
	if o != nil {
		current, phase = o.identity, o.snapshot().Phase
	}
	switch registration.Judge(wanted, current, phase, s.attempts.Highest(run, time.Now())) {
	case registration.Stale:
		return nil, nil, errAttemptStale
	case registration.Mismatch:
		return nil, nil, errDigest
	case registration.BeingEnded:
		return nil, nil, errDraining
	case registration.Join:
		return nil, o, nil
	default:
		return o, nil, nil
	}
}

// function checks everything that can be checked before user code runs.
func (s *Server) function(req *executorv1.RegisterFunctionRequest) (Function, error) {
	dir, err := resolveDir(s.root, req.GetWorkingDir())
	if err != nil {
		return Function{}, err
	}
	if err := checkEnv(req.GetEnv()); err != nil {
		return Function{}, err
	}
	if err := s.language.Resolve(dir, req.GetHandler()); err != nil {
		return Function{}, err
	}
	return Function{RunUID: req.GetRunUid(), Attempt: req.GetRegistrationAttempt(), Dir: dir, Handler: req.GetHandler()}, nil
}

// commit makes the registration, unless the world has changed since it was
// judged; then the new judgement counts. A predecessor is fenced at once.
func (s *Server) commit(wanted registration.Identity, f Function, env map[string]string) (*owner, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, join, err := s.judge(f.RunUID, wanted)
	if err != nil || join != nil {
		return join, err
	}
	if before == nil && len(s.runs) >= s.cfg.MaxRegistrations {
		return nil, edge.Publicf(errFull, "%d functions are registered, the most this Runtime Server takes", len(s.runs))
	}
	f.RegistrationID = "reg_" + ulid.Make().String()
	o := newOwner(s, wanted, f, env, before)
	if !s.begin(o.run) {
		return nil, errStopping
	}
	s.runs[f.RunUID] = o
	s.attempts.Note(f.RunUID, wanted.Attempt, time.Now())
	return o, nil
}

// current finds the registration that a reference names.
func (s *Server) current(ref *executorv1.FunctionRegistration) (*owner, error) {
	if ref.GetRunUid() == "" || ref.GetRegistrationId() == "" {
		return nil, edge.Publicf(errArgument, "registration needs run_uid and registration_id: only runtimed may leave the ID empty, towards gateways")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.runs[ref.GetRunUid()]
	if o == nil {
		return nil, errNoRun
	}
	if o.function.RegistrationID != ref.GetRegistrationId() {
		return nil, errStale
	}
	return o, nil
}

// release forgets a registration that is gone, unless a newer one has its place,
// and remembers its attempt from now on.
func (s *Server) release(o *owner) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.runs[o.function.RunUID] == o {
		delete(s.runs, o.function.RunUID)
		s.attempts.Note(o.function.RunUID, o.identity.Attempt, time.Now())
	}
}

// FunctionStatus reads memory only.
func (s *functions) FunctionStatus(_ context.Context, req *executorv1.FunctionStatusRequest) (*executorv1.FunctionStatusResponse, error) {
	o, err := s.current(req.GetRegistration())
	if err != nil {
		return nil, table.Error(err, map[string]string{edge.RunUID: req.GetRegistration().GetRunUid()})
	}
	state := o.snapshot()
	res := &executorv1.FunctionStatusResponse{Registration: o.reference(), State: wire(state.Phase), FatalError: state.Fatal}
	if state.InFlight {
		res.InFlight = 1
	}
	if !state.LastActivity.IsZero() {
		res.LastActivityUnixNano = state.LastActivity.UnixNano()
	}
	return res, nil
}

// wire maps phases to the contract's states.
func wire(phase registration.Phase) executorv1.FunctionRegistrationState {
	switch phase {
	case registration.Registering:
		return executorv1.FunctionRegistrationState_FUNCTION_REGISTRATION_STATE_REGISTERING
	case registration.Ready, registration.Busy:
		return executorv1.FunctionRegistrationState_FUNCTION_REGISTRATION_STATE_READY
	case registration.Failed:
		return executorv1.FunctionRegistrationState_FUNCTION_REGISTRATION_STATE_FAILED
	default:
		return executorv1.FunctionRegistrationState_FUNCTION_REGISTRATION_STATE_DRAINING
	}
}

// UnregisterFunction returns when nothing of the registration is left.
func (s *functions) UnregisterFunction(ctx context.Context, req *executorv1.UnregisterFunctionRequest) (*executorv1.UnregisterFunctionResponse, error) {
	ref := req.GetRegistration()
	err := s.unregister(ctx, req)
	if err != nil {
		return nil, table.Error(err, map[string]string{edge.RunUID: ref.GetRunUid()})
	}
	return &executorv1.UnregisterFunctionResponse{Registration: &executorv1.FunctionRegistration{RunUid: ref.GetRunUid(), RegistrationId: ref.GetRegistrationId()}}, nil
}

func (s *functions) unregister(ctx context.Context, req *executorv1.UnregisterFunctionRequest) error {
	if err := s.admit(ctx); err != nil {
		return err
	}
	drain, err := bounded("drain_timeout_millis", req.GetDrainTimeoutMillis(), defaultDrain, maxDrain)
	if err != nil {
		return err
	}
	o, err := s.current(req.GetRegistration())
	if err == errNoRun {
		return nil // an absent registration is a success
	}
	if err != nil {
		return err
	}
	event := registration.Event{Kind: registration.Unregister, Drain: drain}
	if req.GetCancelInFlight() {
		event.Kind = registration.UnregisterNow
	}
	o.post(event)
	select {
	case <-o.released:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
