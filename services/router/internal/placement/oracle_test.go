package placement

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// oracle is the machine written down naively: every number counted anew from the
// story, every choice a filter and a sort of all workers.
type oracle struct {
	workers map[string]*known
	claims  map[string]*claimed // by call
}

type known struct {
	Worker
	state    State
	load     Utilization
	dropped  amount // reported containers that went since
	vessels  map[string]*vessel
	inflight int
}

// vessel is a container: what it takes, and whether the worker's report has it.
type vessel struct {
	takes    amount
	reported bool
	from     string
	live     bool
}

type claimed struct {
	worker  string
	takes   amount
	vessel  string
	rejoins bool
}

func (o *oracle) taken(k *known) amount {
	total := amount{k.load.MemUsed, k.load.GPUMemUsed, k.load.Containers}
	total.take(k.dropped)
	for _, v := range k.vessels {
		if !v.reported {
			total.add(v.takes)
		}
	}
	for _, c := range o.claims {
		if c.worker == k.ID && c.vessel == "" && !c.rejoins {
			total.add(c.takes)
		}
	}
	return total
}

func (o *oracle) fits(k *known, r Request) bool {
	t := o.taken(k)
	within := func(used, alloc, total int64) bool {
		return alloc == 0 || total == 0 || used+alloc <= int64(0.9*float64(total))
	}
	switch {
	case k.state != Ready || k.URI == "":
		return false
	case (r.GPU || r.GPUMemory > 0) && k.Flavor != GPU:
		return false
	case k.MaxContainers > 0 && t.containers >= k.MaxContainers:
		return false
	case slices.Contains(r.Without, k.ID):
		return false
	}
	return within(t.mem, r.Memory, k.MemTotal) && within(t.gpu, r.GPUMemory, k.GPUMemTotal)
}

// choose filters and sorts; "" if nobody is left.
func (o *oracle) choose(r Request) string {
	var left []*known
	for _, k := range o.workers {
		if o.fits(k, r) {
			left = append(left, k)
		}
	}
	if r.Checkpoint != "" {
		if holders := slices.DeleteFunc(slices.Clone(left), func(k *known) bool { return !slices.Contains(k.Checkpoints, r.Checkpoint) }); len(holders) > 0 {
			left, r.Warm = holders, "" // what is named goes before what is liked
		}
	}
	if len(left) == 0 {
		return ""
	}
	best := o.first(left, r)
	near := slices.DeleteFunc(left, func(k *known) bool {
		return !slices.Contains(k.Checkpoints, r.Warm) || (k.Flavor == GPU) != (best.Flavor == GPU) ||
			fraction(o.taken(k).mem, k.MemTotal) > fraction(o.taken(best).mem, best.MemTotal)+detour ||
			fraction(k.load.CPUUtil, k.load.CPUTotal) > fraction(best.load.CPUUtil, best.load.CPUTotal)+detour
	})
	if len(near) > 0 {
		best = o.first(near, r)
	}
	return best.ID
}

// first is the first in the order of choice.
func (o *oracle) first(left []*known, r Request) *known {
	cpuDemand := !r.GPU && r.GPUMemory == 0
	return slices.MinFunc(left, func(a, b *known) int {
		for _, c := range []int{
			compareBool(cpuDemand && a.Flavor == GPU, cpuDemand && b.Flavor == GPU),
			compareFloat(fraction(o.taken(a).mem, a.MemTotal), fraction(o.taken(b).mem, b.MemTotal)),
			compareFloat(fraction(a.load.CPUUtil, a.load.CPUTotal), fraction(b.load.CPUUtil, b.load.CPUTotal)),
			a.inflight - b.inflight,
		} {
			if c != 0 {
				return c
			}
		}
		return strings.Compare(a.ID, b.ID)
	})
}

func compareBool(a, b bool) int {
	return map[bool]int{true: 1}[a] - map[bool]int{true: 1}[b]
}

func compareFloat(a, b float64) int {
	return compareBool(a > b, b > a)
}

// pair plays one story to both.
type pair struct {
	m     *Machine
	o     *oracle
	calls map[string]Reservation
	now   time.Time
	n     int
}

func TestAgainstOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &pair{
			m:     New(Config{Fill: 0.9, Silence: time.Hour, Lease: time.Hour}),
			o:     &oracle{workers: map[string]*known{}, claims: map[string]*claimed{}},
			calls: map[string]Reservation{}, now: time.Unix(0, 0),
		}
		t.Repeat(map[string]func(*rapid.T){
			"worker": p.worker, "load": p.load, "place": p.place, "release": p.release, "container": p.container,
			"removed": p.removed, "rejoin": p.rejoin, "evict": p.evict, "": p.check,
		})
	})
}

