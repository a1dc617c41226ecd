package router_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect/v2"

	"github.com/hearth-run/hearth/gen/serverless"
	"github.com/hearth-run/hearth/services/router"
)

// A worker that is stopped answers no probe: three in a row evict it, its call and
// its session are told, and when it goes on it registers again.
func TestStoppedWorker(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		w := b.meet("w1")
		w.set(hang)
		call := b.async("r", "s")
		b.setDeaf(w.uri, true)
		time.Sleep(14 * time.Second) // two probes have failed
		synctest.Wait()
		if !b.load("w1") {
			t.Error("evicted before the third failure")
		}
		time.Sleep(4 * time.Second)
		o := <-call
		wants(t, "the call", o.err, connect.CodeUnavailable, "WORKER_LOST")
		if o.got != "part" {
			t.Errorf("%q was relayed", o.got)
		}
		_, _, err := b.call("r2", "s", nil)
		wants(t, "the session", err, connect.CodeNotFound, "SESSION_EXPIRED")
		_, _, err = b.call("r3", "", nil)
		wants(t, "nobody left", err, connect.CodeUnavailable, "NO_WORKER")
		if len(b.gone) != 1 || b.gone[0] != w.uri {
			t.Errorf("forgotten: %v", b.gone)
		}
		// SIGCONT: its next report is answered updated=false, so it registers.
		b.setDeaf(w.uri, false)
		if b.load("w1") {
			t.Error("an evicted worker is known")
		}
		w.set(echo)
		b.register(w)
		if got, _, err := b.call("r4", "", nil, "x"); err != nil || got != "x" {
			t.Errorf("%q, %v", got, err)
		}
	})
}

// A probe that fails once or twice evicts nobody.
func TestProbesRecover(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		w := b.meet("w1")
		for range 5 {
			b.setDeaf(w.uri, true)
			time.Sleep(10 * time.Second)
			b.setDeaf(w.uri, false)
			time.Sleep(5 * time.Second)
			synctest.Wait()
			if !b.load("w1") {
				t.Fatal("evicted")
			}
		}
	})
}

// Silence evicts too, though the probes are answered; reports keep a worker.
func TestSilentWorker(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.meet("w1")
		b.meet("w2")
		for range 4 {
			time.Sleep(10 * time.Second)
			if !b.load("w2") {
				t.Fatal("a worker that reports was evicted")
			}
		}
		synctest.Wait()
		if b.load("w1") {
			t.Error("a silent worker is still known")
		}
	})
}

// The calls of a session take turns in the order of their arrival, in one container.
func TestSessionTurns(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		w := b.meet("w1")
		first := b.start(t.Context(), "r1", "s", nil)
		send(first, "x")
		if _, err := first.Receive(); err != nil {
			t.Fatal(err)
		}
		second, third := b.async("r2", "s"), b.async("r3", "s")
		if n := len(w.headers()); n != 1 {
			t.Fatalf("%d calls of one session run", n)
		}
		if got, _, err := b.call("other", "", nil, "free"); err != nil || got != "free" {
			t.Errorf("a call without a session waits for nobody: %q, %v", got, err)
		}
		if _, _, err := finish(first); err != nil {
			t.Fatal(err)
		}
		for _, c := range []<-chan outcome{second, third} {
			if o := <-c; o.err != nil {
				t.Error(o.err)
			}
		}
		var order []string
		for _, header := range w.headers() {
			if header.GetSessionId() == "s" {
				order = append(order, header.GetRequestId()+"@"+header.GetContainerId())
			}
		}
		if len(order) != 3 || order[0] != "r1@" || order[1] != "r2@k-r1" || order[2] != "r3@k-r1" {
			t.Errorf("%v", order)
		}
	})
}

// A wait for the session is bounded, and those behind keep their place.
func TestSessionWait(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		w := b.meet("w1")
		first := b.start(t.Context(), "r1", "s", nil)
		send(first, "x")
		if _, err := first.Receive(); err != nil {
			t.Fatal(err)
		}
		second := b.async("r2", "s")
		for range 5 {
			time.Sleep(10 * time.Second)
			b.load("w1")
		}
		third := b.async("r3", "s")
		time.Sleep(10 * time.Second)
		wants(t, "60 s", (<-second).err, connect.CodeResourceExhausted, "SESSION_WAIT_OVER")
		if _, _, err := finish(first); err != nil {
			t.Fatal(err)
		}
		if o := <-third; o.err != nil {
			t.Error(o.err)
		}
		if n := len(w.headers()); n != 2 {
			t.Errorf("%d calls ran, want 2", n)
		}
	})
}

