package controlplane_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"connectrpc.com/connect/v2"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/gen/hearth/v1/hearthv1connect"
)

// watcher reads a watch as words: +name added, ~name modified, -name deleted, * bookmark.
type watcher struct {
	t     *testing.T
	watch hearthv1connect.RunServiceWatchRunsClientStream
	last  int64
	end   func()
}

func (h *house) follow(t *testing.T, from int64, f *hearthv1.RunFilter) *watcher {
	t.Helper()
	ctx, cancel := context.WithCancel(h.ctx)
	watch, err := h.runs.WatchRuns(ctx, &hearthv1.WatchRunsRequest{ResourceVersion: from, Filter: f})
	if err != nil {
		t.Fatal(err)
	}
	return &watcher{t: t, watch: watch, last: from, end: func() { cancel(); watch.Close() }}
}

func (w *watcher) expect(words ...string) {
	w.t.Helper()
	for _, want := range words {
		e, err := w.watch.Receive()
		if err != nil {
			w.t.Fatalf("waiting for %s: %v", want, err)
		}
		sign := map[hearthv1.RunEventType]string{
			hearthv1.RunEventType_RUN_EVENT_TYPE_ADDED: "+", hearthv1.RunEventType_RUN_EVENT_TYPE_MODIFIED: "~",
			hearthv1.RunEventType_RUN_EVENT_TYPE_DELETED: "-", hearthv1.RunEventType_RUN_EVENT_TYPE_BOOKMARK: "*",
		}[e.GetType()]
		if got := sign + e.GetRun().GetName(); got != want {
			w.t.Fatalf("got %s, want %s", got, want)
		}
		if sign != "+" && e.GetResourceVersion() < w.last {
			w.t.Errorf("version %d after %d", e.GetResourceVersion(), w.last)
		}
		w.last = e.GetResourceVersion()
	}
}

func TestWatch(t *testing.T) {
	twice(t, func(t *testing.T, h *house) {
		h.create("b", function())
		h.create("a", function())
		h.phase("b", pending, hearthv1.RunReason_RUN_REASON_NO_NODE)
		h.phase("a", pending, hearthv1.RunReason_RUN_REASON_NO_NODE)
		all := h.follow(t, 0, nil)
		defer all.end()
		all.expect("+a", "+b")
		if all.last != 0 {
			t.Errorf("a watch that breaks off in the snapshot would resume at %d", all.last)
		}
		all.expect("*")
		list, err := h.runs.ListRuns(h.ctx, &hearthv1.ListRunsRequest{})
		if err != nil || list.GetResourceVersion() != all.last {
			t.Fatalf("list %d, watch %d, %v", list.GetResourceVersion(), all.last, err)
		}
		h.create("c", function())
		if _, err := h.runs.DeleteRun(h.ctx, &hearthv1.DeleteRunRequest{Name: "a"}); err != nil {
			t.Fatal(err)
		}
		all.expect("+c", "-a")
		// Another one resumes from the list.
		resumed := h.follow(t, list.GetResourceVersion(), nil)
		defer resumed.end()
		resumed.expect("+c", "-a")
		// From the present there is only what comes.
		late := h.follow(t, resumed.last, nil)
		defer late.end()
		h.create("d", function())
		late.expect("+d")
	})
}

// A Run that begins to match a filter is added, one that ceases to is deleted.
func TestWatchFilter(t *testing.T) {
	twice(t, func(t *testing.T, h *house) {
		w := h.follow(t, 0, &hearthv1.RunFilter{Phases: []hearthv1.RunPhase{serving}})
		defer w.end()
		w.expect("*")
		n := h.node("n1")
		defer n.end()
		h.create("f", function())
		a := n.serve()
		h.report(ready(a))
		for {
			e, err := w.watch.Receive()
			if err != nil {
				t.Fatal(err)
			}
			if e.GetType() != hearthv1.RunEventType_RUN_EVENT_TYPE_BOOKMARK {
				if e.GetType() != hearthv1.RunEventType_RUN_EVENT_TYPE_ADDED || e.GetRun().GetStatus().GetPhase() != serving {
					t.Fatalf("%v", e)
				}
				break
			}
		}
		if _, err := h.runs.CancelRun(h.ctx, &hearthv1.CancelRunRequest{Name: "f"}); err != nil {
			t.Fatal(err)
		}
		w.expect("-f")
	})
}

