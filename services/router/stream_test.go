package router_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/hearth-run/hearth/gen/serverless"
	"github.com/hearth-run/hearth/services/router"
)

// much is how many bytes TestStreamsMuch sends: 1 GiB with HEARTH_TEST_LONG=1. The
// race detector looks at every byte of every copy, so that little must do there.
func much() int {
	switch {
	case os.Getenv("HEARTH_TEST_LONG") == "1":
		return 1 << 30
	case underRace:
		return 4 << 20
	default:
		return 128 << 20
	}
}

// Bodies pass through without being held: the heap stays small while much more
// goes in and out than it could hold.
func TestStreamsMuch(t *testing.T) {
	total := much()
	h := open(t, true, func(c *router.Config) { c.Silence = time.Hour })
	h.worker("w1")
	chunk := bytes.Repeat([]byte("x"), 1<<20)
	stream := h.start(t.Context(), "r", "", nil)
	runtime.GC()
	var before, now runtime.MemStats
	runtime.ReadMemStats(&before)
	go func() {
		for range total / len(chunk) {
			stream.Send(&serverless.ClientExecutionRequest{Data: &serverless.ClientExecutionRequest_Payload{Payload: chunk}})
		}
		stream.CloseSend()
	}()
	got, most := 0, uint64(0)
	for got < total {
		msg, err := stream.Receive()
		if err != nil {
			t.Fatal(err)
		}
		if got += len(msg.GetPayload()); got%(16<<20) == 0 {
			runtime.GC()
			runtime.ReadMemStats(&now)
			most = max(most, now.HeapAlloc-min(before.HeapAlloc, now.HeapAlloc))
		}
	}
	stream.Receive()
	stream.Close()
	// The client, the router and the worker are all in this heap.
	if most > 64<<20 {
		t.Errorf("%d MiB of heap while %d MiB went through", most>>20, total>>20)
	}
	t.Logf("%d MiB through, heap at most %d MiB above idle", total>>20, most>>20)
	h.idle()
}

// A worker that does not read holds up the client, not the router's memory.
func TestFlowControl(t *testing.T) {
	h := open(t, false)
	w := h.worker("w1")
	release := make(chan struct{})
	w.set(func(ctx context.Context, header *serverless.WorkerExecutionRequest, s workerSide) error {
		<-release
		return echo(ctx, header, s)
	})
	stream := h.start(t.Context(), "r", "", nil)
	sent := make(chan int, 64)
	go func() {
		defer close(sent)
		for i := range 64 {
			send(stream, strings.Repeat("x", 1<<10))
			sent <- i
		}
		stream.CloseSend()
	}()
	// Inside the process nothing is buffered but what a goroutine has in its hand:
	// one chunk with the reader, one with the sender.
	for range 2 {
		<-sent
	}
	if n := len(sent); n > 1 {
		t.Errorf("%d more chunks went to a worker that does not read", n)
	}
	close(release)
	for got := 0; got < 64; got++ {
		if _, err := stream.Receive(); err != nil {
			t.Fatal(err)
		}
	}
	stream.Receive()
	stream.Close()
	h.idle()
}

// Calls that share connections do not hold each other up: while a worker leaves
// the bodies of some unread, others go through.
func TestStalledCallsAside(t *testing.T) {
	h := open(t, true)
	w := h.worker("w1")
	release := make(chan struct{})
	w.set(func(ctx context.Context, header *serverless.WorkerExecutionRequest, s workerSide) error {
		if strings.HasPrefix(header.GetRequestId(), "stalled") {
			<-release
		}
		return echo(ctx, header, s)
	})
	var stalled []clientSide
	for i := range 4 {
		stream := h.start(t.Context(), fmt.Sprintf("stalled%d", i), "", nil)
		stalled = append(stalled, stream)
		go func() {
			for range 4 {
				send(stream, strings.Repeat("x", 1<<20))
			}
			stream.CloseSend()
		}()
	}
	for len(w.headers()) < len(stalled) {
		runtime.Gosched()
	}
	for i := range 3 {
		body := strings.Repeat("y", 1<<20)
		if got, _, err := h.call(fmt.Sprintf("r%d", i), "", nil, body, body); err != nil || len(got) != 2*len(body) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
	}
	close(release)
	for _, stream := range stalled {
		for got := 0; got < 4<<20; {
			msg, err := stream.Receive()
			if err != nil {
				t.Fatal(err)
			}
			got += len(msg.GetPayload())
		}
		stream.Receive()
		stream.Close()
	}
	h.idle()
}
