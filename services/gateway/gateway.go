package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"connectrpc.com/connect/v2"

	"github.com/hearth-run/hearth/gen/executor/v1/executorv1connect"
	"github.com/hearth-run/hearth/gen/hearth/v1/hearthv1connect"
	"github.com/hearth-run/hearth/services/gateway/internal/front"
	"github.com/hearth-run/hearth/services/gateway/internal/invoke"
	"github.com/hearth-run/hearth/services/gateway/internal/logs"
	"github.com/hearth-run/hearth/services/gateway/internal/route"
)

// lookTime bounds the second look at the control plane.
const lookTime = 2 * time.Second

// Dialer makes clients of nodes; *dial.Dialer is one.
type Dialer interface {
	// Client returns a client for an address.
	// Errors: an address that is none.
	Client(address string) (*connect.Client, error)
	// Forget drops what is kept for an address that is not used any more.
	Forget(address string)
}

// Deps is what a gateway needs of others.
type Deps struct {
	Log *slog.Logger
	// Routes is the control plane.
	Routes hearthv1connect.RouteServiceClient
	Nodes  Dialer
}

// Service is a gateway.
type Service struct {
	cfg     Config
	deps    Deps
	book    *route.Book
	rpc     *front.RPC
	logs    *logs.Service
	handler *front.Handler
}

// New checks its arguments and starts nothing.
func New(cfg Config, deps Deps) (*Service, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("configure gateway: %w", err)
	}
	if deps.Log == nil || deps.Routes == nil || deps.Nodes == nil {
		return nil, errors.New("gateway: Log, Routes and Nodes are all needed")
	}
	book := route.NewBook(nodes{deps.Nodes})
	limits := invoke.Limits{Default: cfg.DefaultTimeout, Most: cfg.MaxTimeout, Look: lookTime, Settle: cfg.Settle}
	invoker := invoke.New(limits, book, deps.Routes)
	gate := invoke.NewGate(cfg.MaxInFlight)
	return &Service{
		cfg: cfg, deps: deps, book: book,
		rpc:     front.NewRPC(invoker, gate),
		logs:    logs.New(book, deps.Routes, deps.Nodes),
		handler: front.New(invoker, gate, deps.Log),
	}, nil
}

// Register adds InvokeService and LogService to a dispatcher.
func (s *Service) Register(server *connect.Server) {
	hearthv1connect.RegisterLogServiceHandler(server, s.logs)
	hearthv1connect.RegisterInvokeServiceHandler(server, s.rpc)
}

// Handler serves the plain routes beneath Pattern.
func (s *Service) Handler() http.Handler { return s.handler }

// Pattern is where Handler belongs on a mux.
const Pattern = "/v1/"

// Wrap puts CORS around every route of the listener, procedures included.
func (s *Service) Wrap(next http.Handler) http.Handler {
	return s.handler.CORS(front.Origins(s.cfg.CORSOrigins), next)
}

// Ready says why calls cannot be routed yet: the first snapshot is not complete.
func (s *Service) Ready() error {
	if !s.book.Complete() {
		return errors.New("routes are not known yet: waiting for the control plane")
	}
	return nil
}

// Run keeps the route table up to date until ctx is done.
func (s *Service) Run(ctx context.Context) error {
	route.Follow(ctx, s.book, s.deps.Routes, s.deps.Log)
	return nil
}

// nodes makes FunctionRuntime clients by way of a Dialer.
type nodes struct{ dialer Dialer }

func (n nodes) Client(address string) (executorv1connect.FunctionRuntimeClient, error) {
	client, err := n.dialer.Client(address)
	if err != nil {
		return nil, err
	}
	return executorv1connect.NewFunctionRuntimeClient(client), nil
}

func (n nodes) Forget(address string) { n.dialer.Forget(address) }
