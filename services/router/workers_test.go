package router_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"connectrpc.com/connect/v2"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/gen/serverless"
	"github.com/hearth-run/hearth/internal/kit/edge"
	"github.com/hearth-run/hearth/services/router"
)

// A worker that refuses before anything ran is left out, and the next one gets the
// whole body, what was sent to the first included.
func TestNextWorker(t *testing.T) {
	overBoth(t, func(t *testing.T, open opener) {
		h := open()
		full, other := h.worker("w1"), h.worker("w2")
		full.set(refuse)
		other.set(whole)
		got, last, err := h.call("r", "s", nil, "a", "b", "c")
		if err != nil || got != "w2:abc" || last.GetWorkerId() != "w2" {
			t.Errorf("%q, %v, %v", got, last, err)
		}
		if len(full.headers()) != 1 {
			t.Errorf("w1 was asked %d times", len(full.headers()))
		}
		h.idle()
	})
}

// Everybody refuses: the refusal is told, after a bounded number of workers.
func TestAllRefuse(t *testing.T) {
	h := open(t, false, func(c *router.Config) { c.Attempts = 2 })
	var all []*fakeWorker
	for i := range 3 {
		w := h.worker(fmt.Sprintf("w%d", i))
		w.set(refuse)
		all = append(all, w)
	}
	_, _, err := h.call("r", "s", nil, "x")
	wants(t, "all full", err, connect.CodeResourceExhausted, "WORKER_FULL")
	if n := len(all[0].headers()) + len(all[1].headers()) + len(all[2].headers()); n != 2 {
		t.Errorf("%d workers were asked, want 2", n)
	}
	// Nothing ran: the session is as it was, and the next call creates it.
	all[0].set(echo)
	if _, _, err := h.call("r", "s", nil, "x"); err != nil {
		t.Error(err)
	}
	h.idle()
}

// A body that is larger than what is kept cannot be sent again.
func TestRefusalAfterMuch(t *testing.T) {
	h := open(t, false, func(c *router.Config) { c.ReplayBytes = 3 })
	full, other := h.worker("w1"), h.worker("w2")
	full.set(func(ctx context.Context, header *serverless.WorkerExecutionRequest, s workerSide) error {
		for range 2 {
			if _, err := s.Receive(); err != nil {
				return err
			}
		}
		return edge.New(connect.CodeResourceExhausted, "WORKER_FULL", "full", nil)
	})
	_, _, err := h.call("r", "", nil, "ab", "cd")
	wants(t, "too much was sent", err, connect.CodeResourceExhausted, "WORKER_FULL")
	if len(other.headers()) != 0 {
		t.Error("half a body went to the next worker")
	}
	h.idle()
}

// After part of an answer was relayed nothing is tried again.
func TestNothingTwice(t *testing.T) {
	overBoth(t, func(t *testing.T, open opener) {
		h := open()
		w, other := h.worker("w1"), h.worker("w2")
		w.set(func(ctx context.Context, header *serverless.WorkerExecutionRequest, s workerSide) error {
			s.Send(answer(header, []byte("part")))
			return edge.New(connect.CodeResourceExhausted, "WORKER_FULL", "full", nil)
		})
		got, _, err := h.call("r", "s", nil, "x")
		wants(t, "after a part", err, connect.CodeResourceExhausted, "WORKER_FULL")
		if got != "part" || len(other.headers()) != 0 {
			t.Errorf("%q, and w2 heard of %d calls", got, len(other.headers()))
		}
		_, _, err = h.call("r2", "s", nil)
		wants(t, "its session", err, connect.CodeNotFound, "SESSION_EXPIRED")
		h.idle()
	})
}

// A worker that cannot be reached never ran the call; the next one does. One that
// dies in the middle is Unavailable, and its session is told.
func TestWorkerDies(t *testing.T) {
	h := open(t, true)
	h.register(&fakeWorker{id: "a-dead", uri: "http://127.0.0.1:1"})
	w := h.worker("w1")
	if got, last, err := h.call("r", "", nil, "x"); err != nil || got != "x" || last.GetWorkerId() != "w1" {
		t.Errorf("%q, %v, %v", got, last, err)
	}
	h.registry.PostWorkerStatus(t.Context(), &serverless.WorkerStatus{WorkerId: "a-dead", Status: serverless.Status_STATUS_REMOVED})
	stream := h.start(t.Context(), "r", "s", nil)
	send(stream, "x")
	if _, err := stream.Receive(); err != nil {
		t.Fatal(err)
	}
	w.cut()
	_, _, err := finish(stream)
	wants(t, "died in the middle", err, connect.CodeUnavailable, "WORKER_LOST")
	_, _, err = h.call("r", "s", nil)
	wants(t, "its session", err, connect.CodeNotFound, "SESSION_EXPIRED")
	_, _, err = h.call("r", "", nil)
	wants(t, "nobody can be reached", err, connect.CodeUnavailable, "WORKER_UNREACHABLE")
	h.idle()
}

