// Package workers owns how a router reaches its workers: the calls to them, and
// the probes that tell whether they live.
package workers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	connectv1 "connectrpc.com/connect"
	"connectrpc.com/connect/v2"
	"connectrpc.com/grpchealth"

	"github.com/hearth-run/hearth/gen/hearth/v1/hearthv1connect"
	"github.com/hearth-run/hearth/gen/serverless/serverlessconnect"
	"github.com/hearth-run/hearth/internal/kit/dial"
)

// Dialed reaches workers through the kit's dialer, in gRPC, which every worker of
// this contract speaks, or inside the process.
type Dialed struct{ dialer *dial.Dialer }

// Dial returns workers that are reached through dialer.
func Dial(dialer *dial.Dialer) Dialed { return Dialed{dialer} }

// Client returns a client for executions on the worker at uri.
func (d Dialed) Client(uri string) (serverlessconnect.ExecutionServiceClient, error) {
	client, err := d.dialer.GRPC(uri)
	if err != nil {
		return nil, err
	}
	return serverlessconnect.NewExecutionServiceClient(client), nil
}

// Zygotes returns a client for the zygotes of the worker at uri.
func (d Dialed) Zygotes(uri string) (hearthv1connect.ZygoteServiceClient, error) {
	client, err := d.dialer.GRPC(uri)
	if err != nil {
		return nil, err
	}
	return hearthv1connect.NewZygoteServiceClient(client), nil
}

// Check asks grpc.health.v1 at uri. A worker in this process lives as the process
// does; one that serves no health service has answered, which is all that is asked.
func (d Dialed) Check(ctx context.Context, uri string) error {
	if strings.HasPrefix(uri, "inprocess:") {
		_, err := d.dialer.GRPC(uri)
		return err
	}
	client, base, err := d.dialer.HTTP(uri, true)
	if err != nil {
		return err
	}
	res, err := grpchealth.NewClient(client, base, connectv1.WithGRPC()).Check(ctx, &grpchealth.CheckRequest{})
	switch {
	case err != nil && connectv1.CodeOf(err) == connectv1.CodeUnimplemented:
		return nil
	case err != nil:
		return fmt.Errorf("probe %s: %w", uri, err)
	case res.Status != grpchealth.StatusServing:
		return fmt.Errorf("probe %s: it is %s", uri, res.Status)
	}
	return nil
}

// Forget closes the idle connections to a worker that is gone.
func (d Dialed) Forget(uri string) { d.dialer.Forget(uri) }

// Verdict says whether err is what a worker itself has answered.
func Verdict(err error) bool {
	e, ok := errors.AsType[*connect.Error](err)
	return ok && e.IsRemote() && e.Code() != connect.CodeCanceled
}

// NotReached says whether err proves that the worker never heard of the call.
func NotReached(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}
