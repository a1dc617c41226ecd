package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"sync"

	"connectrpc.com/connect/v2"

	executorv1 "github.com/hearth-run/hearth/gen/executor/v1"
	"github.com/hearth-run/hearth/gen/executor/v1/executorv1connect"
	"github.com/hearth-run/hearth/internal/kit/edge"
	"github.com/hearth-run/hearth/internal/kit/group"
	"github.com/hearth-run/hearth/internal/kit/serve"
)

// perCall is the least FunctionRuntime: it keeps nothing warm and starts the
// language's interpreter for each call. It is here to be compared with, and checks
// no more than the measurement needs.
type perCall struct {
	argv []string

	mu      sync.Mutex        // guards folders
	folders map[string]string // by Run
}

var _ executorv1connect.FunctionRuntimeHandler = (*perCall)(nil)

func (p *perCall) RegisterFunction(_ context.Context, req *executorv1.RegisterFunctionRequest) (*executorv1.RegisterFunctionResponse, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.folders[req.GetRunUid()] = req.GetWorkingDir()
	return &executorv1.RegisterFunctionResponse{
		Registration: &executorv1.FunctionRegistration{RunUid: req.GetRunUid(), RegistrationId: "reg_" + req.GetRunUid()},
		State:        executorv1.FunctionRegistrationState_FUNCTION_REGISTRATION_STATE_READY,
	}, nil
}

func (p *perCall) FunctionStatus(_ context.Context, req *executorv1.FunctionStatusRequest) (*executorv1.FunctionStatusResponse, error) {
	return &executorv1.FunctionStatusResponse{
		Registration: req.GetRegistration(),
		State:        executorv1.FunctionRegistrationState_FUNCTION_REGISTRATION_STATE_READY,
	}, nil
}

func (p *perCall) InvokeFunction(ctx context.Context, req *executorv1.InvokeFunctionRequest) (*executorv1.InvokeFunctionResponse, error) {
	p.mu.Lock()
	folder := p.folders[req.GetRegistration().GetRunUid()]
	p.mu.Unlock()
	cmd := exec.CommandContext(ctx, p.argv[0], p.argv[1:]...)
	cmd.Dir, cmd.Stdin, cmd.Stderr = folder, bytes.NewReader(req.GetInput()), os.Stderr
	output, err := cmd.Output()
	if err != nil {
		return nil, edge.New(connect.CodeInternal, "HANDLER_ERROR", "the process of the call failed: "+err.Error(), nil)
	}
	return &executorv1.InvokeFunctionResponse{Registration: req.GetRegistration(), InvocationId: req.GetInvocationId(), Output: output}, nil
}

func (p *perCall) UnregisterFunction(_ context.Context, req *executorv1.UnregisterFunctionRequest) (*executorv1.UnregisterFunctionResponse, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.folders, req.GetRegistration().GetRunUid())
	return &executorv1.UnregisterFunctionResponse{}, nil
}

// servePerCall serves it until ctx is done, behind the same door as the others.
func servePerCall(ctx context.Context, f flags) error {
	e, ok := echoes[f.PerCall]
	if !ok {
		return fmt.Errorf("runtime %q: want python or bash", f.PerCall)
	}
	log := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	rpc, err := serve.NewConnect(log)
	if err != nil {
		return err
	}
	executorv1connect.RegisterFunctionRuntimeHandler(rpc, &perCall{argv: f.command(f.PerCall, e.once), folders: map[string]string{}})
	server, err := serve.New(serve.Config{Listen: f.Socket}, log, rpc)
	if err != nil {
		return err
	}
	if err := server.Listen(); err != nil {
		return err
	}
	log.Info(listening)
	var g group.Group
	g.Add("listener", server.Run)
	if err := g.Run(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}