var ids = rapid.Custom(func(t *rapid.T) string { return fmt.Sprintf("w%d", rapid.IntRange(0, 30).Draw(t, "id")) })

func (p *pair) worker(t *rapid.T) {
	w := Worker{
		ID: ids.Draw(t, "id"), URI: "u", Flavor: rapid.SampledFrom([]string{"cpu", GPU}).Draw(t, "flavor"),
		MemTotal: rapid.SampledFrom([]int64{0, 10, 10, 17, 100, 1000}).Draw(t, "mem"), GPUMemTotal: rapid.SampledFrom([]int64{0, 40, 80}).Draw(t, "gpu"),
		MaxContainers: rapid.Int32Range(0, 3).Draw(t, "max"), Checkpoints: rapid.SliceOfDistinct(rapid.SampledFrom([]string{"a", "b"}), rapid.ID).Draw(t, "holds"),
	}
	state := rapid.SampledFrom([]State{Ready, Ready, Ready, Busy, Error}).Draw(t, "state")
	if _, err := p.m.WorkerStatus(p.now, w, state); err != nil {
		t.Fatal(err)
	}
	k := p.o.workers[w.ID]
	if k == nil {
		k = &known{vessels: map[string]*vessel{}}
		p.o.workers[w.ID] = k
	}
	if w.MemTotal == 0 {
		w.MemTotal = k.MemTotal
	}
	if w.GPUMemTotal == 0 {
		w.GPUMemTotal = k.GPUMemTotal
	}
	k.Worker, k.state = w, state
}

func (p *pair) load(t *rapid.T) {
	u := Utilization{
		Worker: ids.Draw(t, "id"), MemUsed: rapid.Int64Range(0, 90).Draw(t, "mem"), GPUMemUsed: rapid.Int64Range(0, 60).Draw(t, "gpu"),
		CPUUtil: rapid.Int64Range(0, 3).Draw(t, "cpu"), CPUTotal: 4, Containers: rapid.Int32Range(0, 3).Draw(t, "n"),
	}
	k := p.o.workers[u.Worker]
	if err := p.m.Utilization(p.now, u); (err == nil) != (k != nil) {
		t.Fatalf("%v with %v", err, k)
	}
	if k != nil {
		k.load, k.dropped = u, amount{}
		for _, v := range k.vessels {
			v.reported = true
		}
	}
}

func (p *pair) place(t *rapid.T) {
	r := Request{
		Memory: rapid.Int64Range(1, 20).Draw(t, "mem"), GPUMemory: rapid.SampledFrom([]int64{0, 0, 5, 30}).Draw(t, "gpu"), GPU: rapid.Bool().Draw(t, "needs"),
		Checkpoint: rapid.SampledFrom([]string{"", "", "a", "c"}).Draw(t, "from"), Warm: rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(t, "warm"), Without: rapid.SliceOfN(ids, 0, 3).Draw(t, "without"),
	}
	want := p.o.choose(r)
	got, err := p.m.Place(p.now, r)
	if got.Worker != want || (err == nil) != (want != "") {
		t.Fatalf("%+v: got %q, %v; the oracle says %q", r, got.Worker, err, want)
	}
	if err != nil {
		return
	}
	p.n++
	call := fmt.Sprintf("c%d", p.n)
	p.calls[call] = got.Reservation
	p.o.claims[call] = &claimed{worker: want, takes: amount{r.Memory, r.GPUMemory, 1}}
	p.o.workers[want].inflight++
}

// draw picks one of the calls in flight.
func (p *pair) draw(t *rapid.T) string {
	var open []string
	for call := range p.o.claims {
		open = append(open, call)
	}
	slices.Sort(open)
	if len(open) == 0 {
		t.Skip("no call")
	}
	return rapid.SampledFrom(open).Draw(t, "call")
}

func (p *pair) release(t *rapid.T) {
	call := p.draw(t)
	keep := rapid.Bool().Draw(t, "keep")
	if !p.m.Release(p.calls[call], keep) || p.m.Release(p.calls[call], !keep) {
		t.Fatal("a reservation is released once")
	}
	c := p.o.claims[call]
	k := p.o.workers[c.worker]
	k.inflight--
	if !keep && c.vessel != "" {
		k.drop(c.vessel)
	}
	delete(p.o.claims, call)
}

