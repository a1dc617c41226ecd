package controlplane

import (
	"context"
	"log/slog"

	"github.com/hearth-run/hearth/internal/kit/group"
	"github.com/hearth-run/hearth/internal/kit/serve"
)

// Process is a control plane that is a process of its own: where it listens, beside
// the service's settings.
type Process struct {
	Config `embed:""`
	// Listen is "host:port" or "unix:PATH".
	Listen string `help:"Where to listen: HOST:PORT or unix:PATH." default:"127.0.0.1:7070"`
	// TLSCert and TLSKey are PEM files; both or none.
	TLSCert string `help:"PEM file of the certificate; with it, TLS is served." placeholder:"FILE"`
	TLSKey  string `help:"PEM file of the certificate's key." placeholder:"FILE"`
}

// Run serves until ctx is done: calls are drained before the service stops.
func (p Process) Run(ctx context.Context, log *slog.Logger) error {
	service, err := New(p.Config, Deps{Log: log})
	if err != nil {
		return err
	}
	rpc, err := serve.NewConnect(log)
	if err != nil {
		return err
	}
	service.Register(rpc)
	server, err := serve.New(serve.Config{Listen: p.Listen, TLSCert: p.TLSCert, TLSKey: p.TLSKey, Ready: service.Ready}, log, rpc)
	if err != nil {
		return err
	}
	if err := server.Listen(); err != nil {
		return err
	}
	log.Info("control plane", "address", server.Address())
	var g group.Group
	g.Add("controlplane", service.Run)
	g.Add("server", server.Run)
	return g.Run(ctx)
}
