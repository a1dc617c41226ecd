package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/gen/hearth/v1/hearthv1connect"
	"github.com/hearth-run/hearth/gen/serverless"
	"github.com/hearth-run/hearth/gen/serverless/serverlessconnect"
	"github.com/hearth-run/hearth/internal/kit/dial"

	"github.com/hearth-run/hearth/bench/internal/load"
	"github.com/hearth-run/hearth/bench/internal/peer"
)

// open returns one caller for each of f.Callers, once the house can take calls.
func open(ctx context.Context, f flags, dialer *dial.Dialer, house *peer.Process) ([]load.Caller, error) {
	if f.Plane == "functions" {
		return functions(ctx, f, dialer, house)
	}
	client, err := dialer.Streams(house.Doors["router"])
	if err != nil {
		return nil, err
	}
	if err := awaitWorker(ctx, hearthv1connect.NewExecutionAdminServiceClient(client)); err != nil {
		return nil, err
	}
	router := serverlessconnect.NewProxyServiceClient(client)
	var callers []load.Caller
	for i := range f.Callers {
		session := ""
		if f.Plane == "sessions" {
			session = fmt.Sprint("session-", i)
		}
		callers = append(callers, execution(router, fmt.Sprint("soak-", i), session))
	}
	return callers, nil
}

func functions(ctx context.Context, f flags, dialer *dial.Dialer, house *peer.Process) ([]load.Caller, error) {
	var callers []load.Caller
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: f.Callers, DisableCompression: true}}
	for _, fn := range peer.Functions() {
		if fn.Runtime != f.Runtime {
			continue
		}
		names, err := peer.Create(ctx, dialer, house.Doors["controlplane"], fn, 1)
		if err != nil {
			return nil, err
		}
		url := house.Doors["gateway"] + "/v1/namespaces/default/runs/" + names[0] + ":invoke"
		for range f.Callers {
			callers = append(callers, peer.Post(client, url, []byte(`{"pad":"`+strings.Repeat("x", 90)+`"}`)))
		}
	}
	return callers, nil
}

// awaitWorker returns once a worker takes calls. Its first start makes a Python
// environment; the router has no call that tells its end, so it is asked.
func awaitWorker(ctx context.Context, admin hearthv1connect.ExecutionAdminServiceClient) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		res, err := admin.ListWorkers(ctx, &hearthv1.ListWorkersRequest{})
		if err != nil {
			return fmt.Errorf("wait for a worker: %w", err)
		}
		for _, w := range res.GetWorkers() {
			if w.GetState() == hearthv1.WorkerState_WORKER_STATE_READY {
				return nil
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("wait for a worker: %w", ctx.Err())
		}
	}
}

// body prints, computes and answers.
const body = `{"source":"def f(n):\n    print('n is', n)\n    return n * n","entry":"f","args":[7],"kwargs":{}}`

const wantAnswer = `"value":49`

// execution returns a caller of a small function, in a sandbox of its own unless a
// session is named.
func execution(router serverlessconnect.ProxyServiceClient, name, session string) load.Caller {
	var n atomic.Int64
	return func(ctx context.Context) error {
		stream, err := router.RequestExecution(ctx)
		if err != nil {
			return err
		}
		defer stream.Close()
		request := fmt.Sprint(name, "-", n.Add(1))
		for _, m := range []*serverless.ClientExecutionRequest{
			{RequestId: request, SessionId: session, Data: &serverless.ClientExecutionRequest_Config{Config: &serverless.ExecutionConfig{}}},
			{RequestId: request, SessionId: session, Data: &serverless.ClientExecutionRequest_Payload{Payload: []byte(body)}},
		} {
			// What the router says against it shows in its answer.
			if err := stream.Send(m); err != nil && !errors.Is(err, io.EOF) {
				return err
			}
		}
		if err := stream.CloseSend(); err != nil {
			return err
		}
		return check(stream)
	}
}

func check(stream serverlessconnect.ProxyServiceRequestExecutionClientStream) error {
	var answer strings.Builder
	for {
		res, err := stream.Receive()
		if errors.Is(err, io.EOF) {
			if !strings.Contains(strings.ReplaceAll(answer.String(), " ", ""), wantAnswer) {
				return fmt.Errorf("answered %q", answer.String())
			}
			return nil
		}
		if err != nil {
			return err
		}
		answer.Write(res.GetPayload())
	}
}