// A full cluster queues for a bounded time, first come, first served.
func TestQueue(t *testing.T) {
	h := open(t, false, func(c *router.Config) { c.QueueWait, c.QueueMax = time.Minute, 1 })
	w := h.worker("w1", func(s *serverless.WorkerStatus) { s.MaxExecutors = 1 })
	first := h.start(t.Context(), "r1", "", nil)
	send(first, "x")
	if _, err := first.Receive(); err != nil {
		t.Fatal(err)
	}
	type outcome struct {
		got string
		err error
	}
	second := make(chan outcome, 1)
	go func() {
		got, _, err := h.call("r2", "", nil, "queued")
		second <- outcome{got, err}
	}()
	for h.service.Counters()["executions_queued"] == 0 {
		runtime.Gosched()
	}
	_, _, err := h.call("r3", "", nil)
	wants(t, "queue full", err, connect.CodeResourceExhausted, "QUEUE_FULL")
	if len(w.headers()) != 1 {
		t.Errorf("the worker of one container heard of %d calls", len(w.headers()))
	}
	if _, _, err := finish(first); err != nil {
		t.Error(err)
	}
	if o := <-second; o.err != nil || o.got != "queued" {
		t.Errorf("%+v", o)
	}
	h.idle()
}

// A restarted router knows nobody; updated=false makes workers register again, and
// their reports bring back capacities, containers and sessions.
func TestRestart(t *testing.T) {
	h := open(t, true)
	w := h.worker("w1")
	if _, _, err := h.call("r1", "s", nil, "x"); err != nil {
		t.Fatal(err)
	}
	h.stop()
	h.idle()

	again := open(t, true)
	if again.report("w1", "k-r1", "s", "", serverless.Status_STATUS_READY) {
		t.Fatal("a new router knows the worker")
	}
	res, err := again.registry.PostWorkerUtilization(t.Context(), &serverless.WorkerUtilization{WorkerId: "w1"})
	if err != nil || res.GetUpdated() {
		t.Fatalf("%v, %v", res, err)
	}
	again.register(w)
	if !again.report("w1", "k-r1", "s", "", serverless.Status_STATUS_READY) {
		t.Fatal("the worker has registered")
	}
	if _, last, err := again.call("r2", "s", nil, "x"); err != nil || last.GetContainerId() != "k-r1" {
		t.Errorf("the session went to %v, %v", last, err)
	}
	again.idle()
}

// Two routers on one set of workers: both place, the worker decides, and a session
// is found through either.
func TestSeveralRouters(t *testing.T) {
	one := open(t, true)
	two := openWith(t, true, router.Deps{Log: quiet, Dialer: one.dialer})
	small := one.worker("w1", func(s *serverless.WorkerStatus) { s.MaxExecutors = 1 })
	two.register(small, func(s *serverless.WorkerStatus) { s.MaxExecutors = 1 })
	big := one.worker("w2", func(s *serverless.WorkerStatus) { s.MemTotal = 2 << 30 })
	two.register(big, func(s *serverless.WorkerStatus) { s.MemTotal = 2 << 30 })

	busy := one.start(t.Context(), "r1", "s", nil)
	send(busy, "x")
	if msg, err := busy.Receive(); err != nil || msg.GetWorkerId() != "w1" {
		t.Fatal(msg, err)
	}
	small.set(refuse) // it has one container, and that is taken
	if _, last, err := two.call("r2", "", nil, "y"); err != nil || last.GetWorkerId() != "w2" {
		t.Errorf("the second router's call: %v, %v", last, err)
	}
	small.set(echo)
	if _, _, err := finish(busy); err != nil {
		t.Fatal(err)
	}
	two.report("w1", "k-r1", "s", "r1", serverless.Status_STATUS_READY)
	if _, last, err := two.call("r3", "s", nil, "z"); err != nil || last.GetContainerId() != "k-r1" {
		t.Errorf("the session through the other router: %v, %v", last, err)
	}
	one.idle()
	two.idle()
}

