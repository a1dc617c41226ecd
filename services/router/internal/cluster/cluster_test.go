package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/hearth-run/hearth/services/router/internal/cluster"
	"github.com/hearth-run/hearth/services/router/internal/placement"
	"github.com/hearth-run/hearth/services/router/internal/sessions"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// storm is many calls at once, in few sessions, on workers that come and go.
type storm struct {
	c       *cluster.Cluster
	workers [6]atomic.Int32 // calls that run there
	inTurn  [8]atomic.Int32 // calls of each session that have their turn
	failed  atomic.Pointer[string]
}

func (s *storm) fail(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	s.failed.CompareAndSwap(nil, &text)
}

// TestStorm: whatever comes together, a session has one turn at a time, no worker
// holds more containers than it allows, and at the end nothing is left.
func TestStorm(t *testing.T) {
	s := &storm{c: cluster.New(cluster.Config{
		SessionWait: time.Minute, QueueWait: time.Minute, QueueMax: 1000,
		Placement: placement.Config{Fill: 0.9, Silence: time.Hour, Lease: time.Hour},
		Sessions:  sessions.Config{Tombstones: 4, Age: time.Hour},
	}, func(string) {}, slog.New(slog.DiscardHandler))}
	for i := range s.workers {
		s.register(i)
	}
	stop := make(chan struct{})
	var chaos, calls sync.WaitGroup
	chaos.Go(func() { s.chaos(stop) })
	for g := range 16 {
		calls.Go(func() {
			rng := rand.New(rand.NewPCG(7, uint64(g)))
			for i := range 150 {
				s.call(rng, fmt.Sprintf("r%d-%d", g, i))
			}
		})
	}
	calls.Wait()
	close(stop)
	chaos.Wait()
	if text := s.failed.Load(); text != nil {
		t.Error(*text)
	}
	if inFlight, queued, reserved := s.c.Load(); inFlight+queued+reserved != 0 {
		t.Errorf("left: %d calls, %d in the queue, %d reservations", inFlight, queued, reserved)
	}
	for _, v := range s.c.Sessions() {
		if v.Running != "" || v.Waiting != 0 {
			t.Errorf("left: %+v", v)
		}
	}
	for _, v := range s.c.Workers() {
		if v.InFlight != 0 {
			t.Errorf("left: %d calls on %s", v.InFlight, v.ID)
		}
	}
}

func (s *storm) register(i int) {
	s.c.Worker(placement.Worker{ID: fmt.Sprintf("w%d", i), URI: "u", Flavor: "cpu", MemTotal: 1000, MaxContainers: 3}, placement.Ready)
}

// chaos evicts and registers workers, and reports loads, until stop.
func (s *storm) chaos(stop <-chan struct{}) {
	rng := rand.New(rand.NewPCG(1, 2))
	for {
		select {
		case <-stop:
			return
		default:
		}
		i := rng.IntN(len(s.workers))
		id := fmt.Sprintf("w%d", i)
		switch rng.IntN(20) {
		case 0:
			s.c.Evict(id, "u", "chaos")
			s.register(i)
		case 1:
			s.c.Container(placement.Container{ID: fmt.Sprintf("k%d", rng.IntN(100)), Worker: id, Session: fmt.Sprintf("s%d", rng.IntN(8)), State: placement.Error}, "")
		default:
			s.c.Sweep()
		}
		runtime.Gosched()
	}
}

func (s *storm) call(rng *rand.Rand, id string) {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	n := rng.IntN(12)
	session := ""
	if n < len(s.inTurn) {
		session = fmt.Sprintf("s%d", n)
	}
	call, err := s.c.Enter(id, session, nil, cancel)
	if err != nil {
		s.fail("enter: %v", err)
		return
	}
	outcome := sessions.Untouched
	defer func() { s.c.Leave(call, outcome) }()
	if rng.IntN(10) == 0 {
		cancel(errors.New("the client went")) // wherever it is by then
	}
	pin, err := s.c.Turn(ctx, call)
	if err != nil {
		return
	}
	if session != "" {
		if s.inTurn[n].Add(1) != 1 {
			s.fail("two calls of session %s have their turn", session)
		}
		defer s.inTurn[n].Add(-1)
	}
	outcome = s.run(ctx, rng, call, pin, id, session)
}

func (s *storm) run(ctx context.Context, rng *rand.Rand, call *cluster.Call, pin sessions.Pin, id, session string) sessions.Outcome {
	to, err := s.c.Place(ctx, call, placement.Request{Memory: 10, Worker: pin.Worker, Container: pin.Container})
	if err != nil {
		return sessions.Untouched
	}
	container := to.Container
	if container == "" {
		container = "k-" + id
	}
	s.c.Answered(call, to.Worker, container, "")
	outcome := []sessions.Outcome{sessions.Kept, sessions.Kept, sessions.Failed}[rng.IntN(3)]
	if ctx.Err() != nil {
		outcome = sessions.Failed
	}
	keep := session != "" && outcome == sessions.Kept
	s.c.Vacate(call, keep)
	s.c.Vacate(call, !keep) // does nothing
	if keep && rng.IntN(3) == 0 {
		s.c.Container(placement.Container{ID: container, Worker: to.Worker, Session: session, State: placement.Removed}, "")
	}
	return outcome
}

// Two calls of one id, and an id that is free again.
func TestEnter(t *testing.T) {
	c := cluster.New(cluster.Config{SessionWait: time.Second}, func(string) {}, slog.New(slog.DiscardHandler))
	call, err := c.Enter("r", "", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Enter("r", "s", nil, nil); !errors.Is(err, cluster.ErrInFlight) {
		t.Errorf("twice: %v", err)
	}
	c.Leave(call, sessions.Untouched)
	if call, err = c.Enter("r", "s", nil, nil); err != nil {
		t.Errorf("again: %v", err)
	}
	c.Leave(call, sessions.Untouched)
}

// An eviction that comes late does not hit the worker that has come back elsewhere.
func TestLateEviction(t *testing.T) {
	c := cluster.New(cluster.Config{}, func(string) {}, slog.New(slog.DiscardHandler))
	if err := c.Worker(placement.Worker{ID: "w", URI: "new"}, placement.Ready); err != nil {
		t.Fatal(err)
	}
	c.Evict("w", "old", "unreachable")
	if !c.Seen("w") {
		t.Error("the worker at its new place was evicted")
	}
	c.Evict("w", "new", "unreachable")
	if c.Seen("w") {
		t.Error("the worker is still there")
	}
}
