package violator

import (
	"context"
	"errors"
)

// process is a process that is none: a token in a table.
type process struct {
	token string
	g     *registration
	kind  processKind
}

type processKind int

// What started a process: a load, a call that waits for it, a call that does not.
const (
	ofLoad processKind = iota
	ofCall
	leaked
)

// Processes returns the fake pids of processes with this token.
func (r *Runtime) Processes(token string) ([]int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var pids []int
	for p := range r.processes {
		if p.token == token {
			pids = append(pids, 1+len(pids))
		}
	}
	return pids, nil
}

func (r *Runtime) spawn(g *registration, token string, kind processKind) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.processes[&process{token: token, g: g, kind: kind}] = true
}

// reap ends the processes of g: those of a call when the call ends, those of the
// load when all is over. The caller holds mu.
func (r *Runtime) reap(g *registration, all bool, cause error) {
	for p := range r.processes {
		if p.g == g && (all || p.kind != ofLoad) && !r.spared(p, all, cause) {
			delete(r.processes, p)
		}
	}
}

// spared says whether the broken clause lets the process live.
func (r *Runtime) spared(p *process, all bool, cause error) bool {
	switch {
	case p.kind == leaked:
		return r.is("leak-outlives-unregister") || (!all && r.is("leak-outlives-call"))
	case errors.Is(cause, errCrashed):
		return r.is("crash-leaves-children")
	case errors.Is(cause, errSuperseded):
		return r.is("higher-leaves-children")
	case errors.Is(cause, errLoadLimit):
		return r.is("load-limit-leaves-children")
	case p.kind == ofLoad && errors.Is(cause, errUnregistered):
		return r.is("daemon-outlives-unregister")
	case errors.Is(cause, context.DeadlineExceeded):
		return r.is("timeout-leaves-children")
	case errors.Is(cause, context.Canceled):
		return r.is("cancel-leaves-children")
	}
	return errors.Is(cause, errUnregistered) && r.is("unregister-leaves-children")
}
