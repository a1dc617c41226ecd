package gateway

import (
	"context"
	"log/slog"

	"github.com/hearth-run/hearth/gen/hearth/v1/hearthv1connect"
	"github.com/hearth-run/hearth/internal/kit/dial"
	"github.com/hearth-run/hearth/internal/kit/group"
	"github.com/hearth-run/hearth/internal/kit/serve"
)

// Process is a gateway as a process of its own. The tags are for commands.
type Process struct {
	// Listen is "host:port" or "unix:PATH".
	Listen string `help:"Address to listen on: HOST:PORT or unix:PATH." default:"127.0.0.1:8080"`
	// ControlPlane is where the control plane serves, as dial takes it.
	ControlPlane string `help:"Address of the control plane: HOST:PORT, a URL or unix:PATH." default:"127.0.0.1:7070"`
	// TLSCert and TLSKey are PEM files; both or none.
	TLSCert string `name:"tls-cert" help:"Certificate (PEM) to serve TLS with."`
	TLSKey  string `name:"tls-key" help:"Key (PEM) of the certificate."`
	Config  `embed:""`
}

// Run serves until ctx is done.
func (p Process) Run(ctx context.Context, log *slog.Logger) error {
	dialer := dial.New(nil)
	defer dialer.Close()
	control, err := dialer.Client(p.ControlPlane)
	if err != nil {
		return err
	}
	service, err := New(p.Config, Deps{Log: log, Routes: hearthv1connect.NewRouteServiceClient(control), Nodes: dialer})
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
	log.Info("gateway is listening", "address", server.Address())
	var g group.Group
	g.Add("gateway", service.Run)
	g.Add("listener", server.Run)
	return g.Run(ctx)
}

// Serve puts a gateway behind a listener of its own: procedures, plain routes,
// CORS and readiness.
func Serve(service *Service, cfg serve.Config, log *slog.Logger) (*serve.Server, error) {
	rpc, err := serve.NewConnect(log)
	if err != nil {
		return nil, err
	}
	service.Register(rpc)
	cfg.Ready, cfg.Wrap = service.Ready, service.Wrap
	server, err := serve.New(cfg, log, rpc)
	if err != nil {
		return nil, err
	}
	server.Handle(Pattern, service.Handler())
	return server, nil
}
