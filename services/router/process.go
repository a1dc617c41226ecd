package router

import (
	"context"
	"log/slog"

	"github.com/hearth-run/hearth/internal/kit/dial"
	"github.com/hearth-run/hearth/internal/kit/group"
	"github.com/hearth-run/hearth/internal/kit/serve"
)

// Process is a router that is a process of its own: where it listens, beside the
// service's settings.
type Process struct {
	Config `embed:""`
	// Listen is "host:port" or "unix:PATH".
	Listen string `help:"Address to listen on: HOST:PORT or unix:PATH." default:"127.0.0.1:50051"`
	// TLSCert and TLSKey are PEM files; both or none.
	TLSCert string `name:"tls-cert" help:"Certificate (PEM) to serve TLS with." placeholder:"FILE"`
	TLSKey  string `name:"tls-key" help:"Key (PEM) of the certificate." placeholder:"FILE"`
}

// Run serves until ctx is done: calls are drained before the service stops.
func (p Process) Run(ctx context.Context, log *slog.Logger) error {
	dialer := dial.New(nil)
	defer dialer.Close()
	service, err := New(p.Config, Deps{Log: log, Dialer: dialer})
	if err != nil {
		return err
	}
	server, err := Serve(service, serve.Config{Listen: p.Listen, TLSCert: p.TLSCert, TLSKey: p.TLSKey}, log)
	if err != nil {
		return err
	}
	if err := server.Listen(); err != nil {
		return err
	}
	log.Info("router is listening", "address", server.Address())
	var g group.Group
	g.Add("router", service.Run)
	g.Add("listener", server.Run)
	return g.Run(ctx)
}

// Serve puts a router behind a listener of its own.
func Serve(service *Service, cfg serve.Config, log *slog.Logger) (*serve.Server, error) {
	rpc, err := serve.NewConnect(log)
	if err != nil {
		return nil, err
	}
	service.Register(rpc)
	cfg.MaxMessage = MaxMessage
	return serve.New(cfg, log, rpc)
}
