package placement

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestWinner asks each place among four for the first of them, in every order of
// the four, and with ties.
func TestWinner(t *testing.T) {
	for order := range 256 {
		var level [2 * fanout]entry
		for i := range fanout {
			level[fanout+i] = entry{mem: uint64(order >> (2 * i) & 3), label: uint64(i), slot: int32(i)}
		}
		want := &level[fanout]
		for i := range fanout {
			if e := &level[fanout+i]; e.before(want) != 0 {
				want = e
			}
		}
		for i := range fanout {
			if got := winner(level[:], fanout+i); got != want {
				t.Fatalf("order %d, asked at %d: %d is first, want %d", order, i, got.slot, want.slot)
			}
		}
	}
}

// TestManyWorkers compares each choice among trees of several levels with a filter
// and a sort of all workers, while calls and workers come and go.
func TestManyWorkers(t *testing.T) {
	const n = 300
	m, mix := cluster(n), requests(n)
	rng := rand.New(rand.NewPCG(5, 6))
	now := time.Unix(0, 0)
	var flight []Reservation
	for i := range 1500 {
		r := mix[i%len(mix)]
		r.Worker, r.Container = "", ""
		want := filterAndSort(m, r)
		p, err := m.Place(now, r)
		if err != nil {
			t.Fatal(err)
		}
		if p.Worker != m.workers[want].ID {
			t.Fatalf("placement %d: %s, want %s", i, p.Worker, m.workers[want].ID)
		}
		if flight = append(flight, p.Reservation); len(flight) > n {
			k := rng.IntN(len(flight))
			m.Release(flight[k], true)
			flight[k] = flight[len(flight)-1]
			flight = flight[:len(flight)-1]
		}
		if i%10 == 0 {
			w := m.workers[rng.IntN(n)].Worker
			m.WorkerStatus(now, w, []State{Busy, Ready}[i/10%2])
		}
	}
}
