package house

import (
	"context"
	"errors"

	"github.com/hearth-run/hearth/gen/serverless/serverlessconnect"
	"github.com/hearth-run/hearth/internal/kit/serve"
	"github.com/hearth-run/hearth/services/router"
	"github.com/hearth-run/hearth/services/worker"
)

// Executions are the settings of the second plane.
type Executions struct {
	// Router is "host:port" or "unix:PATH"; empty: this house runs no executions.
	Router string `help:"Where the router listens: HOST:PORT or unix:PATH; empty: no executions." default:"127.0.0.1:50051"`
	// ExecutorPython names an interpreter with cloudpickle; empty: the worker makes
	// an environment of its own at the first start.
	ExecutorPython string `help:"Interpreter with cloudpickle to run executions; empty: one is made at the first start." placeholder:"PATH"`
	// Memory is what containers may use together, in bytes.
	Memory int64 `name:"execution-memory" help:"Memory for all executions together, in bytes." default:"4294967296"`
	// Zygotes are the settings of what the worker keeps warm.
	Zygotes Zygotes `embed:""`
	// RequireIsolation refuses to start where a wall of the sandbox cannot stand.
	RequireIsolation bool `help:"Refuse to start where a wall of the sandbox cannot stand."`
}

// Zygotes say what a worker keeps warm.
type Zygotes struct {
	// EnvPackages, Memory, Pool and Pins are EnvPackages, ZygoteMemory, ZygotePool and
	// Zygotes of the worker.
	EnvPackages []string `name:"worker-env-package" sep:"none" help:"PyPI requirement for the worker's own environment, where zygotes can import it; may be repeated." placeholder:"REQ"`
	Memory      int64    `name:"worker-zygote-memory" help:"Memory for zygotes and containers made ahead, beside that for executions, in bytes; 0: every start is cold." default:"536870912"`
	Pool        int      `name:"worker-zygote-pool" help:"Containers that stand ready before one zygote at most; 0: none is made ahead." default:"16"`
	Pins        []string `name:"worker-zygote" sep:"none" help:"Imports to keep warm whatever calls them, as pandas,numpy; may be repeated." placeholder:"MODULES"`
}

// executions adds the router and one worker.
func (h *House) executions() error {
	if h.cfg.Executions.Router == "" {
		return nil
	}
	log := h.log.With("service", "router")
	dispatch, err := router.New(router.Default(), router.Deps{Log: log, Dialer: h.dialer})
	if err != nil {
		return err
	}
	rpc, err := h.dispatcher("router", dispatch.Register)
	if err != nil {
		return err
	}
	server, err := serve.New(serve.Config{Listen: h.cfg.Executions.Router, Drain: gatewayDrain, MaxMessage: router.MaxMessage}, log, rpc)
	if err != nil {
		return err
	}
	if err := h.worker(); err != nil {
		return err
	}
	h.edges.Add("router", dispatch.Run)
	h.doors = append(h.doors, door{"router", server, func(a string) { h.where.Router = a }})
	return nil
}

// worker adds the one worker of the house. It gets ready beside the rest: its
// first start makes a Python environment, which nobody else has to wait for.
func (h *House) worker() error {
	client, err := h.client("router")
	if err != nil {
		return err
	}
	cfg := worker.Default()
	cfg.Address, cfg.DataDir = "inprocess:worker", h.folder("worker")
	cfg.Python, cfg.Memory, cfg.Drain = h.cfg.Executions.ExecutorPython, h.cfg.Executions.Memory, nodeDrain
	zygotes := h.cfg.Executions.Zygotes
	cfg.EnvPackages, cfg.ZygoteMemory, cfg.ZygotePool, cfg.Zygotes = zygotes.EnvPackages, zygotes.Memory, zygotes.Pool, zygotes.Pins
	if err := cfg.Validate(); err != nil {
		return err
	}
	log := h.log.With("service", "worker")
	h.hands.Add("worker", func(ctx context.Context) error {
		driver, err := worker.OpenDriver(ctx, cfg, h.cfg.Executions.RequireIsolation, log)
		if err != nil {
			return err
		}
		service, err := worker.New(cfg, worker.Deps{
			Log: log, Driver: driver, Routers: []serverlessconnect.RegistryServiceClient{serverlessconnect.NewRegistryServiceClient(client)},
		})
		if err != nil {
			return errors.Join(err, driver.Close())
		}
		if _, err := h.dispatcher("worker", service.Register); err != nil {
			return errors.Join(err, driver.Close())
		}
		return service.Run(ctx)
	})
	return nil
}
