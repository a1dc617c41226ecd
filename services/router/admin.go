package router

import (
	"context"

	"google.golang.org/protobuf/types/known/timestamppb"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/services/router/internal/placement"
	"github.com/hearth-run/hearth/services/router/internal/sessions"
)

// admin shows what the router knows.
type admin struct{ *Service }

func (a *admin) ListWorkers(ctx context.Context, _ *hearthv1.ListWorkersRequest) (*hearthv1.ListWorkersResponse, error) {
	if err := checkToken(ctx, a.cfg.Token); err != nil {
		return nil, atEdge(err, nil)
	}
	res := &hearthv1.ListWorkersResponse{}
	starts := a.cluster.Starts()
	for _, v := range a.cluster.Workers() {
		w := worker(v)
		if c := starts[v.ID]; c != nil {
			w.Starts = &hearthv1.StartCounts{Cold: c["cold"], Checkpoint: c["checkpoint"], Pooled: c["pooled"], Session: c["session"]}
		}
		res.Workers = append(res.Workers, w)
	}
	return res, nil
}

var workerStates = map[placement.State]hearthv1.WorkerState{
	placement.Ready: hearthv1.WorkerState_WORKER_STATE_READY,
	placement.Busy:  hearthv1.WorkerState_WORKER_STATE_BUSY,
	placement.Error: hearthv1.WorkerState_WORKER_STATE_ERROR,
}

func worker(v placement.View) *hearthv1.ExecutionWorker {
	w := &hearthv1.ExecutionWorker{
		WorkerId: v.ID, WorkerUri: v.URI, Flavor: v.Flavor, State: workerStates[v.State],
		MemTotal: v.MemTotal, MemTaken: v.MemTaken, GpuMemTotal: v.GPUMemTotal, GpuMemTaken: v.GPUMemTaken,
		CpuUtil: v.CPUUtil, CpuTotal: v.CPUTotal, MaxExecutors: v.MaxContainers, Executors: v.ContainersTaken,
		InFlight: v.InFlight, LastReportTime: timestamppb.New(v.Seen), CheckpointIds: v.Checkpoints,
	}
	for _, c := range v.Containers {
		w.Containers = append(w.Containers, &hearthv1.ExecutionContainer{
			ContainerId: c.ID, SessionId: c.Session, CheckpointId: c.Checkpoint, State: workerStates[c.State],
		})
	}
	return w
}

var sessionStates = map[sessions.State]hearthv1.SessionState{
	sessions.Open:    hearthv1.SessionState_SESSION_STATE_OPEN,
	sessions.Pinned:  hearthv1.SessionState_SESSION_STATE_PINNED,
	sessions.Expired: hearthv1.SessionState_SESSION_STATE_EXPIRED,
}

func (a *admin) ListSessions(ctx context.Context, _ *hearthv1.ListSessionsRequest) (*hearthv1.ListSessionsResponse, error) {
	if err := checkToken(ctx, a.cfg.Token); err != nil {
		return nil, atEdge(err, nil)
	}
	res := &hearthv1.ListSessionsResponse{}
	for _, v := range a.cluster.Sessions() {
		res.Sessions = append(res.Sessions, &hearthv1.ExecutionSession{
			SessionId: v.ID, State: sessionStates[v.State], WorkerId: v.Pin.Worker, ContainerId: v.Pin.Container,
			CheckpointId: v.Pin.Checkpoint, RequestId: v.Running, Waiting: int32(v.Waiting), SinceTime: timestamppb.New(v.Since),
		})
	}
	return res, nil
}

func (a *admin) GetCounters(ctx context.Context, _ *hearthv1.GetCountersRequest) (*hearthv1.GetCountersResponse, error) {
	if err := checkToken(ctx, a.cfg.Token); err != nil {
		return nil, atEdge(err, nil)
	}
	return &hearthv1.GetCountersResponse{Counters: a.Counters()}, nil
}
