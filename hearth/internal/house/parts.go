package house

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/hearth-run/hearth/adapters/bash"
	"github.com/hearth-run/hearth/adapters/python"
	"github.com/hearth-run/hearth/adapters/runtimeserver"
	"github.com/hearth-run/hearth/gen/executor/v1/executorv1connect"
	"github.com/hearth-run/hearth/gen/hearth/v1/hearthv1connect"
	"github.com/hearth-run/hearth/internal/kit/group"
	"github.com/hearth-run/hearth/internal/kit/serve"
	"github.com/hearth-run/hearth/services/controlplane"
	"github.com/hearth-run/hearth/services/gateway"
	"github.com/hearth-run/hearth/services/runtimed"
)

// How long each part may take to stop, so that the whole house is empty within
// five seconds: the calls at the edges, then the nodes, where a task has two seconds
// between SIGTERM and SIGKILL, then what is left of watches.
const (
	gatewayDrain = time.Second
	nodeDrain    = 1500 * time.Millisecond
	otherDrain   = 500 * time.Millisecond
)

func (h *House) controlPlane() error {
	cfg := controlplane.Default()
	cfg.Data = h.folder("controlplane")
	service, err := controlplane.New(cfg, controlplane.Deps{Log: h.log.With("service", "controlplane")})
	if err != nil {
		return err
	}
	rpc, err := h.dispatcher("controlplane", service.Register)
	if err != nil {
		return err
	}
	server, err := serve.New(serve.Config{Listen: h.cfg.ControlPlane, Drain: otherDrain, Ready: service.Ready}, h.log, rpc)
	if err != nil {
		return err
	}
	h.parts.Add("controlplane", service.Run)
	h.doors = append(h.doors, door{"controlplane", server, func(a string) { h.where.ControlPlane = a }})
	h.ready = append(h.ready, service.Ready)
	return nil
}

// runtime adds a Runtime Server and the runtimed in front of it, which stops first.
func (h *House) runtime(ctx context.Context, name string) error {
	var node group.Group
	if err := h.runtimeServer(ctx, name, &node); err != nil {
		return err
	}
	if err := h.runtimed(name, &node); err != nil {
		return err
	}
	h.hands.Add("node "+name, node.Run)
	return nil
}

func (h *House) runtimeServer(ctx context.Context, name string, node *group.Group) error {
	log := h.log.With("service", "runtime-"+name)
	language, err := h.language(ctx, name)
	if err != nil {
		return err
	}
	service, err := runtimeserver.New(runtimeserver.Default(h.workspace(name)), runtimeserver.Deps{Log: log, Language: language})
	if err != nil {
		return err
	}
	// Two ways in: runtimed's calls were checked at their edge, those that come in
	// by the socket were not.
	if _, err := h.dispatcher("runtime-"+name, service.Register, serve.Inside()); err != nil {
		return err
	}
	rpc, err := serve.NewConnect(log)
	if err != nil {
		return err
	}
	service.Register(rpc)
	socket := "unix:" + h.folder("sockets", name+".sock")
	server, err := serve.New(serve.Config{Listen: socket, Drain: otherDrain, Ready: service.Ready}, log, rpc)
	if err != nil {
		return err
	}
	node.Add("runtime server", service.Run)
	h.doors = append(h.doors, door{"runtime-" + name, server, func(a string) { h.where.Runtimes[name] = a }})
	h.ready = append(h.ready, service.Ready)
	return nil
}

func (h *House) language(ctx context.Context, name string) (runtimeserver.Language, error) {
	switch name {
	case "python":
		return python.New(ctx, h.cfg.Python, python.Deps{Log: h.log.With("service", "runtime-python")})
	case "bash":
		return bash.New(bash.Config{})
	default:
		return nil, fmt.Errorf("no such runtime: use python or bash")
	}
}

func (h *House) runtimed(name string, node *group.Group) error {
	log := h.log.With("service", "runtimed-"+name)
	control, err := h.client("controlplane")
	if err != nil {
		return err
	}
	runtime, err := h.client("runtime-" + name)
	if err != nil {
		return err
	}
	cfg := runtimed.Default()
	cfg.Runtime, cfg.Workspace, cfg.Data = name, h.workspace(name), h.folder("runtimed-"+name)
	cfg.Advertise = "inprocess:runtimed-" + name
	cfg.DrainTimeout = nodeDrain
	service, err := runtimed.New(cfg, runtimed.Deps{
		Log:       log,
		Nodes:     hearthv1connect.NewNodeServiceClient(control),
		Functions: executorv1connect.NewFunctionRuntimeClient(runtime),
		Runtime:   executorv1connect.NewRuntimeClient(runtime),
	})
	if err != nil {
		return err
	}
	if _, err := h.dispatcher("runtimed-"+name, service.Register, serve.Inside()); err != nil {
		return err
	}
	node.Add("runtimed", service.Run)
	h.ready = append(h.ready, service.Ready)
	return nil
}

func (h *House) workspace(name string) string { return h.folder("workspace-" + name) }

func (h *House) gateway() error {
	control, err := h.client("controlplane")
	if err != nil {
		return err
	}
	log := h.log.With("service", "gateway")
	service, err := gateway.New(h.cfg.Calls, gateway.Deps{
		Log: log, Routes: hearthv1connect.NewRouteServiceClient(control), Nodes: h.dialer,
	})
	if err != nil {
		return err
	}
	server, err := gateway.Serve(service, serve.Config{Listen: h.cfg.Gateway, Drain: gatewayDrain}, log)
	if err != nil {
		return err
	}
	h.edges.Add("gateway", service.Run)
	h.doors = append(h.doors, door{"gateway", server, func(a string) { h.where.Gateway = a }})
	h.ready = append(h.ready, service.Ready)
	return nil
}

// patience is how long a house waits for its parts before it says where it is.
const patience = 15 * time.Second

// await returns once every part can take work, or after patience with those that
// still cannot.
func (h *House) await(ctx context.Context) error {
	// Parts say whether they are ready and not when: this is the one place that
	// has to ask again, for the moment of a start.
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	late := time.NewTimer(patience)
	defer late.Stop()
	waiting := slices.Clone(h.ready)
	for {
		waiting = slices.DeleteFunc(waiting, func(ready func() error) bool { return ready() == nil })
		if len(waiting) == 0 {
			return nil
		}
		select {
		case <-tick.C:
		case <-late.C:
			for _, ready := range waiting {
				h.log.Warn("a part is not ready yet", "cause", ready())
			}
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
