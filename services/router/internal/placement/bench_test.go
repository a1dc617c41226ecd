package placement

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// BenchmarkPlacement measures one place and one release while 64 calls are in
// flight, at four sizes of cluster: buckets as the router uses them, beside a
// filter and a sort of all workers. A third of the workers has a GPU, totals and
// loads differ, some are limited in containers; of the requests a tenth want GPU
// memory and a tenth go into the containers of a thousand sessions.
func BenchmarkPlacement(b *testing.B) {
	for _, n := range []int{10, 1_000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("buckets/workers=%d", n), func(b *testing.B) { benchBuckets(b, n) })
	}
	for _, n := range []int{10, 1_000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("filter-and-sort/workers=%d", n), func(b *testing.B) { benchSort(b, n) })
	}
}

func cluster(n int) *Machine {
	m := New(Config{Fill: 0.9, Silence: time.Hour, Lease: time.Hour})
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range n {
		id := fmt.Sprintf("worker-%06d", i)
		w := Worker{ID: id, URI: "http://" + id, Flavor: "cpu", MemTotal: []int64{64, 128, 256}[i%3] * gib, MaxContainers: []int32{0, 128}[i%2]}
		if i%3 == 2 {
			w.Flavor, w.GPUMemTotal = GPU, 80*gib
		}
		m.WorkerStatus(time.Time{}, w, Ready)
		m.Utilization(time.Time{}, Utilization{Worker: id, MemUsed: rng.Int64N(8) * gib, CPUUtil: rng.Int64N(8000), CPUTotal: 16000, Containers: 4})
		m.Container(time.Time{}, Container{ID: "s", Worker: id, State: Ready}, 0)
	}
	return m
}

// requests is a fixed mix.
func requests(n int) []Request {
	rng := rand.New(rand.NewPCG(3, 4))
	out := make([]Request, 1024)
	for i := range out {
		out[i].Memory = []int64{512 << 20, gib, gib, 2 * gib, 3 * gib}[rng.IntN(5)]
		switch rng.IntN(10) {
		case 0:
			out[i].GPUMemory = []int64{4, 8}[rng.IntN(2)] * gib
		case 1:
			out[i].Worker, out[i].Container = fmt.Sprintf("worker-%06d", rng.IntN(min(n, 1000))), "s"
		}
	}
	return out
}

func benchBuckets(b *testing.B, n int) {
	m, mix := cluster(n), requests(n)
	now := time.Unix(0, 0)
	flight := make([]Reservation, 64)
	for i := range flight {
		p, err := m.Place(now, mix[i%len(mix)])
		if err != nil {
			b.Fatal(err)
		}
		flight[i] = p.Reservation
	}
	b.ReportAllocs()
	i := 0
	begin := cpu(b)
	for b.Loop() {
		p, err := m.Place(now, mix[i%len(mix)])
		if err != nil {
			b.Fatal(err)
		}
		oldest := &flight[i%len(flight)]
		if !m.Release(*oldest, true) {
			b.Fatal("released twice")
		}
		*oldest = p.Reservation
		i++
	}
	b.ReportMetric(float64(cpu(b)-begin)/float64(i), "cpu-ns/op")
}

// cpu is this thread's CPU time so far: on a machine that does other work too it
// says more than the clock on the wall.
func cpu(b *testing.B) int64 {
	runtime.LockOSThread() // for the rest of the benchmark's goroutine
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &usage); err != nil {
		b.Fatal(err)
	}
	return usage.Utime.Nano() + usage.Stime.Nano()
}

// benchSort is the same choice made by looking at everybody.
func benchSort(b *testing.B, n int) {
	m, mix := cluster(n), requests(n)
	i := 0
	for b.Loop() {
		r := mix[i%len(mix)]
		i++
		if r.Container != "" {
			continue // affinity looks nobody else up
		}
		best := filterAndSort(m, r)
		w := &m.workers[best]
		claim := amount{r.Memory, r.GPUMemory, 1}
		w.promised.add(claim)
		w.promised.take(claim)
	}
}

func filterAndSort(m *Machine, r Request) int32 {
	var left []entry
	for slot := range m.workers {
		w := &m.workers[slot]
		if w.takes() && w.left().holds(room{r.Memory, r.GPUMemory}) && (r.GPUMemory == 0 || w.gpu) {
			left = append(left, w.standing(int32(slot)))
		}
	}
	slices.SortFunc(left, func(a, b entry) int {
		aGPU, bGPU := m.workers[a.slot].gpu, m.workers[b.slot].gpu
		if c := compareBool(aGPU, bGPU); c != 0 {
			return c
		}
		return cmp.Compare(compareEntry(a, b), 0)
	})
	return left[0].slot
}

func compareEntry(a, b entry) int {
	return int(b.before(&a)) - int(a.before(&b))
}
