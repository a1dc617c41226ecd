package runtimed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"connectrpc.com/connect/v2"

	"github.com/hearth-run/hearth/gen/executor/v1/executorv1connect"
	"github.com/hearth-run/hearth/gen/hearth/v1/hearthv1connect"
	"github.com/hearth-run/hearth/services/runtimed/internal/archives"
	"github.com/hearth-run/hearth/services/runtimed/internal/clock"
	"github.com/hearth-run/hearth/services/runtimed/internal/desk"
	"github.com/hearth-run/hearth/services/runtimed/internal/folder"
	"github.com/hearth-run/hearth/services/runtimed/internal/node"
	"github.com/hearth-run/hearth/services/runtimed/internal/peers"
	"github.com/hearth-run/hearth/services/runtimed/internal/runlogs"
	"github.com/hearth-run/hearth/services/runtimed/internal/source"
	"github.com/hearth-run/hearth/services/runtimed/internal/upstream"
)

// Dialer makes clients of peers; *dial.Dialer is one.
type Dialer interface {
	// Client returns a client for an address.
	// Errors: an address that is none.
	Client(address string) (*connect.Client, error)
}

// Deps is what a runtimed needs of others.
type Deps struct {
	Log *slog.Logger
	// Nodes is the control plane.
	Nodes hearthv1connect.NodeServiceClient
	// Functions and Runtime are the two services of the one Runtime Server.
	Functions executorv1connect.FunctionRuntimeClient
	Runtime   executorv1connect.RuntimeClient
	// Routes and Peers go together: with them, a call for a Run that another node
	// serves is passed on once. Both may be nil.
	Routes hearthv1connect.RouteServiceClient
	Peers  Dialer
	// Address is where the node is reached if Config.Advertise is empty; it is
	// asked after Run has begun.
	Address func() string
	// Clock is the time by which leases are counted; nil is the machine's, which
	// goes on while the process is stopped. For tests.
	Clock func() time.Duration
}

// Service is a runtimed.
type Service struct {
	desk  *desk.Desk
	node  *node.Node
	peers *peers.Book
	runs  *runlogs.Service
	log   *slog.Logger
}

// Version is what nodes say of themselves.
const Version = "v1"

// New checks its arguments and starts nothing.
func New(cfg Config, deps Deps) (*Service, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("configure runtimed: %w", err)
	}
	if deps.Log == nil || deps.Nodes == nil || deps.Functions == nil || deps.Runtime == nil {
		return nil, errors.New("runtimed: Log, Nodes, Functions and Runtime are all needed")
	}
	if (deps.Routes == nil) != (deps.Peers == nil) {
		return nil, errors.New("runtimed: Routes and Peers go together: set both or none")
	}
	if cfg.Advertise == "" && deps.Address == nil {
		return nil, errors.New("runtimed: nobody could reach it: set Config.Advertise or Deps.Address")
	}
	if deps.Clock == nil {
		deps.Clock = clock.Boot
	}
	sources, err := source.New(source.Config{
		Workspace: cfg.Workspace, Timeout: cfg.SourceTimeout, FileURLs: cfg.GitFiles,
		Limits: folder.Limits{Files: cfg.SourceFiles, Bytes: cfg.SourceBytes}, Archives: archives.New(deps.Nodes),
	})
	if err != nil {
		return nil, fmt.Errorf("configure runtimed: %w", err)
	}
	s := &Service{log: deps.Log}
	s.desk = s.newDesk(deps)
	s.runs = runlogs.New(cfg.Workspace, cfg.name(), s.desk.Knows)
	server := &upstream.Server{
		Functions: deps.Functions, Runtime: deps.Runtime, Clock: deps.Clock,
		Patience: cfg.Patience, Call: cfg.CallTimeout, Load: cfg.LoadTimeout,
	}
	s.node = node.New(nodeConfig(cfg, deps), deps.Nodes, server, sources, s.desk, deps.Clock, deps.Log)
	return s, nil
}

func (s *Service) newDesk(deps Deps) *desk.Desk {
	if deps.Routes == nil {
		return desk.New(deps.Functions, deps.Clock, nil, deps.Log)
	}
	s.peers = peers.New(deps.Routes, deps.Peers, deps.Log)
	return desk.New(deps.Functions, deps.Clock, s.peers, deps.Log)
}

func nodeConfig(cfg Config, deps Deps) node.Config {
	address := deps.Address
	if cfg.Advertise != "" {
		address = func() string { return cfg.Advertise }
	}
	return node.Config{
		Name: cfg.name(), Runtime: cfg.Runtime, Version: Version, Address: address, Capacity: cfg.Capacity, Data: cfg.Data,
		StatusInterval: cfg.StatusInterval, HealthInterval: cfg.HealthInterval, Patience: cfg.Patience,
		Call: cfg.CallTimeout, Release: cfg.ReleaseTimeout, Drain: cfg.DrainTimeout,
	}
}

// Register adds FunctionRuntime and LogService, as gateways use them, to a
// dispatcher.
func (s *Service) Register(server *connect.Server) {
	executorv1connect.RegisterFunctionRuntimeHandler(server, s.desk)
	hearthv1connect.RegisterLogServiceHandler(server, s.runs)
}

// Ready says why the node takes no Runs and no calls: it has no lease, or its
// Runtime Server has not said what it supports.
func (s *Service) Ready() error {
	switch {
	case !s.desk.Serving():
		return errors.New("the node has no lease: waiting for the control plane and the Runtime Server")
	case !s.node.Able():
		return errors.New("the Runtime Server does not answer, or supports nothing")
	}
	return nil
}

// Run holds a lease and serves Runs until ctx is done, then drains in bounded
// time. After an outage it is a new node, by itself.
// Errors: another process holds Config.Data; the control plane refuses the node
// for good.
func (s *Service) Run(ctx context.Context) error {
	// What others wait for goes on until the node has drained.
	aside, stop := context.WithCancel(context.WithoutCancel(ctx))
	var children sync.WaitGroup
	children.Go(func() {
		if err := s.runs.Run(aside); err != nil {
			s.log.Warn("logs can be read and not be followed", "cause", err)
		}
	})
	if s.peers != nil {
		children.Go(func() { s.peers.Run(aside) })
	}
	defer children.Wait()
	defer stop()
	return s.node.Run(ctx)
}
