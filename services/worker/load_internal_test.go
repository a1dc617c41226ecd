package worker

import (
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"

	"github.com/hearth-run/hearth/gen/serverless"
	"github.com/hearth-run/hearth/services/worker/internal/box"
	"github.com/hearth-run/hearth/services/worker/internal/ledger"
	"github.com/hearth-run/hearth/services/worker/internal/zygotes"
)

// Routers count a container from the call that it was made for until that is over: in
// the report are those in between, which they were told of.
func TestUtilizationCountsWhatRoutersKnow(t *testing.T) {
	w := &Worker{
		cfg: Config{ID: "w", Memory: 1000, GPUMemory: 100}, load: newLoad(), ready: make(chan struct{}), boxes: map[string]*entry{},
		ledger: ledger.New(ledger.Capacity{Memory: 1000, GPUMemory: 100}),
	}
	add := func(id string, reported, leaving bool, memory int64) {
		if err := w.ledger.Reserve(id, ledger.Demand{Memory: memory, GPUMemory: memory / 10}); err != nil {
			t.Fatal(err)
		}
		b := box.New(box.Config{ID: id}, "r-"+id, slog.New(slog.DiscardHandler))
		w.boxes[id] = &entry{box: b, status: &serverless.ExecutorStatus{ContainerId: id}, reported: reported, leaving: leaving}
	}
	add("runs", true, false, 100)
	add("idles", true, false, 50)
	add("starts", false, false, 200)
	add("leaves", true, true, 300)
	add("failed to start", false, true, 70)
	u, containers := w.Utilization()
	if u.GetMemUsed() != 150 || u.GetGpuMemUsed() != 15 || u.GetExecutorCount() != 2 || u.GetMemTotal() != 1000 || u.GetGpuMemTotal() != 100 {
		t.Errorf("reported %v", u)
	}
	if len(containers) != 0 {
		t.Errorf("containers that cannot be read are reported: %v", containers)
	}
	w.boxes["starts"].reported, w.boxes["runs"].leaving = true, true
	if u, _ := w.Utilization(); u.GetMemUsed() != 250 || u.GetExecutorCount() != 2 {
		t.Errorf("a moment later %v", u)
	}
	if memory, _, count := w.ledger.Usage(); memory != 720 || count != 5 {
		t.Errorf("to tell has changed what is reserved: %d bytes, %d containers", memory, count)
	}
}

// A call waits for the place of a container that is taken down, until it turns out
// that it cannot be.
func TestStuckContainer(t *testing.T) {
	w := &Worker{
		cfg: Config{ID: "w"}, log: slog.New(slog.DiscardHandler), boxes: map[string]*entry{}, freed: make(chan struct{}),
		ledger: ledger.New(ledger.Capacity{Memory: 1000}),
	}
	h, demand := &serverless.WorkerExecutionRequest{RequestId: "r"}, ledger.Demand{Memory: 800}
	old, err := w.admit(t.Context(), h, demand, zygotes.Start{})
	if err != nil {
		t.Fatal(err)
	}
	w.settle(old.ID, true)
	synctest.Test(t, func(t *testing.T) {
		w.freed = make(chan struct{})
		refused := make(chan error, 1)
		go func() {
			_, err := w.admit(t.Context(), h, demand, zygotes.Start{})
			refused <- err
		}()
		synctest.Wait()
		select {
		case err := <-refused:
			t.Fatalf("it did not wait: %v", err)
		default:
		}
		w.stuck(old.ID)
		if err := <-refused; !errors.Is(err, errFull) {
			t.Errorf("after the container got stuck: %v", err)
		}
	})
	if held := w.reserved(old.ID); held != demand {
		t.Errorf("its reservation is %+v", held)
	}
}
