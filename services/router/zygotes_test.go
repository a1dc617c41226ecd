package router_test

import (
	"context"
	"testing"

	"connectrpc.com/connect/v2"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/gen/hearth/v1/hearthv1connect"
	"github.com/hearth-run/hearth/gen/serverless"
	"github.com/hearth-run/hearth/internal/kit/edge"
)

// A call goes where its imports are warm, as far as load allows, and what it starts
// from is the worker's choice.
func TestWarmth(t *testing.T) {
	h := open(t, false)
	first, second := h.worker("w1"), h.worker("w2")
	warm := func(s *serverless.WorkerStatus) {
		s.CheckpointIds = []string{"z-root", "z-np"}
		s.Zygotes = []*serverless.HeldZygote{{CheckpointId: "z-root"}, {CheckpointId: "z-np", Modules: []string{"numpy", "pandas"}, ImportNanos: 1}}
	}
	goes := func(cfg *serverless.ExecutionConfig) (string, *serverless.WorkerExecutionRequest) {
		t.Helper()
		_, last, err := h.call("r", "", cfg, "x")
		if err != nil {
			t.Fatal(err)
		}
		w := map[string]*fakeWorker{"w1": first, "w2": second}[last.GetWorkerId()]
		return w.id, w.headers()[len(w.headers())-1]
	}
	pandas := &serverless.ExecutionConfig{Imports: []string{"pandas.io", "numpy", "requests"}}
	if got, _ := goes(pandas); got != "w1" {
		t.Errorf("nobody is warm: %s", got)
	}
	h.register(second, warm)
	got, header := goes(pandas)
	if got != "w2" || header.GetCheckpointId() != "" || header.GetDisableOptimizedExecution() || len(header.GetResources()) != 3 {
		t.Errorf("w2 is warm: %s was told %v", got, header)
	}
	if got, header := goes(&serverless.ExecutionConfig{Imports: pandas.Imports, DisableOptimizedExecution: true}); got != "w1" || !header.GetDisableOptimizedExecution() {
		t.Errorf("a cold start needs no warmth: %s was told %v", got, header)
	}
	if got, header := goes(&serverless.ExecutionConfig{CheckpointId: "z-np"}); got != "w2" || header.GetCheckpointId() != "z-np" {
		t.Errorf("a zygote by its name: %s was told %v", got, header)
	}
	load := func(used int64, u *serverless.WorkerUtilization) {
		u.WorkerId, u.MemUsed, u.MemTotal, u.CpuTotal = "w2", used, 16<<30, 2000
		if res, err := h.registry.PostWorkerUtilization(t.Context(), u); err != nil || !res.GetUpdated() {
			t.Fatal(res, err)
		}
	}
	load(3<<30, &serverless.WorkerUtilization{})
	if got, _ := goes(pandas); got != "w2" {
		t.Errorf("a little load is no matter: %s", got)
	}
	load(12<<30, &serverless.WorkerUtilization{})
	if got, _ := goes(pandas); got != "w1" {
		t.Errorf("much load is: %s", got)
	}
	load(0, &serverless.WorkerUtilization{CpuUtil: 2000})
	if got, _ := goes(pandas); got != "w1" {
		t.Errorf("a busy CPU is: %s", got)
	}
	load(0, &serverless.WorkerUtilization{HasCheckpoints: true})
	if got, _ := goes(pandas); got != "w1" {
		t.Errorf("the zygote has gone: %s", got)
	}
	_, _, err := h.call("r", "", &serverless.ExecutionConfig{CheckpointId: "z-np"}, "x")
	wants(t, "a zygote that nobody has", err, connect.CodeInvalidArgument, "CHECKPOINT_UNKNOWN")
	h.idle()
}

