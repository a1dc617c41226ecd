package cli

import (
	"github.com/hearth-run/hearth/gen/hearth/v1/hearthv1connect"
	"github.com/hearth-run/hearth/hearth/internal/output"
	"github.com/hearth-run/hearth/internal/kit/dial"
)

// controlFlags lead to a control plane.
type controlFlags struct {
	ControlPlane string `help:"Address of the control plane: HOST:PORT, a URL or unix:PATH." default:"127.0.0.1:7070" placeholder:"ADDRESS"`
}

// namespaceFlag is for commands about Runs.
type namespaceFlag struct {
	Namespace string `short:"n" help:"Namespace of the Run." default:"default"`
}

// outputFlag is for commands that print objects.
type outputFlag struct {
	Output output.Format `short:"o" help:"How to print: table, json, yaml or name." enum:"table,json,yaml,name" default:"table"`
}

// clients are those of one command; close ends their connections.
type clients struct {
	runs  hearthv1connect.RunServiceClient
	nodes hearthv1connect.NodeServiceClient
	close func()
}

func (f controlFlags) dial() (*clients, error) {
	dialer := dial.New(nil)
	client, err := dialer.Client(f.ControlPlane)
	if err != nil {
		return nil, usagef("--control-plane: %w", err)
	}
	return &clients{
		runs:  hearthv1connect.NewRunServiceClient(client),
		nodes: hearthv1connect.NewNodeServiceClient(client),
		close: dialer.Close,
	}, nil
}
