package reports_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hearth-run/hearth/gen/serverless"
	"github.com/hearth-run/hearth/gen/serverless/serverlessconnect"
	"github.com/hearth-run/hearth/services/worker/internal/reports"
)

// fakeRouter keeps what it is told in order.
type fakeRouter struct {
	serverlessconnect.RegistryServiceClient
	mu    sync.Mutex
	told  []string
	down  bool
	knows bool
}

func (f *fakeRouter) tell(what string) (*serverless.RegistryUpdateResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.down {
		return nil, errors.New("down")
	}
	f.told = append(f.told, what)
	return &serverless.RegistryUpdateResponse{Updated: f.knows}, nil
}

func (f *fakeRouter) PostWorkerStatus(_ context.Context, s *serverless.WorkerStatus) (*serverless.RegistryUpdateResponse, error) {
	f.mu.Lock()
	f.knows = f.knows || !f.down
	f.mu.Unlock()
	return f.tell("worker " + s.GetStatus().String())
}

func (f *fakeRouter) PostExecutorStatus(_ context.Context, s *serverless.ExecutorStatus) (*serverless.RegistryUpdateResponse, error) {
	return f.tell(s.GetContainerId() + " " + s.GetStatus().String())
}

func (f *fakeRouter) PostWorkerUtilization(context.Context, *serverless.WorkerUtilization) (*serverless.RegistryUpdateResponse, error) {
	return f.tell("load")
}

func (f *fakeRouter) PostExecutorUtilization(context.Context, *serverless.ExecutorUtilization) (*serverless.RegistryUpdateResponse, error) {
	return f.tell("container load")
}

func (f *fakeRouter) set(change func()) { f.mu.Lock(); defer f.mu.Unlock(); change() }

func (f *fakeRouter) take() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	defer func() { f.told = nil }()
	return f.told
}

type fakeSource struct{}

func (fakeSource) Worker() *serverless.WorkerStatus {
	return &serverless.WorkerStatus{WorkerId: "w", Status: serverless.Status_STATUS_READY}
}

func (fakeSource) Utilization() (*serverless.WorkerUtilization, []*serverless.ExecutorUtilization) {
	return &serverless.WorkerUtilization{WorkerId: "w"}, nil
}

func (fakeSource) Containers() []*serverless.ExecutorStatus {
	return []*serverless.ExecutorStatus{{ContainerId: "live", Status: serverless.Status_STATUS_READY}}
}

func TestARouterIsToldAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		router := &fakeRouter{}
		reporter := reports.New(router, fakeSource{}, 10*time.Second, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { reporter.Run(ctx); close(done) }()
		expect := func(when string, want ...string) {
			t.Helper()
			synctest.Wait()
			if got := router.take(); !slices.Equal(got, want) {
				t.Errorf("%s: told %q, want %q", when, got, want)
			}
		}
		expect("at the start", "worker STATUS_READY", "live STATUS_READY", "load")
		reporter.Post(&serverless.ExecutorStatus{ContainerId: "c", Status: serverless.Status_STATUS_BUSY})
		reporter.Post(&serverless.ExecutorStatus{ContainerId: "c", Status: serverless.Status_STATUS_REMOVED})
		expect("a container's life", "c STATUS_BUSY", "c STATUS_REMOVED")
		time.Sleep(10 * time.Second)
		expect("after the interval", "load")

		router.set(func() { router.knows = false }) // it was restarted
		reporter.Post(&serverless.ExecutorStatus{ContainerId: "d", Status: serverless.Status_STATUS_BUSY})
		expect("a router that forgot", "d STATUS_BUSY", "worker STATUS_READY", "live STATUS_READY", "load")

		router.set(func() { router.down, router.knows = true, false })
		reporter.Post(&serverless.ExecutorStatus{ContainerId: "live", Status: serverless.Status_STATUS_BUSY}) // older than what is told anew
		reporter.Post(&serverless.ExecutorStatus{ContainerId: "e", Status: serverless.Status_STATUS_REMOVED})
		expect("a router that is down")
		router.set(func() { router.down = false })
		time.Sleep(2 * time.Second)
		expect("it is back", "worker STATUS_READY", "live STATUS_READY", "load", "e STATUS_REMOVED")
		cancel()
		<-done
		reporter.Leave(t.Context())
		expect("the end", "worker STATUS_REMOVED")
	})
}