// What a worker says of the start and of the time reaches the client and the counters.
func TestStartsAndSteps(t *testing.T) {
	h := open(t, true)
	w := h.worker("w1")
	var last *serverless.ClientExecutionResponse
	for _, start := range []serverless.ContainerStart{
		serverless.ContainerStart_CONTAINER_START_POOLED, serverless.ContainerStart_CONTAINER_START_CHECKPOINT,
		serverless.ContainerStart_CONTAINER_START_CHECKPOINT, serverless.ContainerStart_CONTAINER_START_COLD,
	} {
		w.set(func(_ context.Context, header *serverless.WorkerExecutionRequest, s workerSide) error {
			res := answer(header, []byte("x"))
			res.Start, res.Steps = start, []*serverless.ExecutionStep{{Name: "fork", Nanos: 5}, {Name: "call", Nanos: 7}}
			return s.Send(res)
		})
		var err error
		if _, last, err = h.call("r", "", nil, "x"); err != nil || last.GetStart() != start {
			t.Errorf("%v: %v %v", start, last, err)
		}
	}
	var names []string
	for _, step := range last.GetSteps() {
		names = append(names, step.GetName())
	}
	if len(names) != 4 || names[0] != "place" || names[1] != "fork" || names[2] != "call" || names[3] != "transit" || last.GetSteps()[3].GetNanos() <= 0 {
		t.Errorf("steps: %v", last.GetSteps())
	}
	c := h.service.Counters()
	if c["starts_pooled"] != 1 || c["starts_checkpoint"] != 2 || c["starts_cold"] != 1 || c["starts_session"] != 0 {
		t.Errorf("counted %v", c)
	}
}

// fakeNursery is a worker's ZygoteService.
type fakeNursery struct {
	hearthv1connect.ZygoteServiceHandler // what the test does not ask
	id                                   string
}

func (n *fakeNursery) ListZygotes(context.Context, *hearthv1.ListZygotesRequest) (*hearthv1.ListZygotesResponse, error) {
	return &hearthv1.ListZygotesResponse{Zygotes: []*hearthv1.Zygote{{ZygoteId: "z-root", WorkerId: n.id}}, Usage: []*hearthv1.ZygoteUsage{{WorkerId: n.id}}}, nil
}

func (n *fakeNursery) WarmZygote(_ context.Context, req *hearthv1.WarmZygoteRequest) (*hearthv1.WarmZygoteResponse, error) {
	if req.GetModules()[0] == "threads" {
		return nil, edge.New(connect.CodeFailedPrecondition, "ZYGOTE_UNFIT", "it starts threads", nil)
	}
	return &hearthv1.WarmZygoteResponse{Zygotes: []*hearthv1.Zygote{{ZygoteId: "z-1", WorkerId: n.id, Modules: req.GetModules()}}}, nil
}

// The router asks every worker, or the one that is named, and passes their word on.
func TestZygotesOfAllWorkers(t *testing.T) {
	h := open(t, true)
	for _, id := range []string{"w1", "w2"} {
		w := &fakeWorker{id: id, do: echo}
		w.uri, w.cut = h.mounted(id, h.wire, func(rpc *connect.Server) {
			hearthv1connect.RegisterZygoteServiceHandler(rpc, &fakeNursery{id: id})
		})
		h.register(w)
	}
	zygotes := hearthv1connect.NewZygoteServiceClient(h.rpc)
	list, err := zygotes.ListZygotes(t.Context(), &hearthv1.ListZygotesRequest{})
	if err != nil || len(list.GetZygotes()) != 2 || len(list.GetUsage()) != 2 || list.GetZygotes()[1].GetWorkerId() != "w2" {
		t.Errorf("%v, %v", list, err)
	}
	warmed, err := zygotes.WarmZygote(t.Context(), &hearthv1.WarmZygoteRequest{WorkerId: "w2", Modules: []string{"pandas"}})
	if err != nil || len(warmed.GetZygotes()) != 1 || warmed.GetZygotes()[0].GetWorkerId() != "w2" {
		t.Errorf("%v, %v", warmed, err)
	}
	_, err = zygotes.WarmZygote(t.Context(), &hearthv1.WarmZygoteRequest{Modules: []string{"threads"}})
	wants(t, "an unfit one", err, connect.CodeFailedPrecondition, "ZYGOTE_UNFIT")
	_, err = zygotes.ListZygotes(t.Context(), &hearthv1.ListZygotesRequest{WorkerId: "w9"})
	wants(t, "no such worker", err, connect.CodeNotFound, "WORKER_UNKNOWN")
}
