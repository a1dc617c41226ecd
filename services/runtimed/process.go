package runtimed

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/hearth-run/hearth/gen/executor/v1/executorv1connect"
	"github.com/hearth-run/hearth/gen/hearth/v1/hearthv1connect"
	"github.com/hearth-run/hearth/internal/kit/dial"
	"github.com/hearth-run/hearth/internal/kit/group"
	"github.com/hearth-run/hearth/internal/kit/serve"
)

// Process is a runtimed as a process of its own. The tags are for commands.
type Process struct {
	// Listen is "host:port" or "unix:PATH".
	Listen string `help:"Address to listen on: HOST:PORT or unix:PATH." default:"127.0.0.1:9191"`
	// ControlPlane and RuntimeServer are addresses as dial takes them.
	ControlPlane  string `help:"Address of the control plane: HOST:PORT, a URL or unix:PATH." default:"127.0.0.1:7070"`
	RuntimeServer string `help:"Address of the Runtime Server: HOST:PORT, a URL or unix:PATH." default:"127.0.0.1:9090"`
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
	runtime, err := dialer.Client(p.RuntimeServer)
	if err != nil {
		return err
	}
	if p.Name == "" {
		if p.Name, err = ownName(p.Config.Runtime, p.Data); err != nil {
			return err
		}
	}
	// The listener knows its address only once it listens, and needs the service
	// before that.
	var server *serve.Server
	service, err := New(p.Config, Deps{
		Log:       log,
		Nodes:     hearthv1connect.NewNodeServiceClient(control),
		Functions: executorv1connect.NewFunctionRuntimeClient(runtime),
		Runtime:   executorv1connect.NewRuntimeClient(runtime),
		Routes:    hearthv1connect.NewRouteServiceClient(control),
		Peers:     dialer,
		Address:   func() string { return server.Address() },
	})
	if err != nil {
		return err
	}
	rpc, err := serve.NewConnect(log)
	if err != nil {
		return err
	}
	service.Register(rpc)
	server, err = serve.New(serve.Config{Listen: p.Listen, TLSCert: p.TLSCert, TLSKey: p.TLSKey, Ready: service.Ready}, log, rpc)
	if err != nil {
		return err
	}
	if err := server.Listen(); err != nil {
		return err
	}
	log.Info("runtimed is listening", "address", server.Address())
	// The node drains while the listener still answers the calls under way.
	var g group.Group
	g.Add("listener", server.Run)
	g.Add("runtimed", service.Run)
	return g.Run(ctx)
}

// ownName is the name of a node that was given none: the same at every start with
// the same folder, another for another folder or machine. Two nodes of one name
// would take each other's place.
func ownName(runtime, data string) (string, error) {
	dir, err := filepath.Abs(data)
	if err != nil {
		return "", fmt.Errorf("data %s: %w", data, err)
	}
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("name the node: %w: set its name", err)
	}
	sum := sha256.Sum256([]byte(host + "\x00" + dir))
	return fmt.Sprintf("%.50s-%x", runtime, sum[:4]), nil
}
