package upstream

import (
	"context"
	"time"

	"connectrpc.com/connect/v2"

	executorv1 "github.com/hearth-run/hearth/gen/executor/v1"
	"github.com/hearth-run/hearth/services/runtimed/internal/vigil"
)

// verdict is what a code of RegisterFunction means. What is not in the table is
// uncertain: the same attempt and digest are sent again.
var verdicts = map[connect.Code]string{
	connect.CodeInvalidArgument: "HANDLER_INVALID",
	connect.CodeUnimplemented:   vigil.RuntimeUnfitted,
	// Another digest or a higher attempt holds the Run there: ours is not to be
	// had, a later attempt may be.
	connect.CodeAlreadyExists:      vigil.Lost,
	connect.CodeFailedPrecondition: vigil.Lost,
}

// Register registers a function and returns the registration's id. It repeats
// the call while its outcome is uncertain.
// Errors: *Failure, ctx's cause.
func (s *Server) Register(ctx context.Context, req *executorv1.RegisterFunctionRequest) (string, error) {
	p := s.patience()
	for {
		res, err := s.register(ctx, req)
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		if err == nil {
			p.heard()
			id := res.GetRegistration().GetRegistrationId()
			switch state := res.GetState(); {
			case id == "" || len(id) > 128:
				return "", &Failure{vigil.Lost, "the Runtime Server answered without a usable registration id"}
			case state == executorv1.FunctionRegistrationState_FUNCTION_REGISTRATION_STATE_READY:
				return id, nil
			case state == executorv1.FunctionRegistrationState_FUNCTION_REGISTRATION_STATE_FAILED:
				return id, s.fatal(ctx, req.GetRunUid(), id)
			}
			err = connect.NewError(connect.CodeUnavailable, "still registering")
		}
		if reason := verdicts[code(err)]; reason != "" {
			return "", &Failure{reason, Text(err)}
		}
		if code(err) == connect.CodeDeadlineExceeded {
			// The load goes on there and is bounded there: join it again.
			p.heard()
		}
		if err := p.again(ctx, err); err != nil {
			return "", err
		}
	}
}

func (s *Server) register(ctx context.Context, req *executorv1.RegisterFunctionRequest) (*executorv1.RegisterFunctionResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Load)
	defer cancel()
	return s.Functions.RegisterFunction(ctx, req)
}

// fatal asks why an initialization failed.
func (s *Server) fatal(ctx context.Context, runUID, id string) error {
	text := "the Runtime Server does not say why"
	if a := s.Status(ctx, runUID, id); a.Text != "" {
		text = a.Text
	}
	return &Failure{vigil.InitFailed, "the function could not be loaded: " + Cut(text)}
}

// Status asks once how a registration is.
func (s *Server) Status(ctx context.Context, runUID, id string) vigil.Answer {
	ctx, cancel := context.WithTimeout(ctx, s.Call)
	defer cancel()
	res, err := s.Functions.FunctionStatus(ctx, &executorv1.FunctionStatusRequest{
		Registration: &executorv1.FunctionRegistration{RunUid: runUID, RegistrationId: id},
	})
	return answer(res, err)
}

// answer is the table from FunctionStatus to what it means.
func answer(res *executorv1.FunctionStatusResponse, err error) vigil.Answer {
	switch code(err) {
	case 0:
	case connect.CodeNotFound, connect.CodeFailedPrecondition:
		return vigil.Answer{Kind: vigil.Unknown, Text: Text(err)}
	case connect.CodeUnimplemented:
		return vigil.Answer{Kind: vigil.Unsupported}
	default:
		return vigil.Answer{Kind: vigil.Silent, Text: Text(err)}
	}
	switch res.GetState() {
	case executorv1.FunctionRegistrationState_FUNCTION_REGISTRATION_STATE_FAILED:
		return vigil.Answer{Kind: vigil.Broken, Text: Cut(res.GetFatalError())}
	case executorv1.FunctionRegistrationState_FUNCTION_REGISTRATION_STATE_DRAINING:
		return vigil.Answer{Kind: vigil.Unknown, Text: "it is draining, and this node did not ask for that"}
	}
	return vigil.Answer{Kind: vigil.Well, LastActivity: res.GetLastActivityUnixNano(), InFlight: res.GetInFlight()}
}

// Unregister removes a registration. Absent and stale ones are gone already.
// Errors: those of the call; ctx's.
func (s *Server) Unregister(ctx context.Context, runUID, id string, drain time.Duration) error {
	_, err := s.Functions.UnregisterFunction(ctx, &executorv1.UnregisterFunctionRequest{
		Registration:       &executorv1.FunctionRegistration{RunUid: runUID, RegistrationId: id},
		CancelInFlight:     drain <= 0,
		DrainTimeoutMillis: max(drain, 0).Milliseconds(),
	})
	switch code(err) {
	case connect.CodeNotFound, connect.CodeFailedPrecondition, connect.CodeUnimplemented:
		return nil
	}
	return err
}

// Withdraw removes a registration whose id was never learnt: it asks for it by
// the same attempt and digest, then unregisters.
// Errors: those of the calls; ctx's.
func (s *Server) Withdraw(ctx context.Context, req *executorv1.RegisterFunctionRequest) error {
	res, err := s.Functions.RegisterFunction(ctx, req)
	if err != nil {
		if verdicts[code(err)] != "" {
			return nil
		}
		return err
	}
	return s.Unregister(ctx, req.GetRunUid(), res.GetRegistration().GetRegistrationId(), 0)
}
