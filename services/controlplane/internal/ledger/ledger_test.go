package ledger

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/services/controlplane/internal/lifecycle"
	"github.com/hearth-run/hearth/services/controlplane/internal/nodes"
	"github.com/hearth-run/hearth/services/controlplane/internal/record"
	"github.com/hearth-run/hearth/services/controlplane/internal/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// flaky is a store that fails on demand.
type flaky struct {
	*store.Store
	fail    atomic.Bool
	commits atomic.Int64
}

func (f *flaky) Commit(c *store.Changes) error {
	f.commits.Add(1)
	if f.fail.Load() {
		return errors.New("no space left")
	}
	return f.Store.Commit(c)
}

func config() Config {
	return Config{
		Terms:   nodes.Terms{Lease: 10 * time.Second, Margin: 2 * time.Second, Keep: time.Hour},
		History: 1 << 14, Jitter: func() float64 { return 0 },
	}
}

// begin opens a ledger and returns how to run and how to end it.
func begin(t testing.TB, path string) (l *Ledger, f *flaky, run func(), end func()) {
	t.Helper()
	st, err := store.Open(store.Options{Path: path, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	f = &flaky{Store: st}
	l, err = Open(config(), slog.New(slog.DiscardHandler), f)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	run = func() {
		go func() {
			if err := l.Run(ctx); err != nil {
				t.Error(err)
			}
		}()
	}
	return l, f, run, func() {
		stop()
		<-l.Stopped()
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	}
}

func draft(name string) record.Run {
	spec := &hearthv1.RunSpec{Runtime: "python", Mode: &hearthv1.RunSpec_Function{Function: &hearthv1.FunctionMode{Handler: "a.b"}}}
	return record.Run{UID: "uid-" + name, Namespace: "default", Name: name, Spec: spec, Policy: record.PolicyOf(spec)}
}

func create(t testing.TB, l *Ledger, name string) {
	t.Helper()
	if _, err := l.Create(t.Context(), draft(name), nil, 0); err != nil {
		t.Fatal(err)
	}
}

func register(t testing.TB, l *Ledger, uid string, capacity int) {
	t.Helper()
	n := &record.Node{UID: uid, Name: uid, Runtime: "python", Address: "http://" + uid, Capacity: capacity, Functions: true}
	if err := l.Register(t.Context(), n, "", time.Now()); err != nil {
		t.Fatal(err)
	}
}

// What cannot be stored has not happened; what time brings is tried again.
func TestStoreFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, f, run, end := begin(t, filepath.Join(t.TempDir(), "db"))
		run()
		defer end()
		register(t, l, "n1", 5)
		create(t, l, "a")
		synctest.Wait()
		version := l.view.version
		f.fail.Store(true)
		if _, err := l.Create(t.Context(), draft("b"), nil, 0); !errors.Is(err, ErrStoreFailed) {
			t.Errorf("create: %v", err)
		}
		if _, err := l.End(t.Context(), "default", "a", "", lifecycle.Cancel); !errors.Is(err, ErrStoreFailed) {
			t.Errorf("cancel: %v", err)
		}
		// A renewal is no write.
		if err := l.Renew(t.Context(), "n1", true, false, time.Now()); err != nil {
			t.Errorf("renew: %v", err)
		}
		if _, err := l.Named("default", "b", ""); !errors.Is(err, ErrRunNotFound) {
			t.Errorf("b: %v", err)
		}
		if a, err := l.Named("default", "a", ""); err != nil || a.State.CancelRequested || l.view.version != version {
			t.Errorf("a: %v %v", a, err)
		}
		// The node is lost while nothing can be written: tried once a second, not in a loop.
		before := f.commits.Load()
		time.Sleep(14 * time.Second)
		synctest.Wait()
		if tries := f.commits.Load() - before; tries < 1 || tries > 4 {
			t.Errorf("%d commits in the 2 s since the lease ended", tries)
		}
		f.fail.Store(false)
		time.Sleep(time.Second)
		synctest.Wait()
		if a, _ := l.Named("default", "a", ""); a.State.Holds() {
			t.Errorf("a is still there: %v", a.State)
		}
		create(t, l, "b")
	})
}

// One transaction serves all who wait for it.
func TestGroupCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, f, run, end := begin(t, filepath.Join(t.TempDir(), "db"))
		errs := make(chan error, 200)
		for i := range 200 {
			go func() {
				_, err := l.Create(t.Context(), draft(fmt.Sprintf("r%d", i%100)), nil, 0)
				errs <- err
			}()
		}
		synctest.Wait()
		run()
		defer end()
		exists := 0
		for range 200 {
			if err := <-errs; errors.Is(err, ErrRunExists) {
				exists++
			} else if err != nil {
				t.Error(err)
			}
		}
		synctest.Wait()
		if exists != 100 || f.commits.Load() > 4 {
			t.Errorf("%d were told that the name is taken; %d commits", exists, f.commits.Load())
		}
	})
}

// A start derives from the store what the changes had derived.
func TestRestore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "db")
		l, _, run, end := begin(t, path)
		run()
		register(t, l, "n1", 3)
		for i := range 6 {
			create(t, l, fmt.Sprint("r", i))
		}
		if _, err := l.End(t.Context(), "default", "r5", "", lifecycle.Delete); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		version, waiting, held := l.view.version, l.queue.Len(), len(l.Held("n1", nil))
		end()
		l, _, run, end = begin(t, path)
		defer end()
		if l.view.version != version || l.queue.Len() != waiting || waiting != 2 || len(l.Held("n1", nil)) != held || held != 3 {
			t.Errorf("version %d and %d, waiting %d and %d, held %d and %d", version, l.view.version, waiting, l.queue.Len(), held, len(l.Held("n1", nil)))
		}
		run()
		// Room is given to who came first.
		if _, err := l.End(t.Context(), "default", "r0", "", lifecycle.Cancel); err != nil {
			t.Fatal(err)
		}
		r0, _ := l.Named("default", "r0", "")
		err := l.Report(t.Context(), Report{RunUID: r0.UID, Event: lifecycle.Event{Kind: lifecycle.Released, Attempt: 1, Node: "n1"}})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if r3, _ := l.Named("default", "r3", ""); !r3.State.Holds() {
			t.Errorf("r3: %v", r3.State)
		}
		if r4, _ := l.Named("default", "r4", ""); r4.State.Reason != lifecycle.NoCapacity {
			t.Errorf("r4: %v", r4.State)
		}
	})
}

// Runs of a node that the store does not know are placed again.
func TestOrphans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "db")
		l, f, run, end := begin(t, path)
		run()
		register(t, l, "n1", 3)
		create(t, l, "a")
		synctest.Wait()
		if err := f.Store.Commit(&store.Changes{Version: l.view.version, Seq: 1, Nodes: map[string]*record.Node{"n1": nil}}); err != nil {
			t.Fatal(err)
		}
		end()
		l, _, run, end = begin(t, path)
		defer end()
		run()
		synctest.Wait()
		if a, _ := l.Named("default", "a", ""); a.State.Reason != lifecycle.NoNode {
			t.Errorf("a: %v", a.State)
		}
	})
}