func TestTokens(t *testing.T) {
	overBoth(t, func(t *testing.T, open opener) {
		h := open(func(c *router.Config) { c.Token, c.WorkerToken = "clients", "workers" })
		_, _, err := h.call("r", "", nil)
		wants(t, "no token", err, connect.CodeUnauthenticated, "TOKEN_INVALID")
		_, err = h.admin.ListWorkers(t.Context(), &hearthv1.ListWorkersRequest{})
		wants(t, "admin without", err, connect.CodeUnauthenticated, "TOKEN_INVALID")
		show := func(token string) context.Context {
			ctx, info := connect.NewClientContext(t.Context())
			info.RequestHeader().Set("Authorization", token)
			return ctx
		}
		status := &serverless.WorkerStatus{WorkerId: "w", Status: serverless.Status_STATUS_READY}
		_, err = h.registry.PostWorkerStatus(show("Bearer clients"), status)
		wants(t, "the clients' token", err, connect.CodeUnauthenticated, "TOKEN_INVALID")
		if _, err := h.registry.PostWorkerStatus(show("Bearer workers"), status); err != nil {
			t.Error(err)
		}
		for token, reason := range map[string]string{"Bearer wrong": "TOKEN_INVALID", "clients": "TOKEN_INVALID", "bearer clients": "NO_WORKER"} {
			stream, err := h.proxy.RequestExecution(show(token))
			if err != nil {
				t.Fatal(err)
			}
			stream.Send(&serverless.ClientExecutionRequest{RequestId: "r", Data: &serverless.ClientExecutionRequest_Config{Config: &serverless.ExecutionConfig{}}})
			if _, _, err := finish(stream); edge.Reason(err) != reason {
				t.Errorf("%q: %v, want %s", token, err, reason)
			}
		}
	})
}

// What the router knows is told, for people.
func TestAdmin(t *testing.T) {
	h := open(t, false)
	h.worker("w1", func(s *serverless.WorkerStatus) { s.CheckpointIds = []string{"np"} })
	h.worker("w2", func(s *serverless.WorkerStatus) { s.Status = serverless.Status_STATUS_ERROR })
	stream := h.start(t.Context(), "r1", "s", nil)
	send(stream, "x")
	if _, err := stream.Receive(); err != nil {
		t.Fatal(err)
	}
	workers, err := h.admin.ListWorkers(t.Context(), &hearthv1.ListWorkersRequest{})
	if err != nil || len(workers.GetWorkers()) != 2 {
		t.Fatal(workers, err)
	}
	w := workers.GetWorkers()[0]
	if w.GetWorkerId() != "w1" || w.GetMemTaken() != 1<<30 || w.GetInFlight() != 1 || w.GetExecutors() != 1 || len(w.GetContainers()) != 1 || w.GetCheckpointIds()[0] != "np" {
		t.Errorf("%v", w)
	}
	if got := workers.GetWorkers()[1].GetState(); got != hearthv1.WorkerState_WORKER_STATE_ERROR {
		t.Errorf("w2 is %v", got)
	}
	sessions, err := h.admin.ListSessions(t.Context(), &hearthv1.ListSessionsRequest{})
	if err != nil || len(sessions.GetSessions()) != 1 {
		t.Fatal(sessions, err)
	}
	s := sessions.GetSessions()[0]
	if s.GetSessionId() != "s" || s.GetState() != hearthv1.SessionState_SESSION_STATE_PINNED || s.GetContainerId() != "k-r1" || s.GetRequestId() != "r1" {
		t.Errorf("%v", s)
	}
	if _, _, err := finish(stream); err != nil {
		t.Error(err)
	}
	counters, err := h.admin.GetCounters(t.Context(), &hearthv1.GetCountersRequest{})
	if c := counters.GetCounters(); err != nil || c["executions_started"] != 1 || c["executions_succeeded"] != 1 || c["starts_cold"] != 1 {
		t.Errorf("%v, %v", c, err)
	}
	_, err = h.registry.PostWorkerStatus(t.Context(), &serverless.WorkerStatus{WorkerId: "w1"})
	wants(t, "no status", err, connect.CodeInvalidArgument, "STATUS_INVALID")
	h.idle()
}

// A stop ends the calls that are left, and says why.
func TestStop(t *testing.T) {
	h := open(t, false)
	w := h.worker("w1")
	entered := make(chan struct{})
	w.set(func(ctx context.Context, header *serverless.WorkerExecutionRequest, s workerSide) error {
		close(entered)
		<-ctx.Done()
		return ctx.Err()
	})
	stream := h.start(t.Context(), "r", "", nil)
	<-entered
	go h.stop()
	_, _, err := finish(stream)
	wants(t, "stopped", err, connect.CodeUnavailable, "SHUTTING_DOWN")
	h.stop()
	_, _, err = h.call("r2", "", nil)
	wants(t, "after the stop", err, connect.CodeUnavailable, "SHUTTING_DOWN")
	h.idle()
}
