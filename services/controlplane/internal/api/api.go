// Package api owns the control plane's services on the wire: it checks what comes
// in, has the ledger do it, and says what came of it.
package api

import (
	"context"

	"connectrpc.com/connect/v2"

	"github.com/hearth-run/hearth/gen/hearth/v1/hearthv1connect"
	"github.com/hearth-run/hearth/internal/kit/edge"
	"github.com/hearth-run/hearth/services/controlplane/internal/archive"
	"github.com/hearth-run/hearth/services/controlplane/internal/ledger"
)

// Server serves RunService, NodeService and RouteService. Calls that come before
// Open wait for it.
type Server struct {
	terms   Terms
	opened  chan struct{} // closed by Open and by Fail, once
	ledger  *ledger.Ledger
	shelf   *archive.Shelf
	failure error
}

// New returns a server that is not open yet.
func New(terms Terms) *Server { return &Server{terms: terms, opened: make(chan struct{})} }

// Register adds the services to a dispatcher.
func (s *Server) Register(rpc *connect.Server) {
	hearthv1connect.RegisterRunServiceHandler(rpc, &runs{s})
	hearthv1connect.RegisterNodeServiceHandler(rpc, &nodeService{s})
	hearthv1connect.RegisterRouteServiceHandler(rpc, &routes{s})
}

// Open lets calls through. Open or Fail is called once.
func (s *Server) Open(l *ledger.Ledger, shelf *archive.Shelf) {
	s.ledger, s.shelf = l, shelf
	close(s.opened)
}

// Fail answers every call with ErrStopped: there will be no ledger.
func (s *Server) Fail() {
	s.failure = ledger.ErrStopped
	close(s.opened)
}

// Ready says why calls are not answered yet, nil if they are.
func (s *Server) Ready() error {
	select {
	case <-s.opened:
	default:
		return errStarting
	}
	if s.failure != nil {
		return s.failure
	}
	select {
	case <-s.ledger.Stopped():
		return ledger.ErrStopped
	default:
		return nil
	}
}

func (s *Server) book(ctx context.Context) (*ledger.Ledger, error) {
	select {
	case <-s.opened:
		return s.ledger, s.failure
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// answer translates what a handler came to.
func answer[T any](out *T, err error, runUID string) (*T, error) {
	if err != nil {
		return nil, table.Error(err, map[string]string{edge.RunUID: runUID})
	}
	return out, nil
}
