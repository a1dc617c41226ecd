package worker_test

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/hearth-run/hearth/gen/serverless"
	"github.com/hearth-run/hearth/services/worker"
)

// A body and an answer of many megabytes pass through without being held.
func TestStreamsPassThrough(t *testing.T) {
	const megabytes = 192
	h := open(t, func(c *worker.Config) { c.Memory = 8 << 30 })
	defer h.stop()
	hd := header("stream")
	hd.Budgets = memory(3<<30, 0)
	stream, err := h.client.RequestExecution(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	if err := stream.Send(hd); err != nil {
		t.Fatal(err)
	}
	before := heap()
	peak := uint64(0)
	sent := make(chan error, 1)
	go func() { sent <- sendBig(stream.Send, stream.CloseSend, megabytes) }()
	total := 0
	for {
		res, err := stream.Receive()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		total += len(res.GetPayload())
		if total%(16<<20) < len(res.GetPayload()) {
			peak = max(peak, heap())
		}
	}
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	if total < megabytes<<20 {
		t.Errorf("%d bytes came back", total)
	}
	if grown := int64(peak) - int64(before); grown > 64<<20 {
		t.Errorf("the heap grew by %d MiB while %d MiB passed", grown>>20, megabytes)
	}
}

// sendBig sends a JSON call whose one argument is a text of that size.
func sendBig(send func(*serverless.WorkerExecutionRequest) error, done func() error, megabytes int) error {
	piece := bytes.Repeat([]byte("x"), 1<<20)
	if err := send(&serverless.WorkerExecutionRequest{Payload: []byte(`{"source":"def f(x): return x","entry":"f","args":["`)}); err != nil {
		return err
	}
	for range megabytes {
		if err := send(&serverless.WorkerExecutionRequest{Payload: piece}); err != nil {
			return err
		}
	}
	if err := send(&serverless.WorkerExecutionRequest{Payload: []byte(`"]}`)}); err != nil {
		return err
	}
	return done()
}

// heap returns the bytes that are held after a collection.
func heap() uint64 {
	debug.FreeOSMemory()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
