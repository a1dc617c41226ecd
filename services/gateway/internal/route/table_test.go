package route_test

import (
	"fmt"
	"runtime"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/hearth-run/hearth/gen/executor/v1/executorv1connect"
	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/services/gateway/internal/route"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// hosts counts which addresses are in use.
type hosts map[string]bool

func (h hosts) Client(address string) (executorv1connect.FunctionRuntimeClient, error) {
	if address == "bad" {
		return nil, fmt.Errorf("address %q is none", address)
	}
	h[address] = true
	return executorv1connect.NewFunctionRuntimeClient(nil), nil
}

func (h hosts) Forget(address string) { delete(h, address) }

func wire(name, uid, address string) *hearthv1.Route {
	phase := hearthv1.RunPhase_RUN_PHASE_READY
	if address == "" {
		phase = hearthv1.RunPhase_RUN_PHASE_PENDING
	}
	return &hearthv1.Route{Namespace: "default", Name: name, RunUid: uid, Address: address, Function: true, Phase: phase}
}

// Any sequence of events leaves the table that a plain map would be, and every
// table that was handed out before stays as it was.
func TestBookAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		used := hosts{}
		book := route.NewBook(used)
		book.Begin()
		model := map[string]*hearthv1.Route{} // by name
		uids := map[string]string{}           // uid to name, of every Run that was not removed
		serial := 0
		var kept *route.Table
		var keptSize int
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				name := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "name")
				r := wire(name, "", rapid.SampledFrom([]string{"", "x", "y"}).Draw(t, "address"))
				if old := model[name]; old != nil && rapid.Bool().Draw(t, "same") {
					r.RunUid = old.RunUid
				} else {
					serial++
					r.RunUid = fmt.Sprint("uid-", serial)
				}
				model[name], uids[r.RunUid] = r, name
				if err := book.Apply(&hearthv1.WatchRoutesResponse{Routes: []*hearthv1.Route{r}}); err != nil {
					t.Fatal(err)
				}
			},
			"remove, perhaps late": func(t *rapid.T) {
				uid := fmt.Sprint("uid-", rapid.IntRange(0, serial+1).Draw(t, "uid"))
				if name, ok := uids[uid]; ok && model[name] != nil && model[name].RunUid == uid {
					delete(model, name)
				}
				delete(uids, uid)
				if err := book.Apply(&hearthv1.WatchRoutesResponse{RemovedRunUids: []string{uid}}); err != nil {
					t.Fatal(err)
				}
			},
			"snapshot": func(t *rapid.T) {
				book.Begin()
				event := &hearthv1.WatchRoutesResponse{SnapshotComplete: true}
				uids = map[string]string{}
				for name, r := range model {
					if rapid.Bool().Draw(t, "gone meanwhile") {
						delete(model, name)
						continue
					}
					event.Routes = append(event.Routes, r)
					uids[r.RunUid] = name
				}
				if err := book.Apply(event); err != nil {
					t.Fatal(err)
				}
			},
			"keep": func(*rapid.T) { kept, keptSize = book.Table(), book.Table().Size() },
			"": func(t *rapid.T) {
				table := book.Table()
				if table.Size() != len(model) {
					t.Fatalf("%d routes, want %d", table.Size(), len(model))
				}
				for name, want := range model {
					got := table.Lookup("default", name)
					if got == nil || got.RunUID != want.GetRunUid() || (got.Node != nil) != (want.GetAddress() != "") {
						t.Fatalf("%s: %+v, want %v", name, got, want)
					}
				}
				if table.Lookup("other", "a") != nil {
					t.Fatal("a Run of another namespace")
				}
				if kept != nil && kept.Size() != keptSize {
					t.Fatal("a table that was handed out has changed")
				}
			},
		})
		book.Begin()
		if err := book.Apply(&hearthv1.WatchRoutesResponse{SnapshotComplete: true}); err != nil {
			t.Fatal(err)
		}
		if book.Table().Size() != 0 || len(used) != 0 {
			t.Fatalf("after an empty snapshot: %d routes, hosts %v", book.Table().Size(), used)
		}
	})
}

func TestBadAddress(t *testing.T) {
	book := route.NewBook(hosts{})
	book.Begin()
	if err := book.Apply(&hearthv1.WatchRoutesResponse{Routes: []*hearthv1.Route{wire("a", "u", "bad"), wire("b", "v", "x")}, SnapshotComplete: true}); err == nil {
		t.Error("nobody was told")
	}
	if table := book.Table(); table.Lookup("default", "a").Node != nil || table.Lookup("default", "b").Node == nil {
		t.Error("the bad address was taken, or the good one was not")
	}
}

// fill returns a book of n Runs on 100 nodes.
func fill(tb testing.TB, n int) *route.Book {
	book := route.NewBook(hosts{})
	book.Begin()
	for i := range n {
		// As the wire does, each message has strings of its own.
		r := &hearthv1.Route{
			Namespace: string([]byte("default")), Name: fmt.Sprintf("function-%06d", i), RunUid: fmt.Sprintf("01J%023d", i), Attempt: 1,
			NodeUid: fmt.Sprintf("01K%023d", i%100), Address: fmt.Sprintf("http://10.0.0.%d:9191", i%100),
			Function: true, Phase: hearthv1.RunPhase_RUN_PHASE_READY,
		}
		if err := book.Apply(&hearthv1.WatchRoutesResponse{Routes: []*hearthv1.Route{r}, SnapshotComplete: i == n-1}); err != nil {
			tb.Fatal(err)
		}
	}
	return book
}

// A stored Run costs the gateway less than 1 KiB.
func TestMemory(t *testing.T) {
	const runs = 10_000
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	book := fill(t, runs)
	runtime.GC()
	runtime.ReadMemStats(&after)
	if each := (int64(after.HeapAlloc) - int64(before.HeapAlloc)) / runs; each > 1024 {
		t.Errorf("%d bytes a Run", each)
	} else {
		t.Logf("%d bytes a Run", each)
	}
	runtime.KeepAlive(book)
}

// A look-up allocates nothing.
func TestLookupAllocs(t *testing.T) {
	table := fill(t, 1000).Table()
	if n := testing.AllocsPerRun(100, func() { table.Lookup("default", "function-000500") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkLookup(b *testing.B) {
	table := fill(b, 10_000).Table()
	b.ReportAllocs()
	for b.Loop() {
		if table.Lookup("default", "function-005000") == nil {
			b.Fatal("not found")
		}
	}
}

func BenchmarkChange(b *testing.B) {
	for _, n := range []int{100, 10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			book := fill(b, n)
			event := &hearthv1.WatchRoutesResponse{Routes: []*hearthv1.Route{{
				Namespace: "default", Name: "function-000050", RunUid: fmt.Sprintf("01J%023d", 50), Address: "http://10.0.0.1:9191", Phase: hearthv1.RunPhase_RUN_PHASE_READY,
			}}}
			b.ReportAllocs()
			for b.Loop() {
				if err := book.Apply(event); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
