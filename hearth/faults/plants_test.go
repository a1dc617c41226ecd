package faults

import (
	"context"
	"strings"
	"time"

	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/hearth-run/hearth/adapters/runtimeserver"
	executorv1 "github.com/hearth-run/hearth/gen/executor/v1"
	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
)

// plant is a bug on purpose: it sits between two processes and does what a broken
// service would do. Each breaks one claim.
type plant struct {
	claim string
	// procedure is the last part of the calls that it gets.
	procedure string
	// intercept handles one unary call; next is the honest way.
	intercept func(l *link, ctx context.Context, req any, res any, next func() error) error
	// rewrite changes the headers of a call before it is sent.
	rewrite func(l *link, info *connect.CallInfo)
}

// on returns the plant as an interceptor of a link's client.
func (p *plant) on(l *link) connect.ClientInterceptor {
	return func(next connect.ClientFunc) connect.ClientFunc {
		return func(ctx context.Context, spec connect.Spec) (connect.ClientStream, error) {
			if !strings.HasSuffix(spec.Procedure, "/"+p.procedure) {
				return next(ctx, spec)
			}
			if p.rewrite != nil {
				if info, ok := connect.CallInfoForClientContext(ctx); ok {
					p.rewrite(l, info)
				}
			}
			return &plantedStream{plant: p, link: l, ctx: ctx, open: func() (connect.ClientStream, error) { return next(ctx, spec) }}, nil
		}
	}
}

// plantedStream is a unary call in the hands of a plant.
type plantedStream struct {
	plant *plant
	link  *link
	ctx   context.Context
	open  func() (connect.ClientStream, error)
	req   any
}

func (s *plantedStream) SendHeaders() error { return nil }
func (s *plantedStream) CloseSend() error   { return nil }
func (s *plantedStream) Close() error       { return nil }

func (s *plantedStream) Send(msg any) error {
	s.req = msg
	return nil
}

func (s *plantedStream) Receive(res any) error {
	next := func() error { return s.call(res) }
	if s.plant.intercept == nil {
		return next()
	}
	return s.plant.intercept(s.link, s.ctx, s.req, res, next)
}

func (s *plantedStream) call(res any) error {
	stream, err := s.open()
	if err != nil {
		return err
	}
	defer func() { _ = stream.Close() }()
	if err := stream.Send(s.req); err != nil {
		return err
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	return stream.Receive(res)
}

// plants are one for each claim.
var plants = []*plant{
	{
		// A control plane that acknowledges a Run that it does not keep.
		claim: "acked", procedure: "CreateRun",
		intercept: func(l *link, _ context.Context, req, res any, next func() error) error {
			create, ok := req.(*hearthv1.CreateRunRequest)
			if !ok || l.net.draw(5) > 0 {
				return next()
			}
			res.(*hearthv1.CreateRunResponse).Run = &hearthv1.Run{Uid: "lost-" + create.GetName(), Namespace: "default", Name: create.GetName()}
			return nil
		},
	},
	{
		// A node that believes in a longer lease than it was granted.
		claim: "served", procedure: "RenewLease",
		intercept: func(_ *link, _ context.Context, _, res any, next func() error) error {
			err := next()
			if err == nil {
				res.(*hearthv1.RenewLeaseResponse).LeaseDuration = durationpb.New(10 * time.Minute)
			}
			return err
		},
	},
	{
		// A node that tries an invocation again when its outcome is unknown.
		claim: "once", procedure: "InvokeFunction",
		intercept: func(l *link, _ context.Context, _, _ any, next func() error) error {
			err := next()
			if connect.CodeOf(err) == connect.CodeUnavailable {
				return next()
			}
			return err
		},
	},
	{
		// A Runtime Server that takes a second invocation beside the first.
		claim: "single", procedure: "InvokeFunction",
		intercept: func(l *link, ctx context.Context, req, _ any, next func() error) error {
			err := next()
			call, ok := req.(*executorv1.InvokeFunctionRequest)
			if !ok || connect.CodeOf(err) != connect.CodeResourceExhausted || !strings.HasPrefix(l.to.name, "runtime-") {
				return err
			}
			l.net.witness.mu.Lock()
			i := l.net.witness.instances[call.GetRegistration().GetRunUid()]
			l.net.witness.mu.Unlock()
			_, err = i.Invoke(ctx, runtimeserver.Call{InvocationID: call.GetInvocationId()})
			return err
		},
	},
	{
		// A gateway whose calls do not name the attempt and the node that they are for.
		claim: "fenced", procedure: "InvokeFunction",
		rewrite: func(_ *link, info *connect.CallInfo) {
			info.RequestHeader().Delete("Hearth-Attempt")
			info.RequestHeader().Delete("Hearth-Node-Uid")
		},
	},
	{
		// A node whose word that a function is ready never arrives.
		claim: "settled", procedure: "ReportAssignment",
		intercept: func(_ *link, _ context.Context, req, _ any, next func() error) error {
			if req.(*hearthv1.ReportAssignmentRequest).GetReady() != nil {
				return nil
			}
			return next()
		},
	},
	{
		// A node whose word that it let go never arrives.
		claim: "returned", procedure: "ReportAssignment",
		intercept: func(_ *link, _ context.Context, req, _ any, next func() error) error {
			if req.(*hearthv1.ReportAssignmentRequest).GetReleased() != nil {
				return nil
			}
			return next()
		},
	},
}
