package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/hearth-run/hearth/gen/serverless/serverlessconnect"
	"github.com/hearth-run/hearth/internal/kit/dial"
	"github.com/hearth-run/hearth/internal/kit/group"
	"github.com/hearth-run/hearth/internal/kit/serve"
	"github.com/hearth-run/hearth/sandbox"
	"github.com/hearth-run/hearth/sandbox/process"
)

// Process is a worker as a process of its own. The tags are for commands.
type Process struct {
	// Listen is "host:port" or "unix:PATH".
	Listen string `help:"Address to listen on: HOST:PORT or unix:PATH." default:"127.0.0.1:50052"`
	// Routers are all told of every state.
	Routers []string `help:"Addresses of the routers: HOST:PORT, a URL or unix:PATH." default:"127.0.0.1:50051"`
	// TLSCert and TLSKey are PEM files; both or none.
	TLSCert string `name:"tls-cert" help:"Certificate (PEM) to serve TLS with."`
	TLSKey  string `name:"tls-key" help:"Key (PEM) of the certificate."`
	// RequireIsolation refuses to start where a wall of the sandbox cannot stand.
	RequireIsolation bool `help:"Refuse to start where a wall of the sandbox cannot stand."`
	Config           `embed:""`
}

// MaxMessage is the largest message that a worker reads, in bytes.
const MaxMessage = 16 << 20

// Run serves until ctx is done.
func (p Process) Run(ctx context.Context, log *slog.Logger) error {
	dialer := dial.New(nil)
	defer dialer.Close()
	deps := Deps{Log: log}
	for _, address := range p.Routers {
		client, err := dialer.Client(address)
		if err != nil {
			return err
		}
		deps.Routers = append(deps.Routers, serverlessconnect.NewRegistryServiceClient(client))
	}
	var err error
	if deps.Driver, err = OpenDriver(ctx, p.Config, p.RequireIsolation, log); err != nil {
		return err
	}
	// The listener knows its address only once it listens, and needs the service
	// before that.
	var server *serve.Server
	deps.Address = func() string { return server.Address() }
	service, err := New(p.Config, deps)
	if err != nil {
		return errors.Join(err, deps.Driver.Close())
	}
	if server, err = Serve(service, serve.Config{Listen: p.Listen, TLSCert: p.TLSCert, TLSKey: p.TLSKey}, log); err == nil {
		err = server.Listen()
	}
	if err != nil {
		return errors.Join(err, deps.Driver.Close())
	}
	log.Info("worker is listening", "address", server.Address())
	var g group.Group
	g.Add("worker", service.Run)
	g.Add("listener", server.Run)
	return g.Run(ctx)
}

// Serve puts a worker behind a listener of its own.
func Serve(service *Worker, cfg serve.Config, log *slog.Logger) (*serve.Server, error) {
	rpc, err := serve.NewConnect(log)
	if err != nil {
		return nil, err
	}
	service.Register(rpc)
	cfg.Ready, cfg.MaxMessage, cfg.Drain = service.Ready, MaxMessage, service.cfg.Drain
	return serve.New(cfg, log, rpc)
}

// OpenDriver opens the process sandbox beneath the worker's data folder; what an
// earlier life left there is swept. The walls that do not stand on this machine are
// said once; with require they are an error.
func OpenDriver(ctx context.Context, cfg Config, require bool, log *slog.Logger) (sandbox.Driver, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	walls, err := process.Probe(ctx)
	if err != nil {
		return nil, fmt.Errorf("look for the walls of this machine: %w", err)
	}
	missing := sandbox.RequireIsolation(walls)
	switch {
	case missing != nil && require:
		return nil, missing
	case missing != nil:
		log.Warn("executions are isolated less than they could be", "cause", missing)
	}
	driver := process.Default()
	driver.Root, driver.Transient, driver.Log = filepath.Join(cfg.DataDir, "sandbox"), filepath.Join(cfg.DataDir, "run"), log
	return process.Open(driver)
}
