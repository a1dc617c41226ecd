package runtimeserver

import (
	"context"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	executorv1 "github.com/hearth-run/hearth/gen/executor/v1"
	"github.com/hearth-run/hearth/internal/kit/edge"
)

// maxExecutions is how many executions are kept at once, ended ones included:
// each may hold 2 MiB of output until it is forgotten.
const maxExecutions = 256

// executions serves executor.v1.Runtime.
type executions struct{ *Server }

// Execute accepts an execution and returns; a repeat returns the one there is.
func (s *executions) Execute(ctx context.Context, req *executorv1.ExecuteRequest) (*executorv1.ExecuteResponse, error) {
	if err := s.execute(ctx, proto.CloneOf(req)); err != nil {
		return nil, table.Error(err, map[string]string{"execution_id": req.GetId()})
	}
	return &executorv1.ExecuteResponse{Id: req.GetId()}, nil
}

func (s *executions) execute(ctx context.Context, req *executorv1.ExecuteRequest) error {
	if err := s.admit(ctx); err != nil {
		return err
	}
	if known, err := s.known(req); known || err != nil {
		return err
	}
	plan, err := s.plan(req)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, err := s.knownLocked(req); known || err != nil {
		return err
	}
	if len(s.executions) >= maxExecutions {
		return edge.Publicf(errFull, "%d executions are kept, the most this Runtime Server takes: Forget those that have ended", maxExecutions)
	}
	e := newExecution(s.Server, req, plan)
	if !s.begin(e.run) {
		return errStopping
	}
	s.executions[req.GetId()] = e
	return nil
}

func (s *executions) known(req *executorv1.ExecuteRequest) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.knownLocked(req)
}

// knownLocked says whether the same request was accepted before.
func (s *executions) knownLocked(req *executorv1.ExecuteRequest) (bool, error) {
	e := s.executions[req.GetId()]
	if e == nil {
		return false, nil
	}
	if !proto.Equal(e.request, req) {
		return false, errExecutionExists
	}
	return true, nil
}

// plan is what to run: a handler, or a command.
type plan struct {
	dir     string // "" is the execution's own temporary folder
	handler string
	command []string
	timeout time.Duration // 0 is none
}

// plan decides by the order of the contract: handler, entrypoint, the file
// "script", args.
func (s *executions) plan(req *executorv1.ExecuteRequest) (plan, error) {
	p := plan{handler: req.GetHandler(), timeout: time.Duration(req.GetTimeoutSeconds()) * time.Second}
	if err := checkEnv(req.GetEnv()); err != nil {
		return p, err
	}
	if req.GetTimeoutSeconds() < 0 {
		return p, edge.Publicf(errArgument, "timeout_seconds is %d; use 0 (no limit) or more", req.GetTimeoutSeconds())
	}
	if req.GetWorkingDir() != "" {
		dir, err := resolveDir(s.root, req.GetWorkingDir())
		if err != nil {
			return p, err
		}
		p.dir = dir
	} else if req.GetHandler() != "" || req.GetEntrypoint() != "" {
		return p, edge.Publicf(errArgument, "working_dir is empty: a handler or an entrypoint is a file beneath it")
	}
	if p.handler != "" {
		return p, s.language.Resolve(p.dir, p.handler)
	}
	return p, s.planCommand(&p, req)
}

func (s *executions) planCommand(p *plan, req *executorv1.ExecuteRequest) error {
	commander, ok := s.language.(Commander)
	if !ok {
		return edge.Publicf(ErrHandlerInvalid, "Runtime %s runs handlers only: name one", s.language.Name())
	}
	entrypoint, err := entrypointOf(p.dir, req)
	if err != nil {
		return err
	}
	if entrypoint == "" && len(req.GetArgs()) == 0 {
		return edge.Publicf(errArgument, "nothing to run: set handler, entrypoint or args, or put a file named script into working_dir")
	}
	for i, arg := range req.GetArgs() {
		if strings.ContainsRune(arg, 0) {
			return edge.Publicf(errArgument, "args[%d] holds a NUL, which no argument can", i)
		}
	}
	p.command, err = commander.Command(p.dir, entrypoint, req.GetArgs())
	return err
}

// entrypointOf returns the file to run, "" for none.
func entrypointOf(dir string, req *executorv1.ExecuteRequest) (string, error) {
	if dir == "" {
		return "", nil
	}
	if name := req.GetEntrypoint(); name != "" {
		path, err := FileBeneath(dir, name)
		if err != nil {
			return "", edge.Publicf(errArgument, "entrypoint: %s", err.(interface{ Public() string }).Public())
		}
		return path, nil
	}
	if path, err := FileBeneath(dir, "script"); err == nil {
		return path, nil
	}
	return "", nil
}

// find returns an execution that was not forgotten.
func (s *executions) find(id string) (*execution, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.executions[id]; e != nil {
		return e, nil
	}
	return nil, errNoExecution
}

// Status returns state and output.
func (s *executions) Status(_ context.Context, req *executorv1.StatusRequest) (*executorv1.StatusResponse, error) {
	e, err := s.find(req.GetId())
	if err != nil {
		return nil, table.Error(err, map[string]string{"execution_id": req.GetId()})
	}
	return e.status(maxOutput), nil
}

// listOutput bounds each stream in a list, so that a full list is a message that
// can be read; Status has the whole.
const listOutput = 4 << 10

// List returns every execution, oldest first.
func (s *executions) List(context.Context, *executorv1.ListRequest) (*executorv1.ListResponse, error) {
	s.mu.Lock()
	all := make([]*execution, 0, len(s.executions))
	for _, e := range s.executions {
		all = append(all, e)
	}
	s.mu.Unlock()
	slices.SortFunc(all, func(a, b *execution) int {
		if c := a.accepted.Compare(b.accepted); c != 0 {
			return c
		}
		return strings.Compare(a.request.GetId(), b.request.GetId())
	})
	res := &executorv1.ListResponse{}
	for _, e := range all {
		res.Entries = append(res.Entries, e.status(listOutput))
	}
	return res, nil
}

// Cancel asks an execution to end.
func (s *executions) Cancel(_ context.Context, req *executorv1.CancelRequest) (*executorv1.CancelResponse, error) {
	e, err := s.find(req.GetId())
	if err != nil {
		return nil, table.Error(err, map[string]string{"execution_id": req.GetId()})
	}
	e.cancel(errCanceled)
	return &executorv1.CancelResponse{}, nil
}

// Forget drops an execution that has ended.
func (s *executions) Forget(_ context.Context, req *executorv1.ForgetRequest) (*executorv1.ForgetResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := errNoExecution
	if e := s.executions[req.GetId()]; e != nil {
		if err = nil; !e.over() {
			err = errRunning
		}
	}
	if err != nil {
		return nil, table.Error(err, map[string]string{"execution_id": req.GetId()})
	}
	delete(s.executions, req.GetId())
	return &executorv1.ForgetResponse{}, nil
}

// Health says whether work is accepted.
func (s *executions) Health(context.Context, *executorv1.HealthRequest) (*executorv1.HealthResponse, error) {
	if err := s.Ready(); err != nil {
		return &executorv1.HealthResponse{Message: err.Error()}, nil
	}
	return &executorv1.HealthResponse{Healthy: true, Message: "the " + s.language.Name() + " Runtime Server accepts work"}, nil
}
