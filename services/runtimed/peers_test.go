package runtimed_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connectinprocess"
	"google.golang.org/protobuf/proto"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/gen/hearth/v1/hearthv1connect"
	"github.com/hearth-run/hearth/internal/kit/dial"
	"github.com/hearth-run/hearth/internal/kit/edge"
	"github.com/hearth-run/hearth/internal/kit/hop"
)

// routesFake has no route at first; tell gives every watch an event.
type routesFake struct {
	hearthv1connect.UnimplementedRouteServiceHandler
	mu      sync.Mutex // guards watches
	watches []chan *hearthv1.WatchRoutesResponse
}

func (f *routesFake) WatchRoutes(ctx context.Context, _ *hearthv1.WatchRoutesRequest, stream hearthv1connect.RouteServiceWatchRoutesServerStream) error {
	events := make(chan *hearthv1.WatchRoutesResponse)
	f.mu.Lock()
	f.watches = append(f.watches, events)
	f.mu.Unlock()
	ev := &hearthv1.WatchRoutesResponse{SnapshotComplete: true}
	for {
		if err := stream.Send(ev); err != nil {
			return err
		}
		select {
		case ev = <-events:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (f *routesFake) tell(ev *hearthv1.WatchRoutesResponse) {
	synctest.Wait()
	f.mu.Lock()
	watches := f.watches
	f.mu.Unlock()
	for _, w := range watches {
		w <- proto.CloneOf(ev)
	}
	synctest.Wait()
}

// pair is two nodes that know of each other.
func pair(t *testing.T) (a, b *house, routes *routesFake) {
	a, b = open(t), open(t)
	a.cfg.Name, b.cfg.Name = "node-a", "node-b"
	routes = &routesFake{}
	dialer := dial.New(nil)
	client := connect.NewClient(connectinprocess.New(rpc(t, routes)))
	for _, h := range []*house{a, b} {
		h.deps.Routes, h.deps.Peers = hearthv1connect.NewRouteServiceClient(client), dialer
		h.serveAs = func(server *connect.Server) { dialer.Add(h.cfg.Name, server) }
	}
	return a, b, routes
}

func route(run, node, uid string, attempt int32) *hearthv1.Route {
	return &hearthv1.Route{RunUid: run, Attempt: attempt, NodeUid: uid, Address: "inprocess:" + node, Phase: hearthv1.RunPhase_RUN_PHASE_READY, Function: true}
}

// A call for a Run that a peer serves goes on once, under the peer's own triple.
func TestPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, routes := pair(t)
		a.start()
		b.start()
		b.control.assign("run-1", 2, function(), 0)
		b.hear("run-1#2 ready")
		self, peer := a.fence(2), b.fence(2)
		routes.tell(&hearthv1.WatchRoutesResponse{Routes: []*hearthv1.Route{route("run-1", "node-b", peer.NodeUID, 2)}})
		for name, tc := range map[string]struct {
			fence  hop.Fence
			hop    string
			reason string
		}{
			"no fence":            {hop.Fence{}, "", ""},
			"meant for this node": {self, "", ""},
			"meant for the peer":  {peer, "", ""},
			"an earlier attempt":  {hop.Fence{Attempt: 1}, "", "RUN_NOT_FOUND"},
			"a third node":        {hop.Fence{NodeUID: "third"}, "", "NODE_FENCED"},
			"a second hop":        {hop.Fence{}, "someone", "RUN_NOT_FOUND"},
		} {
			ctx, info := connect.NewClientContext(t.Context())
			if tc.hop != "" {
				info.RequestHeader().Set(hop.Forwarded, tc.hop)
			}
			tc.fence.Write(info.RequestHeader())
			res, err := a.gateway.InvokeFunction(ctx, invocation("run-1", "x"))
			if edge.Reason(err) != tc.reason || err == nil && string(res.GetOutput()) != "x" {
				t.Errorf("%s: %v %v", name, res, err)
			}
		}
		routes.tell(&hearthv1.WatchRoutesResponse{RemovedRunUids: []string{"run-1"}})
		if _, err := a.call(t.Context(), "run-1", hop.Fence{}, ""); edge.Reason(err) != "RUN_NOT_FOUND" {
			t.Errorf("after its removal: %v", err)
		}
		a.close()
		b.close()
	})
}

// Two nodes that take each other for the owner do not send a call in circles.
func TestPeersInCircle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, routes := pair(t)
		a.start()
		b.start()
		for _, r := range []*hearthv1.Route{route("run-1", "node-b", b.fence(0).NodeUID, 1), route("run-2", "node-a", a.fence(0).NodeUID, 1)} {
			routes.tell(&hearthv1.WatchRoutesResponse{Routes: []*hearthv1.Route{r}})
		}
		if _, err := a.call(t.Context(), "run-1", hop.Fence{}, ""); edge.Reason(err) != "RUN_NOT_FOUND" {
			t.Errorf("by way of the peer: %v", err)
		}
		if _, err := a.call(t.Context(), "run-2", hop.Fence{}, ""); edge.Reason(err) != "RUN_NOT_FOUND" {
			t.Errorf("by way of itself: %v", err)
		}
		a.close()
		b.close()
	})
}
