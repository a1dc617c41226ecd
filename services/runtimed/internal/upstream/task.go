package upstream

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"connectrpc.com/connect/v2"

	executorv1 "github.com/hearth-run/hearth/gen/executor/v1"
	"github.com/hearth-run/hearth/services/runtimed/internal/vigil"
)

// ExecutionLost: the Runtime Server does not know the execution any more.
const ExecutionLost = "EXECUTION_LOST"

var refusals = map[connect.Code]string{
	connect.CodeInvalidArgument: "HANDLER_INVALID",
	connect.CodeUnimplemented:   vigil.RuntimeUnfitted,
	connect.CodeAlreadyExists:   ExecutionLost,
}

// Start asks for an execution until the Runtime Server has answered, or may have
// heard it: whether it has is then for Await to see. To ask once more could execute
// it twice, for one that has died in between knows nothing of the first time.
// Errors: *Failure, ctx's cause.
func (s *Server) Start(ctx context.Context, req *executorv1.ExecuteRequest) error {
	p := s.patience()
	for {
		err := s.short(ctx, func(ctx context.Context) error { _, err := s.Runtime.Execute(ctx, req); return err })
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err == nil || !unheard(err) {
			return nil
		}
		if reason := refusals[code(err)]; reason != "" {
			return &Failure{reason, Text(err)}
		}
		if err := p.again(ctx, err); err != nil {
			return err
		}
	}
}

// unheard says whether it is certain that nothing was begun: the Runtime Server has
// refused the call, or could not be reached.
func unheard(err error) bool {
	var peer *connect.Error
	var network *net.OpError
	return errors.As(err, &peer) && peer.IsRemote() || errors.As(err, &network) && network.Op == "dial"
}

// Await waits for the end of a task that was started. The contract has no call
// that waits, so it asks, at first often.
// Errors: *Failure, ctx's cause.
func (s *Server) Await(ctx context.Context, id string) (*executorv1.StatusResponse, error) {
	p := s.patience()
	for wait := 5 * time.Millisecond; ; wait = min(wait*3/2, time.Second) {
		var res *executorv1.StatusResponse
		err := s.short(ctx, func(ctx context.Context) (err error) {
			res, err = s.Runtime.Status(ctx, &executorv1.StatusRequest{Id: id})
			return err
		})
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case code(err) == connect.CodeNotFound:
			return nil, &Failure{ExecutionLost, "the Runtime Server no longer knows the execution"}
		case err != nil:
			if err := p.again(ctx, err); err != nil {
				return nil, err
			}
			continue
		}
		p.heard()
		if ended(res.GetState()) {
			return res, nil
		}
		if err := Pause(ctx, wait); err != nil {
			return nil, err
		}
	}
}

// Executions lists the ids of the executions that the Runtime Server knows; where
// there are no tasks, there are none.
// Errors: those of the call.
func (s *Server) Executions(ctx context.Context) ([]string, error) {
	var res *executorv1.ListResponse
	err := s.short(ctx, func(ctx context.Context) (err error) {
		res, err = s.Runtime.List(ctx, &executorv1.ListRequest{})
		return err
	})
	if err != nil && code(err) != connect.CodeUnimplemented {
		return nil, fmt.Errorf("list executions: %w", err)
	}
	ids := make([]string, 0, len(res.GetEntries()))
	for _, e := range res.GetEntries() {
		ids = append(ids, e.GetId())
	}
	return ids, nil
}

func ended(state executorv1.ExecutionState) bool {
	return state == executorv1.ExecutionState_EXECUTION_STATE_SUCCEEDED || state == executorv1.ExecutionState_EXECUTION_STATE_FAILED
}

// Forget ends an execution and drops it. An unknown one is gone already.
// Errors: those of the calls; ctx's.
func (s *Server) Forget(ctx context.Context, id string) error {
	for wait := 20 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		err := s.short(ctx, func(ctx context.Context) error {
			_, err := s.Runtime.Forget(ctx, &executorv1.ForgetRequest{Id: id})
			return err
		})
		switch code(err) {
		case connect.CodeNotFound, connect.CodeUnimplemented:
			return nil
		case connect.CodeFailedPrecondition:
		default:
			return err
		}
		err = s.short(ctx, func(ctx context.Context) error {
			_, err := s.Runtime.Cancel(ctx, &executorv1.CancelRequest{Id: id})
			return err
		})
		if err != nil && code(err) != connect.CodeNotFound {
			return err
		}
		if err := Pause(ctx, wait); err != nil {
			return err
		}
	}
}

func (s *Server) short(ctx context.Context, call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.Call)
	defer cancel()
	return call(ctx)
}
