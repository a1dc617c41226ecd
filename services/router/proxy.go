package router

import (
	"context"
	"errors"
	"io"

	"github.com/hearth-run/hearth/gen/serverless/serverlessconnect"
	"github.com/hearth-run/hearth/services/router/internal/sessions"
)

// proxy takes clients' executions.
type proxy struct{ *Service }

type clientStream = serverlessconnect.ProxyServiceRequestExecutionServerStream

// RequestExecution runs one call from its first message to its end.
func (p *proxy) RequestExecution(ctx context.Context, stream clientStream) error {
	if err := checkToken(ctx, p.cfg.Token); err != nil {
		return atEdge(err, nil)
	}
	first, err := stream.Receive()
	if errors.Is(err, io.EOF) {
		err = errFirst
	}
	if err != nil {
		return atEdge(err, nil)
	}
	meta := map[string]string{"request_id": first.GetRequestId(), "session_id": first.GetSessionId()}
	plan, err := newPlan(first, p.cfg.DefaultMemory)
	if err == nil && plan.checkpoint != "" && !p.catalogues.Has(plan.checkpoint) && !p.cluster.Warm(plan.checkpoint) {
		err = errCheckpoint
	}
	if err == nil {
		err = p.execute(ctx, stream, plan, meta)
	}
	return atEdge(err, meta)
}

// execute gives the call its bounds and its turn, and sees to it that whatever
// happens it leaves nothing behind.
func (s *Service) execute(parent context.Context, stream clientStream, plan *plan, meta map[string]string) error {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	defer context.AfterFunc(s.life, func() { cancel(errStopping) })()
	ctx, release := context.WithTimeout(ctx, s.cfg.ExecutionTimeout)
	defer release()
	way := newWay()
	call, err := s.cluster.Enter(plan.request, plan.session, plan.imports, cancel)
	if err != nil {
		return err
	}
	s.counters.started.Add(1)
	outcome := sessions.Untouched
	defer func() {
		s.cluster.Leave(call, outcome)
		if err == nil && outcome == sessions.Kept {
			s.counters.succeeded.Add(1)
		} else {
			s.counters.failed.Add(1)
		}
	}()
	pin, err := s.cluster.Turn(ctx, call)
	if err != nil {
		return err
	}
	if plan.session != "" {
		way.step("turn")
	}
	d := &dispatch{Service: s, way: way, call: call, plan: plan, client: stream, meta: meta, body: newBody(s.cfg.ReplayBytes)}
	if err = s.read(ctx, d.body, stream, cancel); err != nil {
		return err
	}
	outcome, err = d.run(ctx, pin)
	return err
}
