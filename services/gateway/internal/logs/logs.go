// Package logs owns how the log of a Run is read through a gateway: find the node
// that has it in the route table, pass its stream on, and go after a Run that
// moves.
package logs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/proto"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/gen/hearth/v1/hearthv1connect"
	"github.com/hearth-run/hearth/internal/kit/edge"
	"github.com/hearth-run/hearth/services/gateway/internal/invoke"
	"github.com/hearth-run/hearth/services/gateway/internal/route"
)

// maxStreams is how many logs are read at once through one gateway.
const maxStreams = 256

// Nodes makes clients of nodes.
type Nodes interface {
	// Client returns a client for a node's address.
	// Errors: an address that is none.
	Client(address string) (*connect.Client, error)
}

// Service serves hearth.v1.LogService.
type Service struct {
	book    *route.Book
	control hearthv1connect.RouteServiceClient
	nodes   Nodes
	gate    *invoke.Gate
}

var _ hearthv1connect.LogServiceHandler = (*Service)(nil)

// New returns the service; control is asked only about Runs that the book does not
// have.
func New(book *route.Book, control hearthv1connect.RouteServiceClient, nodes Nodes) *Service {
	return &Service{book: book, control: control, nodes: nodes, gate: invoke.NewGate(maxStreams)}
}

// TailLogs passes on the log of a Run.
func (s *Service) TailLogs(ctx context.Context, req *hearthv1.TailLogsRequest, stream hearthv1connect.LogServiceTailLogsServerStream) error {
	if err := s.gate.Enter(); err != nil {
		return err
	}
	defer s.gate.Leave()
	if req.GetName() == "" {
		return edge.New(connect.CodeInvalidArgument, "INVALID_ARGUMENT", "name is empty: name the Run whose log is wanted", nil)
	}
	t := &tail{
		Service: s, stream: stream,
		namespace: cmp.Or(req.GetNamespace(), "default"), name: req.GetName(),
		ask: proto.CloneOf(req),
	}
	// The caller learns at once that it is heard, however long nothing is written.
	if err := stream.SendHeaders(); err != nil {
		return err
	}
	return verdicts.Error(t.run(ctx), map[string]string{edge.RunUID: t.ask.GetRunUid()})
}

// tail is one call: the request as it stands, which remembers what was passed on.
type tail struct {
	*Service
	stream          hearthv1connect.LogServiceTailLogsServerStream
	namespace, name string
	ask             *hearthv1.TailLogsRequest
	// task: the Run is none of the table's.
	task bool
}

// taskPace is how long one who follows a task waits between two looks at where it
// is: only the control plane knows, and tells gateways nothing by itself.
const taskPace = 500 * time.Millisecond

// errMoved ends the stream of a node that has no more to say.
var errMoved = errors.New("the run has ended or moved")

// run passes on one node's stream after the other, until the Run has ended.
func (t *tail) run(ctx context.Context) error {
	follow := t.ask.GetFollow()
	for {
		r, err := t.find(ctx)
		if err != nil {
			return err
		}
		t.ask.RunUid = r.RunUID
		t.ask.Follow = follow && !invoke.Ended(r.Phase)
		err = t.pass(ctx, r)
		if !errors.Is(err, errMoved) {
			return err
		}
		if now := t.present(ctx, r); now == nil || invoke.Ended(now.Phase) {
			return t.rest(ctx, r)
		}
	}
}

// rest passes on what a Run wrote at its end, which may be nothing.
func (t *tail) rest(ctx context.Context, r *route.Route) error {
	t.ask.Follow = false
	err := t.pass(ctx, r)
	if edge.Reason(err) == "LOG_NOT_FOUND" {
		return nil
	}
	return err
}

// find returns a route that leads to a log. One who follows waits for it.
func (t *tail) find(ctx context.Context) (*route.Route, error) {
	for {
		changed := t.book.Changed()
		r, err := t.look(ctx)
		if !errors.Is(err, invoke.ErrNotReady) || !t.ask.GetFollow() {
			return r, err
		}
		t.ask.RunUid = r.RunUID
		if err := t.wait(ctx, changed); err != nil {
			return nil, err
		}
	}
}

