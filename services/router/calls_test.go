package router_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/proto"

	"github.com/hearth-run/hearth/gen/serverless"
	"github.com/hearth-run/hearth/internal/kit/edge"
	"github.com/hearth-run/hearth/services/router"
)

type opener = func(change ...func(*router.Config)) *house

func memory(alloc, most int64) *serverless.ResourceBudget {
	return &serverless.ResourceBudget{Kind: serverless.ResourceKind_RESOURCE_KIND_MEMORY, Alloc: alloc, Max: most}
}

// What the worker is told, and what the client hears.
func TestCall(t *testing.T) {
	overBoth(t, func(t *testing.T, open opener) {
		h := open()
		w := h.worker("w1")
		got, last, err := h.call("r1", "s1", &serverless.ExecutionConfig{
			Imports: []string{"pandas", "numpy", "pandas"}, Packages: []string{"Foo_Bar >= 1.0", "foo-bar>=1", "x[b,a]"},
			Budgets: []*serverless.ResourceBudget{memory(0, 4<<30), {Kind: 7, Alloc: 5}},
		}, "a", "b", "c")
		if err != nil || got != "abc" {
			t.Fatalf("%q, %v", got, err)
		}
		want := &serverless.WorkerExecutionRequest{
			RequestId: "r1", SessionId: "s1", WorkerId: "w1", ContainerId: proto.String(""), Resources: []string{"numpy", "pandas"},
			Packages: []string{"foo-bar>=1", "x[a,b]"}, Budgets: []*serverless.ResourceBudget{memory(1<<30, 4<<30), {Kind: 7, Alloc: 5}},
		}
		if header := w.headers()[0]; !proto.Equal(header, want) {
			t.Errorf("the worker was told\n%v, want\n%v", header, want)
		}
		if last.GetRequestId() != "r1" || last.GetSessionId() != "s1" || last.GetWorkerId() != "w1" || last.GetContainerId() != "k-r1" || !last.GetSuccess() {
			t.Errorf("the client was told %v", last)
		}
		if last.GetStart() != serverless.ContainerStart_CONTAINER_START_COLD || len(last.GetBudgets()) != 2 {
			t.Errorf("the client was told of the start: %v, %v", last.GetStart(), last.GetBudgets())
		}
		h.idle()
	})
}

