package ledger

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/services/controlplane/internal/lifecycle"
	"github.com/hearth-run/hearth/services/controlplane/internal/record"
	"github.com/hearth-run/hearth/services/controlplane/internal/store"
)

const stored = 10_000

// fill writes n Runs that are ready on one node, each with 4 KiB of source.
func fill(b *testing.B, path string, n int) {
	b.Helper()
	st, err := store.Open(store.Options{Path: path})
	if err != nil {
		b.Fatal(err)
	}
	changes := &store.Changes{
		Version: int64(n), Seq: int64(n), Runs: map[string]*record.Run{}, Sources: map[string]*hearthv1.Source{},
		Nodes: map[string]*record.Node{"n1": {UID: "n1", Name: "n1", Runtime: "python", Capacity: n + 10_000, Functions: true}},
	}
	changes.Nodes["n1"].State.Phase = "Live"
	source := &hearthv1.Source{Kind: &hearthv1.Source_Inline{Inline: &hearthv1.InlineSource{
		Files: []*hearthv1.InlineFile{{Path: "a.py", Data: &hearthv1.InlineFile_Content{Content: make([]byte, 4<<10)}}},
	}}}
	now := time.Now()
	for i := range n {
		r := draft(fmt.Sprintf("stored-%06d", i))
		r.Seq, r.Version = int64(i+1), int64(i+1)
		r.State = lifecycle.New(now)
		r.State, _ = lifecycle.Apply(r.Policy, r.State, lifecycle.Event{Kind: lifecycle.Place, Node: "n1", Endpoint: "http://n1"}, now)
		r.State, _ = lifecycle.Apply(r.Policy, r.State, lifecycle.Event{Kind: lifecycle.Report, Attempt: 1, Node: "n1"}, now)
		changes.Runs[r.UID], changes.Sources[r.UID] = &r, source
	}
	if err := st.Commit(changes); err != nil {
		b.Fatal(err)
	}
	if err := st.Close(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkRestart is the time from opening the file with 10 000 stored Runs to the
// moment at which a watch of routes can be served.
func BenchmarkRestart(b *testing.B) {
	path := filepath.Join(b.TempDir(), "db")
	fill(b, path, stored)
	for b.Loop() {
		st, err := store.Open(store.Options{Path: path})
		if err != nil {
			b.Fatal(err)
		}
		l, err := Open(config(), slog.New(slog.DiscardHandler), st)
		if err != nil {
			b.Fatal(err)
		}
		found, _ := l.Runs("", 0, func(*record.Run) bool { return true })
		if len(found) != stored || found[0].Route().GetAddress() == "" {
			b.Fatal("not restored")
		}
		if err := st.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCreate stores Runs durably beside those that are there, from as many
// callers as named; each is placed as well.
func BenchmarkCreate(b *testing.B) {
	for _, there := range []int{0, stored} {
		for _, callers := range []int{1, 25} {
			b.Run(fmt.Sprintf("stored=%d/callers=%d", there, callers), func(b *testing.B) {
				path := filepath.Join(b.TempDir(), "db")
				fill(b, path, there)
				st, err := store.Open(store.Options{Path: path})
				if err != nil {
					b.Fatal(err)
				}
				l, err := Open(config(), slog.New(slog.DiscardHandler), st)
				if err != nil {
					b.Fatal(err)
				}
				go l.Run(b.Context())
				var next atomic.Int64
				b.SetParallelism(callers)
				b.ResetTimer()
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						if _, err := l.Create(b.Context(), draft(fmt.Sprint("r", next.Add(1))), nil, 0); err != nil {
							b.Error(err)
						}
					}
				})
				b.StopTimer()
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "creates/s")
			})
		}
	}
}