// wait returns when it is worth looking again.
func (t *tail) wait(ctx context.Context, changed <-chan struct{}) error {
	var pace <-chan time.Time
	if t.task {
		timer := time.NewTimer(taskPace)
		defer timer.Stop()
		changed, pace = nil, timer.C
	}
	select {
	case <-changed:
	case <-pace:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

func (t *tail) look(ctx context.Context) (*route.Route, error) {
	// As for invocations: completeness is read before the table.
	whole := t.book.Complete()
	r := t.book.Table().Lookup(t.namespace, t.name)
	if r == nil {
		var err error
		if r, err = t.second(ctx, whole); err != nil {
			return nil, err
		}
	}
	switch {
	case t.ask.GetRunUid() != "" && t.ask.GetRunUid() != r.RunUID:
		return nil, edge.Publicf(invoke.ErrNotFound, "Run %s/%s has another UID than %s: it was deleted and created anew", t.namespace, t.name, t.ask.GetRunUid())
	case r.LogAddress == "" && invoke.Ended(r.Phase):
		return nil, edge.Publicf(errNone, "Run %s/%s has ended without having been on a node: it has no log", t.namespace, t.name)
	case r.LogAddress == "":
		return r, edge.Publicf(invoke.ErrNotReady, "Run %s/%s was not placed on a node yet: it has no log; look again in a moment, or follow", t.namespace, t.name)
	}
	return r, nil
}

// second asks the control plane about a Run that is not in the table: tasks never
// are.
// Errors: ErrStarting, ErrNotFound.
func (t *tail) second(ctx context.Context, whole bool) (*route.Route, error) {
	if !whole {
		return nil, invoke.ErrStarting
	}
	res, err := t.control.GetRoute(ctx, &hearthv1.GetRouteRequest{Namespace: t.namespace, Name: t.name})
	if err != nil && connect.CodeOf(err) != connect.CodeNotFound {
		return nil, edge.Publicf(invoke.ErrStarting, "the control plane does not answer, and no function %s/%s is known here; look again in a moment", t.namespace, t.name)
	}
	wire := res.GetRoute()
	if err != nil || wire.GetFunction() {
		return nil, edge.Publicf(invoke.ErrNotFound, "namespace %s has no Run %s; create it, or look at `hearth run list`", t.namespace, t.name)
	}
	t.task = true
	return &route.Route{
		Namespace: t.namespace, Name: t.name, RunUID: wire.GetRunUid(), NodeUID: wire.GetNodeUid(),
		Phase: wire.GetPhase(), Reason: wire.GetReason(), LogAddress: wire.GetLogAddress(),
	}, nil
}

// present is the route of the same Run as it is now, nil if there is none. Of a
// task that nobody can be asked about, it is what it was.
func (t *tail) present(ctx context.Context, r *route.Route) *route.Route {
	now := t.book.Table().Lookup(t.namespace, t.name)
	if t.task {
		var err error
		if now, err = t.second(ctx, true); err != nil && !errors.Is(err, invoke.ErrNotFound) {
			return r
		}
	}
	if now == nil || now.RunUID != r.RunUID {
		return nil
	}
	return now
}

// pass passes on the stream of one node. errMoved: the node has no more to say,
// because the Run ended or moved.
func (t *tail) pass(ctx context.Context, r *route.Route) error {
	client, err := t.nodes.Client(r.LogAddress)
	if err != nil {
		return unreachable{fmt.Errorf("dial %s: %w", r.LogAddress, err)}
	}
	work, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if t.ask.GetFollow() {
		watched := make(chan struct{})
		go func() {
			defer close(watched)
			t.watch(work, r)
			cancel(errMoved)
		}()
		defer func() { cancel(nil); <-watched }()
	}
	err = t.relay(work, hearthv1connect.NewLogServiceClient(client))
	if err == nil {
		return nil
	}
	if ctx.Err() == nil && errors.Is(context.Cause(work), errMoved) {
		return errMoved
	}
	return judge(ctx, r, err)
}

// watch returns when the Run's log is not where it was, or will not grow.
func (t *tail) watch(ctx context.Context, r *route.Route) {
	for {
		changed := t.book.Changed()
		now := t.present(ctx, r)
		if now == nil || now.LogAddress != r.LogAddress || invoke.Ended(now.Phase) {
			return
		}
		if t.wait(ctx, changed) != nil {
			return
		}
	}
}

// relay passes messages on, each as it came, and remembers where they end.
func (t *tail) relay(ctx context.Context, node hearthv1connect.LogServiceClient) error {
	stream, err := node.TailLogs(ctx, proto.CloneOf(t.ask)) // what was sent belongs to the stream
	if err != nil {
		return err
	}
	defer stream.Close()
	for {
		res, err := stream.Receive()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		t.ask.AfterSequence, t.ask.AfterNode = res.GetSequence(), res.GetNode()
		if err := t.stream.Send(res); err != nil {
			return sendError{err}
		}
	}
}
