// Package house owns everything in one process: which services there are, how
// they reach each other, in which order they start and stop.
package house

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	"connectrpc.com/connect/v2"

	"github.com/hearth-run/hearth/adapters/python"
	"github.com/hearth-run/hearth/internal/kit/dial"
	"github.com/hearth-run/hearth/internal/kit/group"
	"github.com/hearth-run/hearth/internal/kit/serve"
	"github.com/hearth-run/hearth/services/gateway"
)

// Config says where a house keeps its things and which doors it has.
type Config struct {
	// Data is the folder of everything that survives; made if it is missing. One
	// house at a time lives in it.
	Data string `help:"Folder for everything that survives a restart." placeholder:"DIR" default:"${data}"`
	// Gateway and ControlPlane are "host:port" or "unix:PATH".
	Gateway      string `name:"gateway" help:"Where the gateway listens: HOST:PORT or unix:PATH." default:"127.0.0.1:8080"`
	ControlPlane string `name:"control-plane" help:"Where the control plane listens: HOST:PORT or unix:PATH." default:"127.0.0.1:7070"`
	// Runtimes are the languages to run, of python and bash.
	Runtimes []string `help:"Languages to run: python, bash." default:"python,bash"`
	// Python says which Python runs functions.
	Python python.Config `embed:""`
	// Calls are the gateway's own settings.
	Calls gateway.Config `embed:"" group:"Gateway"`
	// Executions are the settings of the second plane.
	Executions Executions `embed:"" group:"Executions"`
}

// Default returns the configuration of a house in a folder, with its doors on
// free ports.
func Default(data string) Config {
	return Config{
		Data: data, Gateway: "127.0.0.1:0", ControlPlane: "127.0.0.1:0", Runtimes: []string{"python", "bash"},
		Python: python.Default(), Calls: gateway.Default(),
		Executions: Executions{Router: "127.0.0.1:0", Memory: 4 << 30, Zygotes: Zygotes{Memory: 512 << 20, Pool: 16}},
	}
}

// Addresses are where a house can be reached, as dial takes them.
type Addresses struct {
	Gateway, ControlPlane string
	// Router is empty in a house without executions.
	Router string
	// Runtimes are the Runtime Servers' own sockets, by name.
	Runtimes map[string]string
}

// House is everything in one process. Parts are added sinks first, and stop the
// other way round.
type House struct {
	cfg    Config
	log    *slog.Logger
	dialer *dial.Dialer
	// parts stop in reverse: doors, edges, hands, and the control plane last. Within
	// one of these nobody needs another, and all stop at once.
	parts group.Group
	// hands run user code: a node for each language, and the worker.
	hands group.Group
	// edges are what calls come to: gateway and router.
	edges group.Group
	ready []func() error
	// doors are public listeners; they open last and close first.
	doors []door
	where Addresses
}

type door struct {
	name   string
	server *serve.Server
	opened func(address string)
}

// New builds the services and starts nothing.
func New(ctx context.Context, cfg Config, log *slog.Logger) (*House, error) {
	h := &House{cfg: cfg, log: log, dialer: dial.New(nil), where: Addresses{Runtimes: map[string]string{}}}
	if err := h.controlPlane(); err != nil {
		return nil, err
	}
	for _, name := range cfg.Runtimes {
		if err := h.runtime(ctx, name); err != nil {
			return nil, fmt.Errorf("runtime %s: %w", name, err)
		}
	}
	if err := h.gateway(); err != nil {
		return nil, err
	}
	if err := h.executions(); err != nil {
		return nil, fmt.Errorf("executions: %w", err)
	}
	h.parts.Add("nodes and worker", h.hands.Together)
	h.parts.Add("gateway and router", h.edges.Together)
	return h, nil
}

// Run opens the doors, starts every part, and says where they are once all can
// take work. When ctx is done it stops them, edge first, and returns when
// nothing runs any more.
func (h *House) Run(ctx context.Context, announce func(Addresses)) error {
	lock, err := lockData(h.cfg.Data)
	if err != nil {
		return err
	}
	defer lock.Close()
	defer h.dialer.Close()
	if err := h.open(); err != nil {
		return err
	}
	h.parts.Add("announcement", func(ctx context.Context) error {
		if err := h.await(ctx); err != nil {
			return err
		}
		announce(h.where)
		<-ctx.Done()
		return nil
	})
	return h.parts.Run(ctx)
}

// open binds every door, or none.
func (h *House) open() error {
	var doors group.Group
	for i, d := range h.doors {
		if err := d.server.Listen(); err != nil {
			closed, cancel := context.WithCancel(context.Background())
			cancel()
			for _, d := range h.doors[:i] {
				err = errors.Join(err, d.server.Run(closed))
			}
			return fmt.Errorf("open the %s: %w; --gateway, --control-plane and --router say where to listen", d.name, err)
		}
		d.opened(d.server.Address())
		doors.Add(d.name+" listener", d.server.Run)
	}
	h.parts.Add("doors", doors.Together)
	return nil
}

// dispatcher makes the dispatcher of one service and names it for the others.
func (h *House) dispatcher(name string, register func(*connect.Server), options ...serve.Option) (*connect.Server, error) {
	rpc, err := serve.NewConnect(h.log.With("service", name), options...)
	if err != nil {
		return nil, err
	}
	register(rpc)
	h.dialer.Add(name, rpc)
	return rpc, nil
}

// client reaches a service of this house.
func (h *House) client(name string) (*connect.Client, error) {
	return h.dialer.Client("inprocess:" + name)
}

func (h *House) folder(parts ...string) string {
	return filepath.Join(append([]string{h.cfg.Data}, parts...)...)
}