// A failed call ends its session, and those who wait are told at once.
func TestSessionFails(t *testing.T) {
	for name, do := range map[string]behaviour{
		"error": func(_ context.Context, header *serverless.WorkerExecutionRequest, s workerSide) error {
			s.Send(answer(header, nil))
			s.Receive()
			return connect.NewError(connect.CodeUnavailable, "the executor died")
		},
		"no success": func(_ context.Context, header *serverless.WorkerExecutionRequest, s workerSide) error {
			s.Send(answer(header, nil))
			s.Receive()
			last := answer(header, nil)
			last.Success = false
			return s.Send(last)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bubble) {
				w := b.meet("w1")
				w.set(do)
				first := b.start(t.Context(), "r1", "s", nil)
				if _, err := first.Receive(); err != nil {
					t.Fatal(err)
				}
				second := b.async("r2", "s")
				send(first, "x")
				finish(first)
				wants(t, "who waits", (<-second).err, connect.CodeNotFound, "SESSION_EXPIRED")
				// The worker's late word of the container does not bring it back.
				b.report("w1", "k-r1", "s", "r1", serverless.Status_STATUS_READY)
				_, _, err := b.call("r3", "s", nil)
				wants(t, "afterwards", err, connect.CodeNotFound, "SESSION_EXPIRED")
				if n := len(w.headers()); n != 1 {
					t.Errorf("%d calls ran", n)
				}
			})
		})
	}
}

// What the reports say of a session's container.
func TestSessionReports(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.meet("w1")
		in := func(request, session string) (string, error) {
			_, last, err := b.call(request, session, nil, "x")
			return last.GetContainerId(), err
		}
		// Idle for too long: REMOVED, and the session is told.
		if _, err := in("r1", "s"); err != nil {
			t.Fatal(err)
		}
		b.report("w1", "k-r1", "s", "", serverless.Status_STATUS_REMOVED)
		_, err := in("r2", "s")
		wants(t, "removed", err, connect.CodeNotFound, "SESSION_EXPIRED")
		// ERROR only unpins: the next call starts cold.
		if _, err := in("r3", "t"); err != nil {
			t.Fatal(err)
		}
		b.report("w1", "k-r3", "t", "", serverless.Status_STATUS_ERROR)
		if got, err := in("r4", "t"); err != nil || got != "k-r4" {
			t.Errorf("%q, %v", got, err)
		}
		// A container that was started from a checkpoint, and a call that wants none.
		b.registry.PostExecutorStatus(t.Context(), &serverless.ExecutorStatus{WorkerId: "w1", ContainerId: "z", SessionId: "u", CheckpointId: "np", Status: serverless.Status_STATUS_READY})
		_, _, err = b.call("r5", "u", &serverless.ExecutionConfig{DisableOptimizedExecution: true}, "x")
		wants(t, "restored", err, connect.CodeFailedPrecondition, "SESSION_RESTORED")
		if got, err := in("r6", "u"); err != nil || got != "z" {
			t.Errorf("nothing was to be torn down: %q, %v", got, err)
		}
		// The worker's end takes its sessions with it, and lets its calls end.
		w := b.calls["uri-w1"]
		call := b.start(t.Context(), "r7", "v", nil)
		send(call, "x")
		if _, err := call.Receive(); err != nil {
			t.Fatal(err)
		}
		b.register(w, func(s *serverless.WorkerStatus) { s.Status = serverless.Status_STATUS_REMOVED })
		if _, _, err := finish(call); err != nil {
			t.Errorf("a worker that leaves lets its calls end: %v", err)
		}
		for _, session := range []string{"u", "v"} {
			_, err = in("r8", session)
			wants(t, session, err, connect.CodeNotFound, "SESSION_EXPIRED")
		}
	})
}

// The tombstone of a session lasts an hour.
func TestTombstone(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.meet("w1")
		if _, _, err := b.call("r1", "s", nil, "x"); err != nil {
			t.Fatal(err)
		}
		b.report("w1", "k-r1", "s", "", serverless.Status_STATUS_REMOVED)
		_, _, err := b.call("r2", "s", nil)
		wants(t, "expired", err, connect.CodeNotFound, "SESSION_EXPIRED")
		time.Sleep(time.Hour + time.Minute)
		b.meet("w1")
		if _, _, err := b.call("r3", "s", nil, "x"); err != nil {
			t.Errorf("after an hour: %v", err)
		}
	})
}

// A call that waits for room is refused when the time is over.
func TestQueueTime(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		w := b.meet("w1")
		b.register(w, func(s *serverless.WorkerStatus) { s.MaxExecutors = 1 })
		first := b.start(t.Context(), "r1", "", nil)
		send(first, "x")
		first.Receive()
		before := time.Now()
		_, _, err := b.call("r2", "", nil)
		wants(t, "still full", err, connect.CodeResourceExhausted, "NO_CAPACITY")
		if waited := time.Since(before); waited != 20*time.Second {
			t.Errorf("waited %v", waited)
		}
		finish(first)
	}, func(c *router.Config) { c.QueueWait = 20 * time.Second })
}

// A call that its only worker refuses waits like one that fits nowhere, and is
// offered again when the worker has reported.
func TestQueueAfterRefusal(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		w := b.meet("w1")
		w.set(refuse)
		call := b.async("r1", "")
		if n := b.service.Counters()["executions_queued"]; n != 1 {
			t.Fatalf("%d calls wait", n)
		}
		w.set(echo)
		b.load("w1")
		if o := <-call; o.err != nil || o.got != "r1" {
			t.Errorf("%+v", o)
		}
		if n := len(w.headers()); n != 2 {
			t.Errorf("the worker was asked %d times", n)
		}
		w.set(refuse)
		_, _, err := b.call("r2", "", nil, "x")
		wants(t, "refused until the time is over", err, connect.CodeResourceExhausted, "WORKER_FULL")
	}, func(c *router.Config) { c.QueueWait = 20 * time.Second })
}
