package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	executorv1 "github.com/hearth-run/hearth/gen/executor/v1"
	"github.com/hearth-run/hearth/gen/executor/v1/executorv1connect"
	"github.com/hearth-run/hearth/internal/kit/dial"
)

const (
	// listening is what a Runtime Server logs once its socket is there.
	listening = "runtime server is listening"
	// ordinary marks what it logs when nothing is wrong; the rest is shown.
	ordinary = `"level":"INFO"`
	// stopTime is how long one may take to end, registerTime how long to load.
	stopTime     = 10 * time.Second
	registerTime = time.Minute
	// callTime is what a call may take at most: no measurement comes near it.
	callTime = 30 * time.Second
)

// server is a Runtime Server as a process, with a client on its unix socket.
type server struct {
	cmd    *exec.Cmd
	ended  chan struct{} // closed once its stderr is at its end
	client executorv1connect.FunctionRuntimeClient
	dialer *dial.Dialer
}

// startServer runs a program that serves on socket and returns once it listens.
func startServer(ctx context.Context, socket string, argv ...string) (*server, error) {
	s := &server{cmd: exec.Command(argv[0], argv[1:]...), ended: make(chan struct{}), dialer: dial.New(nil)}
	client, err := s.dialer.Client(socket)
	if err != nil {
		return nil, err
	}
	s.client = executorv1connect.NewFunctionRuntimeClient(client)
	stderr, err := s.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", argv[0], err)
	}
	up := make(chan struct{})
	go func() {
		defer close(s.ended)
		for scanner := bufio.NewScanner(stderr); scanner.Scan(); {
			switch line := scanner.Text(); {
			case strings.Contains(line, listening):
				close(up)
			case !strings.Contains(line, ordinary):
				fmt.Fprintln(os.Stderr, line)
			}
		}
	}()
	select {
	case <-up:
		return s, nil
	case <-s.ended:
		err = errors.New("it ended before it listened")
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	return nil, errors.Join(fmt.Errorf("start %s: %w", argv[0], err), s.Stop())
}

// register loads a function and returns how to call it.
func (s *server) register(ctx context.Context, run, folder, handler string, attempt int32) (*function, error) {
	ctx, cancel := context.WithTimeout(ctx, registerTime)
	defer cancel()
	res, err := s.client.RegisterFunction(ctx, &executorv1.RegisterFunctionRequest{
		RunUid: run, RegistrationAttempt: attempt, WorkingDir: folder, Handler: handler,
		RegistrationDigest: "sha256:" + strings.Repeat("0", 64),
	})
	if err != nil {
		return nil, fmt.Errorf("register %s: %w", handler, err)
	}
	if res.GetState() != executorv1.FunctionRegistrationState_FUNCTION_REGISTRATION_STATE_READY {
		status, err := s.client.FunctionStatus(ctx, &executorv1.FunctionStatusRequest{Registration: res.GetRegistration()})
		return nil, errors.Join(fmt.Errorf("register %s: %v: %s", handler, res.GetState(), status.GetFatalError()), err)
	}
	return &function{s.client, res.GetRegistration()}, nil
}

// Stop ends the program, first with SIGTERM.
func (s *server) Stop() error {
	s.dialer.Close()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	kill := time.AfterFunc(stopTime, func() { _ = s.cmd.Process.Kill() })
	defer kill.Stop()
	<-s.ended
	return s.cmd.Wait()
}

// function is one registration.
type function struct {
	client       executorv1connect.FunctionRuntimeClient
	registration *executorv1.FunctionRegistration
}

// Call invokes the function once.
func (f *function) Call(ctx context.Context, payload []byte) ([]byte, error) {
	return f.within(ctx, callTime, payload)
}

// within invokes it with a deadline.
func (f *function) within(ctx context.Context, timeout time.Duration, payload []byte) ([]byte, error) {
	res, err := f.client.InvokeFunction(ctx, &executorv1.InvokeFunctionRequest{
		Registration: f.registration, Input: payload, ContentType: "application/json", TimeoutMillis: timeout.Milliseconds(),
	})
	return res.GetOutput(), err
}