// A watch that lags behind the history is told so; it costs no writer anything.
func TestWatchCompacted(t *testing.T) {
	for _, transport := range []string{"inprocess", "http"} {
		cfg := settings(t)
		cfg.WatchHistory = 4
		h := open(t, cfg, transport)
		first := h.create("f", function())
		compacted := func(version int64) {
			t.Helper()
			w := h.follow(t, version, nil)
			defer w.end()
			_, err := w.watch.Receive()
			refused(t, fmt.Sprint(transport, version), err, connect.CodeOutOfRange, "WATCH_COMPACTED")
		}
		for i := range 10 {
			h.create(fmt.Sprintf("f%d", i), function())
		}
		compacted(first.GetResourceVersion())
		compacted(1 << 40)
		h.close()
		// A start forgets the history, not the versions.
		h = open(t, cfg, transport)
		compacted(first.GetResourceVersion())
		w := h.follow(t, 0, nil)
		w.expect("+f", "+f0")
		w.end()
		if next := h.create("g", function()); next.GetResourceVersion() <= first.GetResourceVersion()+10 {
			t.Errorf("versions began anew: %d", next.GetResourceVersion())
		}
		h.close()
	}
}

// A stop ends watches, also in-process.
func TestWatchEnds(t *testing.T) {
	h := open(t, settings(t), "inprocess")
	w := h.follow(t, 0, nil)
	w.expect("*")
	n := h.node("n1")
	routes, err := h.routes.WatchRoutes(context.Background(), &hearthv1.WatchRoutesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := routes.Receive(); err != nil {
		t.Fatal(err)
	}
	h.close()
	_, err = w.watch.Receive()
	refused(t, "runs", err, connect.CodeUnavailable, "SHUTTING_DOWN")
	_, err = n.watch.Receive()
	refused(t, "assignments", err, connect.CodeUnavailable, "SHUTTING_DOWN")
	_, err = routes.Receive()
	refused(t, "routes", err, connect.CodeUnavailable, "SHUTTING_DOWN")
	_, err = h.runs.CreateRun(context.Background(), &hearthv1.CreateRunRequest{Name: "f", Spec: function()})
	refused(t, "create", err, connect.CodeUnavailable, "SHUTTING_DOWN")
	w.end()
	n.end()
	routes.Close()
}

func TestRoutes(t *testing.T) {
	twice(t, func(t *testing.T, h *house) {
		h.create("old", function())
		h.create("t", task())
		watch, err := h.routes.WatchRoutes(h.ctx, &hearthv1.WatchRoutesRequest{})
		if err != nil {
			t.Fatal(err)
		}
		defer watch.Close()
		// next returns the next change that says the word; "" is a removal.
		next := func(word string) *hearthv1.WatchRoutesResponse {
			t.Helper()
			for {
				e, err := watch.Receive()
				if err != nil {
					t.Fatal(err)
				}
				text := strings.Join(e.GetRemovedRunUids(), " ")
				for _, r := range e.GetRoutes() {
					text += fmt.Sprint(r.GetName(), r.GetPhase(), r.GetAddress())
				}
				if strings.Contains(text, "t"+"RUN_PHASE") {
					t.Errorf("a task has a route: %s", text)
				}
				if strings.Contains(text, word) {
					return e
				}
			}
		}
		if e := next("oldRUN_PHASE_PENDING"); !e.GetSnapshotComplete() {
			t.Error("the snapshot does not end")
		}
		n := h.node("n1")
		defer n.end()
		a := n.serve()
		for a.GetName() != "old" {
			a = n.serve()
		}
		h.report(ready(a))
		e := next("oldRUN_PHASE_READYhttp://n1")
		r := e.GetRoutes()[len(e.GetRoutes())-1]
		if r.GetAttempt() != 1 || r.GetNodeUid() != "n1" || r.GetRunUid() != a.GetRunUid() || !r.GetFunction() {
			t.Errorf("route %v", r)
		}
		if got, err := h.routes.GetRoute(h.ctx, &hearthv1.GetRouteRequest{Name: "old"}); err != nil || got.GetRoute().GetAddress() != "http://n1" {
			t.Errorf("%v %v", got, err)
		}
		if got, err := h.routes.GetRoute(h.ctx, &hearthv1.GetRouteRequest{Name: "t"}); err != nil || got.GetRoute().GetFunction() {
			t.Errorf("%v %v", got, err)
		}
		_, err = h.routes.GetRoute(h.ctx, &hearthv1.GetRouteRequest{Name: "none"})
		refused(t, "none", err, connect.CodeNotFound, "RUN_NOT_FOUND")
		if _, err := h.runs.CancelRun(h.ctx, &hearthv1.CancelRunRequest{Name: "old"}); err != nil {
			t.Fatal(err)
		}
		if e := next("oldRUN_PHASE_RUNNING"); e.GetRoutes()[0].GetAddress() != "" {
			t.Error("an address while it is being released")
		}
		h.report(released(a))
		if e := next("oldRUN_PHASE_CANCELLED"); e.GetRoutes()[0].GetLogAddress() != "http://n1" {
			t.Errorf("where its log is was forgotten: %v", e)
		}
		if _, err := h.runs.DeleteRun(h.ctx, &hearthv1.DeleteRunRequest{Name: "old"}); err != nil {
			t.Fatal(err)
		}
		next(a.GetRunUid())
	})
}

// A watch of what is ready hears of a Run when it becomes ready and when it is that no
// longer, and of nothing else.
func TestReadyRoutes(t *testing.T) {
	twice(t, func(t *testing.T, h *house) {
		n := h.node("n1")
		defer n.end()
		h.create("old", function())
		old := n.serve()
		h.report(ready(old))
		h.create("waits", function())
		waits := n.serve()
		watch, err := h.routes.WatchRoutes(h.ctx, &hearthv1.WatchRoutesRequest{ReadyOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		defer watch.Close()
		hear := func(want string) {
			t.Helper()
			e, err := watch.Receive()
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, r := range e.GetRoutes() {
				got = append(got, "+"+r.GetName())
			}
			for _, uid := range e.GetRemovedRunUids() {
				got = append(got, "-"+uid)
			}
			if text := strings.Join(got, " "); text != want {
				t.Fatalf("heard %s, want %s", text, want)
			}
		}
		hear("+old")
		h.create("next", function())
		next := n.serve()
		h.report(ready(next))
		hear("+next")
		h.report(ready(waits))
		hear("+waits")
		if _, err := h.runs.CancelRun(h.ctx, &hearthv1.CancelRunRequest{Name: "old"}); err != nil {
			t.Fatal(err)
		}
		hear("-" + old.GetRunUid())
		h.report(released(old))
		if _, err := h.runs.DeleteRun(h.ctx, &hearthv1.DeleteRunRequest{Name: "next"}); err != nil {
			t.Fatal(err)
		}
		hear("-" + next.GetRunUid())
	})
}

// A watch that nobody reads holds up no writer, and is told to list again.
func TestWatchSlow(t *testing.T) {
	cfg := settings(t)
	cfg.WatchHistory = 16
	h := open(t, cfg, "inprocess")
	defer h.close()
	w := h.follow(t, 0, nil)
	defer w.end()
	w.expect("*")
	for i := range 100 {
		h.create(fmt.Sprintf("f%d", i), function())
	}
	for seen := 0; ; seen++ {
		_, err := w.watch.Receive()
		if err != nil {
			refused(t, fmt.Sprintf("after %d events", seen), err, connect.CodeOutOfRange, "WATCH_COMPACTED")
			return
		}
	}
}
