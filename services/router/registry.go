package router

import (
	"context"

	"github.com/hearth-run/hearth/gen/serverless"
	"github.com/hearth-run/hearth/services/router/internal/placement"
	"github.com/hearth-run/hearth/services/router/internal/warmth"
)

// registry takes the workers' reports.
type registry struct{ *Service }

var states = map[serverless.Status]placement.State{
	serverless.Status_STATUS_READY:   placement.Ready,
	serverless.Status_STATUS_BUSY:    placement.Busy,
	serverless.Status_STATUS_ERROR:   placement.Error,
	serverless.Status_STATUS_REMOVED: placement.Removed,
}

// admitted checks the worker's token and the status that it reports.
func (r *registry) admitted(ctx context.Context, status serverless.Status) (placement.State, error) {
	if err := checkToken(ctx, r.cfg.WorkerToken); err != nil {
		return 0, err
	}
	state, ok := states[status]
	if !ok {
		return 0, errStatus
	}
	return state, nil
}

func (r *registry) PostWorkerStatus(ctx context.Context, s *serverless.WorkerStatus) (*serverless.RegistryUpdateResponse, error) {
	meta := map[string]string{"worker_id": s.GetWorkerId()}
	state, err := r.admitted(ctx, s.GetStatus())
	if err != nil {
		return nil, atEdge(err, meta)
	}
	err = r.cluster.Worker(placement.Worker{
		ID: s.GetWorkerId(), URI: s.GetWorkerUri(), Flavor: s.GetFlavor(), Incarnation: s.GetIncarnation(),
		MemTotal: s.GetMemTotal(), GPUMemTotal: s.GetGpuMemTotal(), MaxContainers: s.GetMaxExecutors(),
		Checkpoints: s.GetCheckpointIds(),
	}, state)
	if err != nil {
		return nil, atEdge(err, meta)
	}
	r.cluster.Warmth(s.GetWorkerId(), s.GetCheckpointIds(), held(s.GetZygotes()))
	return updated(true), nil
}

func held(said []*serverless.HeldZygote) []warmth.Zygote {
	zygotes := make([]warmth.Zygote, 0, len(said))
	for _, z := range said {
		zygotes = append(zygotes, warmth.Zygote{ID: z.GetCheckpointId(), Modules: z.GetModules(), Nanos: z.GetImportNanos()})
	}
	return zygotes
}

func (r *registry) PostExecutorStatus(ctx context.Context, s *serverless.ExecutorStatus) (*serverless.RegistryUpdateResponse, error) {
	state, err := r.admitted(ctx, s.GetStatus())
	if err != nil {
		return nil, atEdge(err, map[string]string{"worker_id": s.GetWorkerId()})
	}
	known := r.cluster.Container(placement.Container{
		ID: s.GetContainerId(), Worker: s.GetWorkerId(), Session: s.GetSessionId(), Checkpoint: s.GetCheckpointId(), State: state,
	}, s.GetRequestId())
	return updated(known), nil
}

func (r *registry) PostWorkerUtilization(ctx context.Context, u *serverless.WorkerUtilization) (*serverless.RegistryUpdateResponse, error) {
	if err := checkToken(ctx, r.cfg.WorkerToken); err != nil {
		return nil, atEdge(err, nil)
	}
	if u.GetHasCheckpoints() {
		r.cluster.Warmth(u.GetWorkerId(), u.GetCheckpointIds(), held(u.GetZygotes()))
	}
	if len(u.GetStarts()) > 0 {
		r.cluster.Started(u.GetWorkerId(), u.GetStarts())
	}
	return updated(r.cluster.Utilization(placement.Utilization{
		Worker: u.GetWorkerId(), CPUUtil: u.GetCpuUtil(), CPUTotal: u.GetCpuTotal(), GPUUtil: u.GetGpuUtil(), GPUTotal: u.GetGpuTotal(),
		MemUsed: u.GetMemUsed(), MemTotal: u.GetMemTotal(), GPUMemUsed: u.GetGpuMemUsed(), GPUMemTot: u.GetGpuMemTotal(),
		Containers: u.GetExecutorCount(),
	})), nil
}

// PostExecutorUtilization is a sign of life; placement goes by the worker's sums.
func (r *registry) PostExecutorUtilization(ctx context.Context, u *serverless.ExecutorUtilization) (*serverless.RegistryUpdateResponse, error) {
	if err := checkToken(ctx, r.cfg.WorkerToken); err != nil {
		return nil, atEdge(err, nil)
	}
	return updated(r.cluster.Seen(u.GetWorkerId())), nil
}

func updated(known bool) *serverless.RegistryUpdateResponse {
	return &serverless.RegistryUpdateResponse{Updated: known}
}
