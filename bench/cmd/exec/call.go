package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/hearth-run/hearth/bench/internal/load"
	"github.com/hearth-run/hearth/gen/serverless"
	"github.com/hearth-run/hearth/gen/serverless/serverlessconnect"
)

// function is what is called.
type function struct {
	name, body string
	imports    []string
}

var functions = []function{
	{"empty", `{"source":"def f(): return 1","entry":"f"}`, nil},
	{"numpy and pandas", `{"source":"import numpy, pandas\ndef f(): return 1","entry":"f"}`, []string{"numpy", "pandas"}},
}

// callMemory is each call's budget, so that sixteen fit.
const callMemory = 256 << 20

// seen is what the answers of a measurement have told.
type seen struct {
	mu     sync.Mutex // guards what follows
	starts map[serverless.ContainerStart]int
	steps  map[string][]time.Duration
	order  []string
}

func newSeen() *seen {
	return &seen{starts: map[serverless.ContainerStart]int{}, steps: map[string][]time.Duration{}}
}

func (s *seen) note(res *serverless.ClientExecutionResponse) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.starts[res.GetStart()]++
	for _, step := range res.GetSteps() {
		if s.steps[step.GetName()] == nil {
			s.order = append(s.order, step.GetName())
		}
		s.steps[step.GetName()] = append(s.steps[step.GetName()], time.Duration(step.GetNanos()))
	}
}

// shares says how the calls came to their containers.
func (s *seen) shares() string {
	var parts []string
	for start := range serverless.ContainerStart(5) {
		if n := s.starts[start]; n > 0 {
			name := strings.ToLower(strings.TrimPrefix(start.String(), "CONTAINER_START_"))
			parts = append(parts, fmt.Sprintf("%d %s", n, name))
		}
	}
	return strings.Join(parts, ", ")
}

// caller calls a function, each time in a container of its own, or in a session.
func caller(router serverlessconnect.ProxyServiceClient, f function, cold bool, session string, s *seen) load.Caller {
	return func(ctx context.Context) error {
		return call(ctx, router, f, cold, session, s)
	}
}

func call(ctx context.Context, router serverlessconnect.ProxyServiceClient, f function, cold bool, session string, s *seen) error {
	stream, err := router.RequestExecution(ctx)
	if err != nil {
		return err
	}
	defer stream.Close()
	id := rand.Text()
	config := &serverless.ExecutionConfig{Imports: f.imports, DisableOptimizedExecution: cold, Budgets: []*serverless.ResourceBudget{
		{Kind: serverless.ResourceKind_RESOURCE_KIND_MEMORY, Alloc: callMemory, Max: callMemory},
	}}
	for _, m := range []*serverless.ClientExecutionRequest{
		{Data: &serverless.ClientExecutionRequest_Config{Config: config}},
		{Data: &serverless.ClientExecutionRequest_Payload{Payload: []byte(f.body)}},
	} {
		m.RequestId, m.SessionId = id, session
		if err := stream.Send(m); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	var answer []byte
	for {
		res, err := stream.Receive()
		switch {
		case errors.Is(err, io.EOF) && strings.Contains(string(answer), `"value":1`):
			return nil
		case errors.Is(err, io.EOF):
			return fmt.Errorf("the function answered %q", answer)
		case err != nil:
			return err
		}
		answer = append(answer, res.GetPayload()...)
		if len(res.GetSteps()) > 0 {
			s.note(res)
		}
	}
}
