package worker

import (
	"context"
	"errors"

	"google.golang.org/protobuf/types/known/durationpb"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/internal/kit/edge"
	"github.com/hearth-run/hearth/services/worker/internal/hotset"
	"github.com/hearth-run/hearth/services/worker/internal/zygotes"
)

// zygoteAdmin is ZygoteService for this worker.
type zygoteAdmin struct{ *Worker }

// on refuses what a worker without zygotes cannot do, and requests for another one.
func (a zygoteAdmin) on(worker string) error {
	if worker != "" && worker != a.cfg.ID {
		return edge.Publicf(errOtherWorker, "worker_id %q: this is worker %q", worker, a.cfg.ID)
	}
	select {
	case <-a.ready:
	default:
		return errNotReady
	}
	if a.zygotes == nil {
		return errZygotesOff
	}
	return nil
}

func (a zygoteAdmin) told(err error) error {
	return edgeTable.Error(err, map[string]string{"worker_id": a.cfg.ID})
}

func (a zygoteAdmin) ListZygotes(_ context.Context, req *hearthv1.ListZygotesRequest) (*hearthv1.ListZygotesResponse, error) {
	err := a.on(req.GetWorkerId())
	if err != nil && !errors.Is(err, errZygotesOff) {
		return nil, a.told(err)
	}
	counts := a.starts.counts()
	usage := &hearthv1.ZygoteUsage{WorkerId: a.cfg.ID, Starts: &hearthv1.StartCounts{
		Cold: counts["cold"], Checkpoint: counts["checkpoint"], Pooled: counts["pooled"], Session: counts["session"],
	}}
	res := &hearthv1.ListZygotesResponse{Usage: []*hearthv1.ZygoteUsage{usage}}
	if err != nil {
		return res, nil // none, and no budget, is an answer
	}
	usage.BudgetBytes, usage.UsedBytes = a.zygotes.Memory()
	for _, v := range a.zygotes.List() {
		res.Zygotes = append(res.Zygotes, a.shown(v))
	}
	return res, nil
}

var zygoteStates = map[hotset.Phase]hearthv1.ZygoteState{
	hotset.Known:   hearthv1.ZygoteState_ZYGOTE_STATE_UNSPECIFIED, // it waits for its turn
	hotset.Growing: hearthv1.ZygoteState_ZYGOTE_STATE_GROWING,
	hotset.Live:    hearthv1.ZygoteState_ZYGOTE_STATE_LIVE,
	hotset.Resting: hearthv1.ZygoteState_ZYGOTE_STATE_RESTING,
	hotset.Unfit:   hearthv1.ZygoteState_ZYGOTE_STATE_UNFIT,
}

func (a zygoteAdmin) shown(v zygotes.View) *hearthv1.Zygote {
	return &hearthv1.Zygote{
		ZygoteId: v.ID, WorkerId: a.cfg.ID, Modules: v.Modules, State: zygoteStates[v.Phase], ParentId: v.Parent, Pinned: v.Pinned,
		Reason: v.Why, PrivateBytes: v.PrivateBytes, SharedBytes: v.SharedBytes, ImportTime: durationpb.New(v.Import),
		Pooled: int32(v.Pooled), PoolTarget: int32(v.Target), PooledBytes: v.PoolBytes, CallsPerSecond: v.Rate,
		Forked: v.Forked, FoundReady: v.FoundReady, Pid: int32(v.Pid),
	}
}

func (a zygoteAdmin) PinZygote(_ context.Context, req *hearthv1.PinZygoteRequest) (*hearthv1.PinZygoteResponse, error) {
	if err := a.on(req.GetWorkerId()); err != nil {
		return nil, a.told(err)
	}
	v, err := a.zygotes.Pin(req.GetModules())
	if err != nil {
		return nil, a.told(publicly(err))
	}
	return &hearthv1.PinZygoteResponse{Zygotes: []*hearthv1.Zygote{a.shown(v)}}, nil
}

func (a zygoteAdmin) UnpinZygote(_ context.Context, req *hearthv1.UnpinZygoteRequest) (*hearthv1.UnpinZygoteResponse, error) {
	if err := a.on(req.GetWorkerId()); err != nil {
		return nil, a.told(err)
	}
	v, err := a.zygotes.Unpin(req.GetModules())
	if err != nil {
		return nil, a.told(publicly(err))
	}
	return &hearthv1.UnpinZygoteResponse{Zygotes: []*hearthv1.Zygote{a.shown(v)}}, nil
}

func (a zygoteAdmin) WarmZygote(ctx context.Context, req *hearthv1.WarmZygoteRequest) (*hearthv1.WarmZygoteResponse, error) {
	if err := a.on(req.GetWorkerId()); err != nil {
		return nil, a.told(err)
	}
	v, err := a.zygotes.Warm(ctx, req.GetModules())
	if err != nil {
		return nil, a.told(publicly(err))
	}
	return &hearthv1.WarmZygoteResponse{Zygotes: []*hearthv1.Zygote{a.shown(v)}}, nil
}

// publicly gives what zygotes refuse its text for the caller.
func publicly(err error) error {
	var unfit *zygotes.UnfitError
	switch {
	case errors.As(err, &unfit):
		return edge.Publicf(errUnfit, "these imports make no zygote: %v", unfit)
	case errors.Is(err, zygotes.ErrModules):
		return edge.Publicf(errModules, "%v: name top-level modules, such as pandas, numpy", err)
	case errors.Is(err, hotset.ErrNotPinned):
		return edge.Publicf(errNotPinned, "no zygote of exactly these modules is pinned")
	case errors.Is(err, zygotes.ErrNotGrown):
		return edge.Publicf(errNotGrown, "%v", err)
	}
	return err
}
