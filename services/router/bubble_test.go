package router_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connectinprocess"

	"github.com/hearth-run/hearth/gen/hearth/v1/hearthv1connect"
	"github.com/hearth-run/hearth/gen/serverless"
	"github.com/hearth-run/hearth/gen/serverless/serverlessconnect"
	"github.com/hearth-run/hearth/services/router"
)

// bubble is a router in a synctest bubble: no sockets, the clock is the test's.
type bubble struct {
	*house
	mu    sync.Mutex
	calls map[string]*fakeWorker // by uri
	deaf  map[string]bool        // uris that answer no probe
	gone  []string
}

func (b *bubble) Client(uri string) (serverlessconnect.ExecutionServiceClient, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	w := b.calls[uri]
	if w == nil {
		return nil, errors.New("nobody there")
	}
	rpc := connect.NewServer()
	serverlessconnect.RegisterExecutionServiceHandler(rpc, w)
	return serverlessconnect.NewExecutionServiceClient(connect.NewClient(connectinprocess.New(rpc))), nil
}

// Check never answers for a worker that is deaf, as one that was stopped.
func (b *bubble) Check(ctx context.Context, uri string) error {
	b.mu.Lock()
	deaf := b.deaf[uri]
	b.mu.Unlock()
	if deaf {
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}

func (b *bubble) Zygotes(string) (hearthv1connect.ZygoteServiceClient, error) {
	return nil, errors.New("no zygotes here")
}

func (b *bubble) Forget(uri string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.gone = append(b.gone, uri)
}

func (b *bubble) setDeaf(uri string, deaf bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.deaf[uri] = deaf
}

// inBubble plays a story of time. The dispatcher has no interceptors: their
// validator belongs to the world outside.
func inBubble(t *testing.T, story func(t *testing.T, b *bubble), change ...func(*router.Config)) {
	synctest.Test(t, func(t *testing.T) {
		b := &bubble{calls: map[string]*fakeWorker{}, deaf: map[string]bool{}}
		cfg := router.Default()
		for _, c := range change {
			c(&cfg)
		}
		service, err := router.New(cfg, router.Deps{Log: quiet, Workers: b})
		if err != nil {
			t.Fatal(err)
		}
		rpc := connect.NewServer()
		service.Register(rpc)
		client := connect.NewClient(connectinprocess.New(rpc))
		b.house = &house{t: t, service: service, proxy: serverlessconnect.NewProxyServiceClient(client), registry: serverlessconnect.NewRegistryServiceClient(client)}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- service.Run(ctx) }()
		story(t, b)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if c := service.Counters(); c["executions_in_flight"]+c["reservations"] != 0 {
			t.Errorf("left at the end: %v", c)
		}
	})
}

func (b *bubble) meet(id string) *fakeWorker {
	w := &fakeWorker{id: id, uri: "uri-" + id, do: echo}
	b.mu.Lock()
	b.calls[w.uri] = w
	b.mu.Unlock()
	b.register(w)
	return w
}

func (b *bubble) load(id string) bool {
	b.t.Helper()
	res, err := b.registry.PostWorkerUtilization(b.t.Context(), &serverless.WorkerUtilization{WorkerId: id, CpuTotal: 1000})
	if err != nil {
		b.t.Fatal(err)
	}
	return res.GetUpdated()
}

// hang is a worker that was stopped in the middle of a call.
func hang(ctx context.Context, header *serverless.WorkerExecutionRequest, s workerSide) error {
	if err := s.Send(answer(header, []byte("part"))); err != nil {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
}

type outcome struct {
	got string
	err error
}

// async is a call in its own goroutine.
func (b *bubble) async(request, session string) <-chan outcome {
	done := make(chan outcome, 1)
	go func() {
		got, _, err := b.call(request, session, nil, request)
		done <- outcome{got, err}
	}()
	synctest.Wait()
	return done
}
