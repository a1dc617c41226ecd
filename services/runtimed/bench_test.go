package runtimed_test

import (
	"fmt"
	"testing"

	"connectrpc.com/connect/v2"

	executorv1 "github.com/hearth-run/hearth/gen/executor/v1"
)

// What a node itself costs a call: "node" goes through it, in-process on both
// sides, "direct" calls the Runtime Server, a fake that answers at once. The
// difference is one hop and the desk.
//
//	go test -run XXX -bench Invoke -benchmem ./services/runtimed
func BenchmarkInvoke(b *testing.B) {
	for _, size := range []int{1 << 10, 1 << 20} {
		for _, way := range []string{"direct", "node"} {
			b.Run(fmt.Sprintf("input=%d/%s", size, way), func(b *testing.B) { benchInvoke(b, size, way == "direct") })
		}
	}
}

func benchInvoke(b *testing.B, size int, direct bool) {
	const runs = 100
	h := open(b)
	h.start()
	spec := function()
	spec.Source = nil
	for i := range runs {
		h.control.assign(fmt.Sprintf("run-%d", i), 1, spec, 0)
	}
	for i := range runs {
		h.hear(fmt.Sprintf("run-%d#1 ready", i))
	}
	input, fence := string(make([]byte, size)), h.fence(1)
	h.runtime.set(func(f *runtimeFake) { f.quiet = true })
	client := h.gateway
	req := func(i int) *executorv1.InvokeFunctionRequest { return invocation(fmt.Sprintf("run-%d", i%runs), input) }
	if direct {
		client = h.deps.Functions
		req = func(i int) *executorv1.InvokeFunctionRequest {
			r := invocation(fmt.Sprintf("run-%d", i%runs), input)
			r.Registration.RegistrationId = h.runtime.registrations[r.Registration.RunUid].id
			return r
		}
	}
	b.SetBytes(int64(size))
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i++ {
			ctx, info := connect.NewClientContext(b.Context())
			fence.Write(info.RequestHeader())
			if _, err := client.InvokeFunction(ctx, req(i)); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.StopTimer()
	h.stop()
	if err := <-h.done; err != nil {
		b.Error(err)
	}
}
