package router

import (
	"fmt"
	"slices"

	"github.com/hearth-run/hearth/gen/serverless"
	"github.com/hearth-run/hearth/services/router/internal/pep508"
	"github.com/hearth-run/hearth/services/router/internal/placement"
)

// plan is what a call's first message asks for, judged and completed. Bounds that
// the message shows by itself were checked by the protos' own rules.
type plan struct {
	request, session string
	budgets          []*serverless.ResourceBudget
	imports          []string
	packages         []pep508.Requirement
	cold             bool
	checkpoint       string
	want             placement.Request
}

// newPlan errors: errFirst, errBudget, errPackage.
func newPlan(first *serverless.ClientExecutionRequest, defaultMemory int64) (*plan, error) {
	cfg := first.GetConfig()
	if cfg == nil || first.GetRequestId() == "" {
		return nil, errFirst
	}
	p := &plan{
		request: first.GetRequestId(), session: first.GetSessionId(),
		cold: cfg.GetDisableOptimizedExecution(), checkpoint: cfg.GetCheckpointId(),
	}
	var err error
	if p.packages, err = pep508.Resolve(cfg.GetPackages()); err != nil {
		return nil, fmt.Errorf("%w: %w", errPackage, err)
	}
	if p.budgets, err = budgets(cfg.GetBudgets(), defaultMemory); err != nil {
		return nil, err
	}
	p.imports = slices.Clone(cfg.GetImports())
	slices.Sort(p.imports)
	p.imports = slices.Compact(p.imports)
	p.want = demand(p.budgets)
	p.want.GPU = p.want.GPU || cfg.GetGpu()
	p.want.Cold, p.want.Checkpoint = p.cold, p.checkpoint
	return p, nil
}

// budgets gives memory its default; other kinds pass as they are.
func budgets(asked []*serverless.ResourceBudget, defaultMemory int64) ([]*serverless.ResourceBudget, error) {
	out := make([]*serverless.ResourceBudget, 0, len(asked)+1)
	seen := map[serverless.ResourceKind]bool{}
	for _, b := range asked {
		if seen[b.GetKind()] {
			return nil, publicly(errBudget, "two budgets of kind %s: name each kind once", b.GetKind())
		}
		seen[b.GetKind()] = true
		out = append(out, &serverless.ResourceBudget{Kind: b.GetKind(), Alloc: b.GetAlloc(), Max: b.GetMax()})
	}
	if !seen[serverless.ResourceKind_RESOURCE_KIND_MEMORY] {
		out = append(out, &serverless.ResourceBudget{Kind: serverless.ResourceKind_RESOURCE_KIND_MEMORY})
	}
	for _, b := range out {
		if b.GetKind() != serverless.ResourceKind_RESOURCE_KIND_MEMORY || b.GetAlloc() != 0 {
			continue
		}
		b.Alloc = defaultMemory
		if b.GetMax() > 0 {
			b.Alloc = min(defaultMemory, b.GetMax())
		}
	}
	return out, nil
}

// demand is what the budgets ask of a worker. A GPU_MEMORY budget asks for a GPU,
// whatever its size.
func demand(budgets []*serverless.ResourceBudget) placement.Request {
	var r placement.Request
	for _, b := range budgets {
		switch b.GetKind() {
		case serverless.ResourceKind_RESOURCE_KIND_MEMORY:
			r.Memory = b.GetAlloc()
		case serverless.ResourceKind_RESOURCE_KIND_GPU_MEMORY:
			r.GPU, r.GPUMemory = true, b.GetAlloc()
		}
	}
	return r
}

// header is the first message to the worker that was chosen.
func (p *plan) header(to placement.Placement, checkpoint string, base pep508.Base) *serverless.WorkerExecutionRequest {
	container := to.Container
	return &serverless.WorkerExecutionRequest{
		RequestId: p.request, SessionId: p.session, WorkerId: to.Worker, ContainerId: &container,
		CheckpointId: checkpoint, Resources: p.imports, Budgets: p.budgets,
		Packages: pep508.Without(p.packages, base), DisableOptimizedExecution: p.cold,
	}
}
