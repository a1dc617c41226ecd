// Package upstream owns the calls to the Runtime Server and what its answers mean
// for a Run.
package upstream

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"connectrpc.com/connect/v2"

	executorv1 "github.com/hearth-run/hearth/gen/executor/v1"
	"github.com/hearth-run/hearth/gen/executor/v1/executorv1connect"
	"github.com/hearth-run/hearth/services/runtimed/internal/clock"
	"github.com/hearth-run/hearth/services/runtimed/internal/vigil"
)

// Failure ends an attempt: a reason of the closed list, without its prefix, and
// a text for the Run's status.
type Failure struct{ Reason, Message string }

func (f *Failure) Error() string { return f.Reason + ": " + f.Message }

// Server is one Runtime Server. Safe for concurrent use.
type Server struct {
	Functions executorv1connect.FunctionRuntimeClient
	Runtime   executorv1connect.RuntimeClient
	Clock     clock.Clock
	// Patience is how long the Runtime Server may be unreachable before an attempt
	// fails; Call bounds one short call, Load one RegisterFunction.
	Patience, Call, Load time.Duration
}

// Support is what a Runtime Server was found to support.
type Support struct{ Functions, Tasks bool }

// probe is an id that no Run and no execution has.
const probe = "hearth-handshake"

// Handshake asks for health and for the services that are there.
// Errors: the Runtime Server does not answer, or says that it is not healthy.
func (s *Server) Handshake(ctx context.Context) (Support, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Call)
	defer cancel()
	health, err := s.Runtime.Health(ctx, &executorv1.HealthRequest{})
	if err != nil && !There(err) {
		return Support{}, fmt.Errorf("ask for health: %w", err)
	}
	if err == nil && !health.GetHealthy() {
		return Support{}, fmt.Errorf("the Runtime Server is not healthy: %s", health.GetMessage())
	}
	_, ferr := s.Functions.FunctionStatus(ctx, &executorv1.FunctionStatusRequest{
		Registration: &executorv1.FunctionRegistration{RunUid: probe, RegistrationId: probe},
	})
	_, terr := s.Runtime.Status(ctx, &executorv1.StatusRequest{Id: probe})
	for _, err := range []error{ferr, terr} {
		if err != nil && !There(err) {
			return Support{}, fmt.Errorf("ask for its services: %w", err)
		}
	}
	return Support{Functions: implemented(ferr), Tasks: implemented(terr)}, nil
}

func implemented(err error) bool { return code(err) != connect.CodeUnimplemented }

// There says whether an error is an answer of the Runtime Server, and not the
// lack of one.
func There(err error) bool {
	switch code(err) {
	case connect.CodeUnavailable, connect.CodeDeadlineExceeded, connect.CodeCanceled, connect.CodeUnknown:
		return false
	}
	var answer *connect.Error
	return errors.As(err, &answer)
}

// code is the code of an error, 0 for none.
func code(err error) connect.Code {
	var answer *connect.Error
	switch {
	case err == nil:
		return 0
	case errors.As(err, &answer):
		return answer.Code()
	case errors.Is(err, context.DeadlineExceeded):
		return connect.CodeDeadlineExceeded
	case errors.Is(err, context.Canceled):
		return connect.CodeCanceled
	}
	return connect.CodeUnknown
}

// patience tells how long there was no certain answer.
type patience struct {
	clock  clock.Clock
	limit  time.Duration
	since  time.Duration
	silent bool
	wait   time.Duration
}

func (s *Server) patience() *patience { return &patience{clock: s.Clock, limit: s.Patience} }

// heard starts anew.
func (p *patience) heard() { p.silent, p.wait = false, 0 }

// again waits before a repeat, longer each time.
// Errors: *Failure once the limit has passed, ctx's cause.
func (p *patience) again(ctx context.Context, err error) error {
	now := p.clock()
	if !p.silent {
		p.silent, p.since = true, now
	}
	if now-p.since >= p.limit {
		return &Failure{vigil.Unavailable, fmt.Sprintf("the Runtime Server has not answered for %v: %s", p.limit, Text(err))}
	}
	p.wait = min(max(2*p.wait, 20*time.Millisecond), time.Second)
	return Pause(ctx, p.wait)
}

// Pause waits for about d, a fifth more or less.
// Errors: ctx's cause.
func Pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d*4/5 + rand.N(d*2/5+1))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Text is what an error says to the author of a function: the peer's own words,
// or that there was no answer.
func Text(err error) string {
	var peer *connect.Error
	if errors.As(err, &peer) && peer.IsRemote() && peer.Message() != "" {
		return Cut(peer.Message())
	}
	return code(err).String()
}

// Cut bounds a text for the Run's status.
func Cut(s string) string {
	const most = 4000
	if len(s) > most {
		s = s[:most] + "…"
	}
	return strings.ToValidUTF8(s, "�")
}
