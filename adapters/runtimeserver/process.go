package runtimeserver

import (
	"context"
	"log/slog"
	"path/filepath"

	"github.com/hearth-run/hearth/internal/kit/group"
	"github.com/hearth-run/hearth/internal/kit/serve"
)

// Process is a Runtime Server as a process of its own. The tags are for commands.
type Process struct {
	// Listen is "host:port" or "unix:PATH". The default is the command's.
	Listen string `help:"Address to listen on: HOST:PORT or unix:PATH." default:"${listen}"`
	// TLSCert and TLSKey are PEM files; both or none.
	TLSCert string `name:"tls-cert" help:"Certificate (PEM) to serve TLS with."`
	TLSKey  string `name:"tls-key" help:"Key (PEM) of the certificate."`
	Config  `embed:""`
}

// Serve serves functions of one language until ctx is done. Calls under way are
// then given the time of the drain, and at the end no process is left.
func (p Process) Serve(ctx context.Context, log *slog.Logger, language Language) error {
	var err error
	if p.Workspace, err = filepath.Abs(p.Workspace); err != nil {
		return err
	}
	server, err := New(p.Config, Deps{Log: log, Language: language})
	if err != nil {
		return err
	}
	rpc, err := serve.NewConnect(log)
	if err != nil {
		return err
	}
	server.Register(rpc)
	listener, err := serve.New(serve.Config{Listen: p.Listen, TLSCert: p.TLSCert, TLSKey: p.TLSKey, Ready: server.Ready}, log, rpc)
	if err != nil {
		return err
	}
	if err := listener.Listen(); err != nil {
		return err
	}
	log.Info("runtime server is listening", "runtime", language.Name(), "address", listener.Address())
	var g group.Group
	g.Add("runtime server", server.Run)
	g.Add("listener", listener.Run)
	return g.Run(ctx)
}
