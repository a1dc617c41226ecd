package runtimetest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"

	executorv1 "github.com/hearth-run/hearth/gen/executor/v1"
	"github.com/hearth-run/hearth/gen/executor/v1/executorv1connect"
	"github.com/hearth-run/hearth/internal/kit/dial"
	"github.com/hearth-run/hearth/internal/kit/edge"
)

// wire is one way to talk to the target.
type wire struct {
	protocol  Protocol
	dialer    *dial.Dialer
	functions executorv1connect.FunctionRuntimeClient
	base      executorv1connect.RuntimeClient
}

func open(address string, protocol Protocol) (*wire, error) {
	dialer := dial.New(nil)
	client, base, err := dialer.HTTP(address, protocol == GRPC)
	if err != nil {
		return nil, err
	}
	// The largest answer that the contract allows fits in 4 MiB; a larger one has
	// to arrive, so that a case can say so.
	options := []connecthttp.Option{connecthttp.WithReadMaxBytes(64 << 20), connecthttp.WithCompressors()}
	if protocol == GRPC {
		options = append(options, connecthttp.WithGRPC())
	}
	rpc := connect.NewClient(connecthttp.NewTransport(client, base, options...))
	return &wire{
		protocol:  protocol,
		dialer:    dialer,
		functions: executorv1connect.NewFunctionRuntimeClient(rpc),
		base:      executorv1connect.NewRuntimeClient(rpc),
	}, nil
}

func (w *wire) close() { w.dialer.Close() }

// find is probe for a target that may be starting: it asks until limit.
func (w *wire) find(ctx context.Context, limit time.Duration) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		functions, err := w.probe(ctx, name("probe"))
		if err == nil {
			return functions, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false, err
		}
	}
}

// probe says whether the target has FunctionRuntime. An error means that there
// is no Runtime Server to test.
func (w *wire) probe(ctx context.Context, uid string) (bool, error) {
	_, err := w.functions.FunctionStatus(ctx, &executorv1.FunctionStatusRequest{
		Registration: &executorv1.FunctionRegistration{RunUid: uid, RegistrationId: "reg_none"},
	})
	switch {
	case err == nil:
		return true, nil
	case connect.CodeOf(err) == connect.CodeUnimplemented:
		return false, nil
	case answered(err) && connect.CodeOf(err) != connect.CodeUnavailable:
		return true, nil
	}
	return false, fmt.Errorf("reach the target over %s: %w", w.protocol, err)
}

// answered says whether the error is the server's word and not the client's own.
func answered(err error) bool {
	var e *connect.Error
	return errors.As(err, &e) && (e.IsRemote() || e.Code() == connect.CodeUnimplemented)
}

// verdict is what a call's error says, for the report.
func verdict(err error) string {
	if err == nil {
		return "OK"
	}
	if isLate(err) {
		return err.Error()
	}
	text := connect.CodeOf(err).String()
	if reason := edge.Reason(err); reason != "" {
		text += " " + reason
	}
	var e *connect.Error
	if errors.As(err, &e) {
		text = fmt.Sprintf("%s (%s)", text, e.Message())
		if debug := edge.DebugText(err); debug != "" {
			text += ", which says " + clip([]byte(debug))
		}
		return text
	}
	return fmt.Sprintf("%s (%v)", text, err)
}
