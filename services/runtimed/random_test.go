package runtimed_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect/v2"

	executorv1 "github.com/hearth-run/hearth/gen/executor/v1"
	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/internal/kit/edge"
	"github.com/hearth-run/hearth/internal/kit/hop"
)

// Random faults against one node, in synthetic time: outages of the control plane
// and of the Runtime Server, lost registrations, stops of the process, releases,
// later attempts. Whatever happens: no call passes after the lease that the control
// plane granted, none under another attempt, none twice, and once the faults stop
// every Run is ready and nothing else is left.
func TestRandomFaults(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { newChaos(t, seed).play() })
		})
	}
}

// chaos is one game.
type chaos struct {
	*house
	rand     *rand.Rand
	attempts map[string]int32
	calls    sync.WaitGroup

	mu   sync.Mutex // guards what follows
	seen map[string]int
	// under is the attempt whose registration executed an invocation.
	under map[string]int32
	next  int
	// answered and refused count calls: a game without both says nothing.
	answered, refused int
}

func newChaos(t *testing.T, seed uint64) *chaos {
	c := &chaos{house: open(t), rand: rand.New(rand.NewPCG(seed, 1)), attempts: map[string]int32{}, seen: map[string]int{}, under: map[string]int32{}}
	c.runtime.invoke = c.invoked
	return c
}

// invoked is the witness: what the Runtime Server was asked to execute.
func (c *chaos) invoked(_ context.Context, req *executorv1.InvokeFunctionRequest) (*executorv1.InvokeFunctionResponse, error) {
	var attempt int32
	c.runtime.set(func(f *runtimeFake) { attempt = f.attempts[req.GetRegistration().GetRegistrationId()] })
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen[req.GetInvocationId()]++
	c.under[req.GetInvocationId()] = attempt
	return &executorv1.InvokeFunctionResponse{InvocationId: req.GetInvocationId()}, nil
}

func (c *chaos) play() {
	c.start()
	for range 120 {
		c.step()
		time.Sleep(time.Duration(c.rand.IntN(1500)) * time.Millisecond)
	}
	c.mend()
	c.calls.Wait()
	c.t.Logf("%d calls were answered, %d refused", c.answered, c.refused)
	if c.answered == 0 || c.refused == 0 {
		c.t.Error("the game was not worth playing")
	}
	for id, n := range c.seen {
		if n != 1 {
			c.t.Errorf("invocation %s was executed %d times", id, n)
		}
	}
	c.close()
}

func (c *chaos) step() {
	run := fmt.Sprintf("run-%d", c.rand.IntN(4))
	switch c.rand.IntN(20) {
	case 0:
		c.control.edit(func() { c.control.down = true })
		time.AfterFunc(c.span(15), func() { c.control.edit(func() { c.control.down = false }) })
	case 1:
		c.runtime.set(func(f *runtimeFake) { f.down = true })
		time.AfterFunc(c.span(15), func() { c.runtime.set(func(f *runtimeFake) { f.down = false }) })
	case 2:
		c.runtime.set(func(f *runtimeFake) { delete(f.registrations, run) })
	case 3:
		c.paused.Add(int64(c.span(20)))
	case 4:
		c.control.edit(func() { c.control.forgotten = true })
	case 5:
		if c.holds(run) {
			c.control.release(run, hearthv1.RunReason_RUN_REASON_CANCELLED)
		}
	case 6, 7:
		c.assignNext(run)
	default:
		c.invokeSoon(run)
	}
}

// span is a random time of less than so many seconds.
func (c *chaos) span(seconds int) time.Duration {
	return time.Duration(c.rand.IntN(seconds*1000)) * time.Millisecond
}

func (c *chaos) holds(run string) bool {
	c.control.mu.Lock()
	defer c.control.mu.Unlock()
	return c.control.runs[run] != nil
}

func (c *chaos) assignNext(run string) {
	c.attempts[run]++
	c.control.assign(run, c.attempts[run], function(), 0)
}

// invokeSoon calls under the triple that the control plane knows now, or one of an
// attempt before, and judges the answer by the lease that it knows.
func (c *chaos) invokeSoon(run string) {
	fence := c.fence(c.attempts[run])
	if c.rand.IntN(4) == 0 {
		fence.Attempt = max(1, fence.Attempt-1)
	}
	c.next++
	id := fmt.Sprintf("inv-%d", c.next)
	c.calls.Go(func() {
		ctx, info := connect.NewClientContext(context.Background())
		fence.Write(info.RequestHeader())
		_, err := c.gateway.InvokeFunction(ctx, &executorv1.InvokeFunctionRequest{
			Registration: &executorv1.FunctionRegistration{RunUid: run}, InvocationId: id,
		})
		c.mu.Lock()
		executed, under := c.seen[id], c.under[id]
		if err == nil {
			c.answered++
		} else {
			c.refused++
		}
		c.mu.Unlock()
		if err == nil && (executed != 1 || !c.granted(fence)) {
			c.t.Errorf("%s under %v was answered: executed %d times, the lease is over: %v", id, fence, executed, !c.granted(fence))
		}
		if executed > 0 && fence.Attempt > 0 && under != fence.Attempt {
			c.t.Errorf("%s for attempt %d was executed under attempt %d", id, fence.Attempt, under)
		}
		if reason := edge.Reason(err); executed > 0 && (reason == "NODE_FENCED" || strings.HasPrefix(reason, "RUN_")) {
			c.t.Errorf("%s was refused with %s and executed", id, reason)
		}
	})
	synctest.Wait()
}

// granted says whether the lease that the control plane granted last still holds,
// by the node's clock.
func (c *chaos) granted(fence hop.Fence) bool {
	c.control.mu.Lock()
	defer c.control.mu.Unlock()
	return c.control.granted[fence.NodeUID]+c.control.lease > c.deps.Clock()
}

// mend ends every fault and waits for what must follow.
func (c *chaos) mend() {
	c.control.edit(func() { c.control.down, c.control.forgotten = false, false })
	c.runtime.set(func(f *runtimeFake) { f.down = false })
	time.Sleep(time.Minute)
	for i := range 4 {
		run := fmt.Sprintf("run-%d", i)
		c.assignNext(run)
		c.hear(fmt.Sprintf("%s#%d ready", run, c.attempts[run]))
		if _, err := c.call(context.Background(), run, c.fence(c.attempts[run]), ""); err != nil {
			c.t.Errorf("%s after the faults: %v", run, err)
		}
		// The name of that call is not one of the game's.
		c.mu.Lock()
		delete(c.seen, "inv")
		c.mu.Unlock()
	}
	if got := len(c.folders()); got != 4 {
		c.t.Errorf("the workspace has %v", c.folders())
	}
}