func (k *known) drop(id string) {
	if v := k.vessels[id]; v != nil && v.reported {
		k.dropped.add(v.takes)
		// What is taken off never goes below nothing.
		k.dropped = amount{min(k.dropped.mem, k.load.MemUsed), min(k.dropped.gpu, k.load.GPUMemUsed), min(k.dropped.containers, k.load.Containers)}
	}
	delete(k.vessels, id)
}

// container reports the container of a call, the first time or again.
func (p *pair) container(t *rapid.T) {
	call := p.draw(t)
	c := p.o.claims[call]
	if c.rejoins {
		t.Skip("it has its container")
	}
	id, from := "k-"+call, rapid.SampledFrom([]string{"", "a"}).Draw(t, "from")
	if _, err := p.m.Container(p.now, Container{ID: id, Worker: c.worker, State: Busy, Checkpoint: from}, p.calls[call]); err != nil {
		t.Fatal(err)
	}
	v := p.o.workers[c.worker].vessels[id]
	if v == nil {
		v = &vessel{takes: c.takes, live: true}
		if c.vessel == "gone" {
			v.takes = amount{containers: 1}
		}
		p.o.workers[c.worker].vessels[id] = v
		c.vessel = id
	}
	if from != "" {
		v.from = from
	}
}

func (p *pair) vessel(t *rapid.T) (*known, string) {
	var all []string
	for _, k := range p.o.workers {
		for id := range k.vessels {
			all = append(all, k.ID+"/"+id)
		}
	}
	slices.Sort(all)
	if len(all) == 0 {
		t.Skip("no container")
	}
	worker, id, _ := strings.Cut(rapid.SampledFrom(all).Draw(t, "container"), "/")
	return p.o.workers[worker], id
}

func (p *pair) removed(t *rapid.T) {
	k, id := p.vessel(t)
	if gone, err := p.m.Container(p.now, Container{ID: id, Worker: k.ID, State: Removed}, 0); err != nil || gone == nil {
		t.Fatal(gone, err)
	}
	k.drop(id)
	for call, c := range p.o.claims {
		if c.vessel == id {
			// The call has nothing left to claim; one that rejoined neither.
			p.o.claims[call] = &claimed{worker: c.worker, vessel: "gone", rejoins: true}
		}
	}
}

func (p *pair) rejoin(t *rapid.T) {
	k, id := p.vessel(t)
	for _, c := range p.o.claims {
		if c.vessel == id {
			t.Skip("one call at a time")
		}
	}
	cold := rapid.Bool().Draw(t, "cold")
	got, err := p.m.Place(p.now, Request{Worker: k.ID, Container: id, Cold: cold, Memory: 1 << 40})
	if want := k.state == Ready && !(cold && k.vessels[id].from != ""); (err == nil) != want || want && (got.Worker != k.ID || got.Container != id) {
		t.Fatalf("rejoin %s/%s: %+v, %v; want %v", k.ID, id, got, err, want)
	}
	if err != nil {
		return
	}
	p.n++
	call := fmt.Sprintf("c%d", p.n)
	p.calls[call] = got.Reservation
	p.o.claims[call] = &claimed{worker: k.ID, vessel: id, rejoins: true}
	k.inflight++
}

func (p *pair) evict(t *rapid.T) {
	id := ids.Draw(t, "id")
	gone := p.m.Evict(id)
	k := p.o.workers[id]
	if (gone == nil) != (k == nil) {
		t.Fatalf("evicted %v, known %v", gone, k)
	}
	if k == nil {
		return
	}
	if len(gone.Reservations) != k.inflight || len(gone.Containers) != len(k.vessels) {
		t.Fatalf("%d calls and %d containers went, want %d and %d", len(gone.Reservations), len(gone.Containers), k.inflight, len(k.vessels))
	}
	for call, c := range p.o.claims {
		if c.worker == id {
			delete(p.o.claims, call)
			if p.m.Release(p.calls[call], true) {
				t.Fatal("an evicted worker's reservation was released again")
			}
		}
	}
	delete(p.o.workers, id)
}

// check compares every number.
func (p *pair) check(t *rapid.T) {
	views := p.m.Views()
	if len(views) != len(p.o.workers) || p.m.Reservations() != len(p.o.claims) {
		t.Fatalf("%d workers, %d reservations; want %d, %d", len(views), p.m.Reservations(), len(p.o.workers), len(p.o.claims))
	}
	for _, v := range views {
		k := p.o.workers[v.ID]
		want := p.o.taken(k)
		if got := (amount{v.MemTaken, v.GPUMemTaken, v.ContainersTaken}); got != want || int(v.InFlight) != k.inflight {
			t.Fatalf("%s has taken %+v with %d in flight, want %+v with %d", v.ID, got, v.InFlight, want, k.inflight)
		}
	}
}
