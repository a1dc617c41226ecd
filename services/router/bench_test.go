package router_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/hearth-run/hearth/gen/serverless"
	"github.com/hearth-run/hearth/internal/kit/dial"
	"github.com/hearth-run/hearth/services/router"
)

// BenchmarkCall is what a call costs without its worker: config, one chunk, the
// answer, through the router to a worker that answers at once.
func BenchmarkCall(b *testing.B) {
	for _, wire := range []bool{false, true} {
		for _, callers := range []int{1, 16} {
			b.Run(fmt.Sprintf("%s/callers=%d", map[bool]string{false: "inprocess", true: "h2c"}[wire], callers), func(b *testing.B) {
				benchCall(b, wire, callers)
			})
		}
	}
}

func benchCall(b *testing.B, wire bool, callers int) {
	dialer := dial.New(nil)
	b.Cleanup(dialer.Close)
	h := openWith(b, wire, router.Deps{Log: quiet, Dialer: dialer})
	h.worker("w1", func(s *serverless.WorkerStatus) { s.MemTotal = 1 << 50 })
	var n atomic.Int64
	b.SetParallelism((callers + 1) / 2)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			stream := h.start(context.Background(), fmt.Sprint(n.Add(1)), "", nil)
			send(stream, "0123456789")
			if _, _, err := finish(stream); err != nil {
				b.Error(err)
			}
		}
	})
}