// A bad first message is refused, and no worker hears of it.
func TestFirstMessage(t *testing.T) {
	overBoth(t, func(t *testing.T, open opener) {
		h := open()
		w := h.worker("w1")
		config := func(c *serverless.ExecutionConfig) *serverless.ClientExecutionRequest {
			return &serverless.ClientExecutionRequest{RequestId: "r", Data: &serverless.ClientExecutionRequest_Config{Config: c}}
		}
		for name, tc := range map[string]struct {
			first  *serverless.ClientExecutionRequest
			reason string
			text   string
		}{
			"payload":         {&serverless.ClientExecutionRequest{RequestId: "r", Data: &serverless.ClientExecutionRequest_Payload{}}, "FIRST_MESSAGE_INVALID", "config"},
			"nothing":         {&serverless.ClientExecutionRequest{RequestId: "r"}, "FIRST_MESSAGE_INVALID", "config"},
			"no request_id":   {&serverless.ClientExecutionRequest{Data: &serverless.ClientExecutionRequest_Config{}}, "FIRST_MESSAGE_INVALID", "request_id"},
			"none":            {nil, "FIRST_MESSAGE_INVALID", "config"},
			"negative":        {config(&serverless.ExecutionConfig{Budgets: []*serverless.ResourceBudget{memory(-1, 0)}}), "INVALID_ARGUMENT", "alloc"},
			"max below alloc": {config(&serverless.ExecutionConfig{Budgets: []*serverless.ResourceBudget{memory(2, 1)}}), "INVALID_ARGUMENT", "max must be"},
			"twice":           {config(&serverless.ExecutionConfig{Budgets: []*serverless.ResourceBudget{memory(1, 1), memory(2, 2)}}), "BUDGET_INVALID", "RESOURCE_KIND_MEMORY"},
			"package":         {config(&serverless.ExecutionConfig{Packages: []string{"ok", "bad @ https://x"}}), "PACKAGE_INVALID", `"bad @ https://x"`},
			"two versions":    {config(&serverless.ExecutionConfig{Packages: []string{"a>=1", "A>=2"}}), "PACKAGE_INVALID", `"A>=2"`},
			"checkpoint":      {config(&serverless.ExecutionConfig{CheckpointId: "none"}), "CHECKPOINT_UNKNOWN", "checkpoint"},
			"both":            {config(&serverless.ExecutionConfig{CheckpointId: "none", DisableOptimizedExecution: true}), "INVALID_ARGUMENT", "exclude"},
		} {
			stream, err := h.proxy.RequestExecution(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if tc.first != nil {
				stream.Send(tc.first)
			}
			_, _, err = finish(stream)
			wants(t, name, err, connect.CodeInvalidArgument, tc.reason)
			if err != nil && !strings.Contains(err.Error(), tc.text) {
				t.Errorf("%s: %v does not say %q", name, err, tc.text)
			}
		}
		if heard := w.headers(); len(heard) != 0 {
			t.Errorf("the worker heard of %v", heard)
		}
		h.idle()
	})
}

func TestSecondConfig(t *testing.T) {
	overBoth(t, func(t *testing.T, open opener) {
		h := open()
		h.worker("w1")
		stream := h.start(t.Context(), "r", "", nil)
		stream.Send(&serverless.ClientExecutionRequest{Data: &serverless.ClientExecutionRequest_Config{Config: &serverless.ExecutionConfig{}}})
		_, _, err := finish(stream)
		wants(t, "second config", err, connect.CodeInvalidArgument, "SECOND_CONFIG")
		h.idle()
	})
}

// A line that was printed is there before the function ends, and input reaches the
// function while it runs.
func TestLive(t *testing.T) {
	overBoth(t, func(t *testing.T, open opener) {
		h := open()
		w := h.worker("w1")
		w.set(func(ctx context.Context, header *serverless.WorkerExecutionRequest, s workerSide) error {
			line := answer(header, nil)
			line.Data = &serverless.WorkerExecutionResponse_Logs{Logs: "begun\n"}
			if err := s.Send(line); err != nil {
				return err
			}
			return echo(ctx, header, s)
		})
		stream := h.start(t.Context(), "r", "", nil)
		msg, err := stream.Receive()
		if err != nil || msg.GetLogs() != "begun\n" {
			t.Fatalf("%v, %v", msg, err)
		}
		for _, part := range []string{"one", "two"} {
			send(stream, part)
			if msg, err := stream.Receive(); err != nil || string(msg.GetPayload()) != part {
				t.Fatalf("%v, %v", msg, err)
			}
		}
		if rest, _, err := finish(stream); err != nil || rest != "" {
			t.Errorf("%q, %v", rest, err)
		}
		h.idle()
	})
}

func TestDuplicate(t *testing.T) {
	overBoth(t, func(t *testing.T, open opener) {
		h := open()
		h.worker("w1")
		first := h.start(t.Context(), "r", "", nil)
		send(first, "x")
		if _, err := first.Receive(); err != nil {
			t.Fatal(err)
		}
		_, _, err := h.call("r", "", nil)
		wants(t, "the same request_id", err, connect.CodeAlreadyExists, "REQUEST_IN_FLIGHT")
		if edge.Info(err).GetMetadata()["request_id"] != "r" {
			t.Errorf("the error does not name the call: %v", edge.Info(err))
		}
		if _, _, err := finish(first); err != nil {
			t.Errorf("the first call: %v", err)
		}
		if _, _, err := h.call("r", "", nil, "y"); err != nil {
			t.Errorf("the id is free again: %v", err)
		}
		h.idle()
	})
}

// What a worker itself says passes through, with its code and details.
func TestVerdict(t *testing.T) {
	overBoth(t, func(t *testing.T, open opener) {
		h := open()
		w := h.worker("w1")
		other := h.worker("w2")
		for _, tc := range []struct {
			code   connect.Code
			reason string
		}{
			{connect.CodeFailedPrecondition, "PACKAGE_INSTALL_FAILED"}, {connect.CodeResourceExhausted, "OUT_OF_MEMORY"},
			{connect.CodeUnavailable, "EXECUTOR_DIED"}, {connect.CodeDataLoss, "ODD"},
		} {
			w.set(func(_ context.Context, header *serverless.WorkerExecutionRequest, s workerSide) error {
				return edge.New(tc.code, tc.reason, "said by the worker", map[string]string{"line": "7"})
			})
			_, _, err := h.call("r", "", nil, "x")
			wants(t, tc.reason, err, tc.code, tc.reason)
			meta := edge.Info(err).GetMetadata()
			if !strings.Contains(err.Error(), "said by the worker") || meta["line"] != "7" || meta["worker_id"] != "w1" {
				t.Errorf("%v, %v", err, meta)
			}
		}
		if len(other.headers()) != 0 {
			t.Error("a worker's own verdict was tried again elsewhere")
		}
		h.idle()
	})
}

func TestNoCapacity(t *testing.T) {
	h := open(t, false)
	_, _, err := h.call("r", "", nil)
	wants(t, "no worker", err, connect.CodeUnavailable, "NO_WORKER")
	h.worker("w1")
	_, _, err = h.call("r", "", &serverless.ExecutionConfig{Budgets: []*serverless.ResourceBudget{memory(15<<30, 0)}})
	wants(t, "too much", err, connect.CodeResourceExhausted, "NO_CAPACITY")
	_, _, err = h.call("r", "", &serverless.ExecutionConfig{Gpu: true})
	wants(t, "no gpu", err, connect.CodeResourceExhausted, "NO_CAPACITY")
	h.worker("g1", func(s *serverless.WorkerStatus) { s.Flavor, s.GpuMemTotal = "gpu", 10<<30 })
	if _, last, err := h.call("r", "", &serverless.ExecutionConfig{Gpu: true}, "x"); err != nil || last.GetWorkerId() != "g1" {
		t.Errorf("%v, %v", last, err)
	}
	h.idle()
}

func TestDeadline(t *testing.T) {
	overBoth(t, func(t *testing.T, open opener) {
		h := open()
		w := h.worker("w1")
		ended := make(chan struct{})
		w.set(func(ctx context.Context, header *serverless.WorkerExecutionRequest, s workerSide) error {
			defer close(ended)
			<-ctx.Done()
			return ctx.Err()
		})
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, _, err := finish(h.start(ctx, "r", "", nil))
		if connect.CodeOf(err) != connect.CodeDeadlineExceeded && err != context.DeadlineExceeded {
			t.Errorf("%v", err)
		}
		if len(w.headers()) > 0 { // a slow machine may not have come that far
			<-ended
		}
		h.stop()
	})
}

// The router's own bound on a call ends it like the caller's.
func TestExecutionTimeout(t *testing.T) {
	h := open(t, false, func(c *router.Config) { c.ExecutionTimeout = 20 * time.Millisecond })
	w := h.worker("w1")
	w.set(func(ctx context.Context, _ *serverless.WorkerExecutionRequest, _ workerSide) error {
		<-ctx.Done()
		return ctx.Err()
	})
	_, _, err := h.call("r", "", nil)
	wants(t, "too long", err, connect.CodeDeadlineExceeded, "DEADLINE_EXCEEDED")
	h.idle()
}

// A client that goes takes its worker call with it.
func TestClientGone(t *testing.T) {
	overBoth(t, func(t *testing.T, open opener) {
		h := open()
		w := h.worker("w1")
		ended := make(chan struct{})
		w.set(func(ctx context.Context, header *serverless.WorkerExecutionRequest, s workerSide) error {
			defer close(ended)
			s.Send(answer(header, []byte("part")))
			<-ctx.Done()
			return ctx.Err()
		})
		ctx, cancel := context.WithCancel(t.Context())
		stream := h.start(ctx, "r", "s", nil)
		if _, err := stream.Receive(); err != nil {
			t.Fatal(err)
		}
		cancel()
		<-ended
		stream.Close()
		// The end of the call passes the session's turn on: this one waits for it.
		_, _, err := h.call("r2", "s", nil)
		wants(t, "the session of a call that was given up", err, connect.CodeNotFound, "SESSION_EXPIRED")
		h.idle()
	})
}

func TestCheckpoints(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "cpu.json"), []byte(`{"version":1,"flavor":"cpu","alpha":0.006,
		"items":{"numpy":{"load_time":0.2},"pandas":{"load_time":0.5,"dependencies":["numpy"]}},
		"checkpoints":[{"id":"n","items":["numpy"],"size_mb":7},{"id":"np","items":["numpy","pandas"],"size_mb":80}],
		"packages":{"numpy":"1.26.4"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	h := open(t, false, func(c *router.Config) { c.CatalogueDir = dir })
	w := h.worker("w1")
	call := func(cfg *serverless.ExecutionConfig) *serverless.WorkerExecutionRequest {
		t.Helper()
		if _, _, err := h.call("r", "", cfg, "x"); err != nil {
			t.Fatal(err)
		}
		return w.headers()[len(w.headers())-1]
	}
	pandas := &serverless.ExecutionConfig{Imports: []string{"pandas"}, Packages: []string{"numpy>=1.20", "six"}}
	header := call(pandas)
	if header.GetCheckpointId() != "" || len(header.GetPackages()) != 1 || header.GetPackages()[0] != "six" {
		t.Errorf("a worker without checkpoints was told %v", header)
	}
	holds := func(ids ...string) func(*serverless.WorkerStatus) {
		return func(s *serverless.WorkerStatus) { s.CheckpointIds = ids }
	}
	h.register(w, holds("n"))
	if got := call(pandas).GetCheckpointId(); got != "n" {
		t.Errorf("the worker holds n only, and was told %q", got)
	}
	h.register(w, holds("n", "np", "unheard-of"))
	if got := call(pandas).GetCheckpointId(); got != "np" {
		t.Errorf("the cheapest is np, chosen was %q", got)
	}
	if got := call(&serverless.ExecutionConfig{Imports: []string{"pandas"}, DisableOptimizedExecution: true}).GetCheckpointId(); got != "" {
		t.Errorf("a cold start was asked for, chosen was %q", got)
	}
	if got := call(&serverless.ExecutionConfig{CheckpointId: "n"}).GetCheckpointId(); got != "n" {
		t.Errorf("n was asked for, chosen was %q", got)
	}
	// Of two workers the one that holds the wanted checkpoint is chosen.
	h.register(w, holds())
	if got := call(&serverless.ExecutionConfig{CheckpointId: "np"}).GetCheckpointId(); got != "" {
		t.Errorf("nobody holds np, and the worker was told %q", got)
	}
	other := h.worker("w2", holds("np"))
	if _, last, err := h.call("r", "", &serverless.ExecutionConfig{CheckpointId: "np"}, "x"); err != nil || last.GetWorkerId() != "w2" {
		t.Errorf("%v, %v", last, err)
	}
	if got := other.headers()[0].GetCheckpointId(); got != "np" {
		t.Errorf("w2 was told %q", got)
	}
	h.idle()
}
