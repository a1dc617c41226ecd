package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"connectrpc.com/connect/v2"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/gen/hearth/v1/hearthv1connect"
	"github.com/hearth-run/hearth/internal/kit/dial"
	"github.com/hearth-run/hearth/internal/kit/edge"
)

// lognode is a node whose log is what the test says.
type lognode struct {
	hearthv1connect.UnimplementedLogServiceHandler
	name  string
	asked chan *hearthv1.TailLogsRequest
	// lines are what each call answers; a call that follows goes on until it is
	// cut off.
	lines chan string
	err   error
}

func (n *lognode) TailLogs(ctx context.Context, req *hearthv1.TailLogsRequest, stream hearthv1connect.LogServiceTailLogsServerStream) error {
	n.asked <- req
	if n.err != nil {
		return n.err
	}
	for seq := req.GetAfterSequence() + 1; ; seq++ {
		select {
		case text := <-n.lines:
			if text == "" {
				return nil
			}
			entry := &hearthv1.LogEntry{RunUid: req.GetRunUid(), Sequence: seq, Message: text}
			if err := stream.Send(&hearthv1.TailLogsResponse{Entries: []*hearthv1.LogEntry{entry}, Sequence: seq, Node: n.name}); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// logs adds a node with a log to a house, and a client that reads by the gateway.
func (h *house) logs(t *testing.T, name string) *lognode {
	t.Helper()
	n := &lognode{name: name, asked: make(chan *hearthv1.TailLogsRequest, 8), lines: make(chan string)}
	h.dialer.Add(name, dispatcher(t, func(s *connect.Server) { hearthv1connect.RegisterLogServiceHandler(s, n) }))
	return n
}

func (h *house) reader(t *testing.T) hearthv1connect.LogServiceClient {
	t.Helper()
	dialer := dial.New(nil)
	t.Cleanup(dialer.Close)
	client, err := dialer.Client(h.base)
	if err != nil {
		t.Fatal(err)
	}
	return hearthv1connect.NewLogServiceClient(client)
}

func logged(route *hearthv1.Route, node string) *hearthv1.Route {
	route.LogAddress = "inprocess:" + node
	return route
}

// tailing is a call under way.
type tailing struct {
	t      *testing.T
	stream hearthv1connect.LogServiceTailLogsClientStream
}

func (h *house) tail(t *testing.T, req *hearthv1.TailLogsRequest) *tailing {
	t.Helper()
	stream, err := h.reader(t).TailLogs(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stream.Close() })
	return &tailing{t, stream}
}

func (f *tailing) wants(text string, seq uint64, node string) {
	f.t.Helper()
	res, err := f.stream.Receive()
	if err != nil || len(res.GetEntries()) != 1 || res.GetEntries()[0].GetMessage() != text || res.GetSequence() != seq || res.GetNode() != node {
		f.t.Fatalf("%v, %v; want %q, %d of %s", res, err, text, seq, node)
	}
}

// ends wants the end, with this reason; "" is none.
func (f *tailing) ends(code connect.Code, reason string) {
	f.t.Helper()
	_, err := f.stream.Receive()
	if reason == "" && errors.Is(err, io.EOF) {
		return
	}
	if reason == "" || connect.CodeOf(err) != code || edge.Reason(err) != reason {
		f.t.Errorf("ended with %v %v, want %v %v", err, edge.Reason(err), code, reason)
	}
}

// A log is asked of the node that has it, under the Run's UID.
func TestLogs(t *testing.T) {
	h := open(t, nil)
	node := h.logs(t, "log-a")
	h.tell(snapshot(logged(ready("hello", "uid-1"), "log-a")))
	f := h.tail(t, &hearthv1.TailLogsRequest{Name: "hello", InvocationId: "i", AfterSequence: 6, AfterNode: "log-a"})
	asked := <-node.asked
	if asked.GetRunUid() != "uid-1" || asked.GetInvocationId() != "i" || asked.GetAfterSequence() != 6 || asked.GetAfterNode() != "log-a" || asked.GetFollow() {
		t.Errorf("asked %v", asked)
	}
	node.lines <- "one"
	f.wants("one", 7, "log-a")
	node.lines <- ""
	f.ends(0, "")
}

// Who follows a Run is led from node to node, and to its end.
func TestLogsFollow(t *testing.T) {
	h := open(t, nil)
	a, b := h.logs(t, "log-a"), h.logs(t, "log-b")
	pending := in(ready("hello", "uid-1"), hearthv1.RunPhase_RUN_PHASE_PENDING, hearthv1.RunReason_RUN_REASON_NO_NODE)
	h.tell(snapshot(pending))
	f := h.tail(t, &hearthv1.TailLogsRequest{Name: "hello", Follow: true})
	h.tell(&hearthv1.WatchRoutesResponse{Routes: []*hearthv1.Route{logged(ready("hello", "uid-1"), "log-a")}})
	<-a.asked
	a.lines <- "one"
	f.wants("one", 1, "log-a")
	// Another Run's change is none of ours.
	h.tell(&hearthv1.WatchRoutesResponse{Routes: []*hearthv1.Route{ready("other", "uid-9")}})
	a.lines <- "two"
	f.wants("two", 2, "log-a")
	h.tell(&hearthv1.WatchRoutesResponse{Routes: []*hearthv1.Route{logged(ready("hello", "uid-1"), "log-b")}})
	if asked := <-b.asked; asked.GetAfterSequence() != 2 || asked.GetAfterNode() != "log-a" || !asked.GetFollow() {
		t.Errorf("after the move: %v", asked)
	}
	b.lines <- "three"
	f.wants("three", 3, "log-b")
	over := logged(in(ready("hello", "uid-1"), hearthv1.RunPhase_RUN_PHASE_CANCELLED, hearthv1.RunReason_RUN_REASON_CANCELLED), "log-b")
	h.tell(&hearthv1.WatchRoutesResponse{Routes: []*hearthv1.Route{over}})
	if asked := <-b.asked; asked.GetAfterSequence() != 3 || asked.GetFollow() {
		t.Errorf("at the end: %v", asked)
	}
	b.lines <- "last"
	f.wants("last", 4, "log-b")
	b.lines <- ""
	f.ends(0, "")
}

// A task is in no table: its log is found by asking, from its placement to its end.
func TestLogsOfTask(t *testing.T) {
	h := open(t, nil)
	a, b := h.logs(t, "log-a"), h.logs(t, "log-b")
	h.tell(snapshot())
	task := func(node string, phase hearthv1.RunPhase) *hearthv1.Route {
		return logged(&hearthv1.Route{Namespace: "default", Name: "job", RunUid: "uid-7", Phase: phase}, node)
	}
	h.control.say(&hearthv1.Route{Namespace: "default", Name: "job", RunUid: "uid-7", Phase: hearthv1.RunPhase_RUN_PHASE_PENDING})
	h.tail(t, &hearthv1.TailLogsRequest{Name: "job"}).ends(connect.CodeFailedPrecondition, "RUN_NOT_READY")
	f := h.tail(t, &hearthv1.TailLogsRequest{Name: "job", Follow: true})
	h.control.say(task("log-a", hearthv1.RunPhase_RUN_PHASE_RUNNING))
	if asked := <-a.asked; asked.GetRunUid() != "uid-7" || !asked.GetFollow() {
		t.Errorf("asked %v", asked)
	}
	a.lines <- "one"
	f.wants("one", 1, "log-a")
	h.control.say(task("log-b", hearthv1.RunPhase_RUN_PHASE_RUNNING))
	if asked := <-b.asked; asked.GetAfterSequence() != 1 || asked.GetAfterNode() != "log-a" || !asked.GetFollow() {
		t.Errorf("after the move: %v", asked)
	}
	b.lines <- "two"
	f.wants("two", 2, "log-b")
	h.control.say(task("log-b", hearthv1.RunPhase_RUN_PHASE_SUCCEEDED))
	if asked := <-b.asked; asked.GetAfterSequence() != 2 || asked.GetFollow() {
		t.Errorf("at the end: %v", asked)
	}
	b.lines <- "last"
	f.wants("last", 3, "log-b")
	b.lines <- ""
	f.ends(0, "")
}

// A Run that is deleted while it is followed is read to its end.
func TestLogsOfDeleted(t *testing.T) {
	h := open(t, nil)
	node := h.logs(t, "log-a")
	h.tell(snapshot(logged(ready("hello", "uid-1"), "log-a")))
	f := h.tail(t, &hearthv1.TailLogsRequest{Name: "hello", Follow: true})
	<-node.asked
	h.tell(&hearthv1.WatchRoutesResponse{RemovedRunUids: []string{"uid-1"}})
	<-node.asked
	node.lines <- ""
	f.ends(0, "")
}

func TestLogsRefused(t *testing.T) {
	h := open(t, nil)
	node := h.logs(t, "log-a")
	ask := func(req *hearthv1.TailLogsRequest, code connect.Code, reason string) {
		t.Helper()
		h.tail(t, req).ends(code, reason)
	}
	ask(&hearthv1.TailLogsRequest{Name: "hello"}, connect.CodeUnavailable, "GATEWAY_STARTING")
	h.tell(snapshot(
		logged(ready("hello", "uid-1"), "log-a"), logged(ready("far", "uid-2"), "nowhere"),
		in(ready("waits", "uid-3"), hearthv1.RunPhase_RUN_PHASE_PENDING, hearthv1.RunReason_RUN_REASON_NO_NODE),
		in(ready("never", "uid-4"), hearthv1.RunPhase_RUN_PHASE_CANCELLED, hearthv1.RunReason_RUN_REASON_CANCELLED),
	))
	ask(&hearthv1.TailLogsRequest{}, connect.CodeInvalidArgument, "INVALID_ARGUMENT")
	ask(&hearthv1.TailLogsRequest{Name: "hello", RunUid: "uid-0"}, connect.CodeNotFound, "RUN_NOT_FOUND")
	ask(&hearthv1.TailLogsRequest{Name: "hello", RunUid: "../x"}, connect.CodeInvalidArgument, "INVALID_ARGUMENT")
	ask(&hearthv1.TailLogsRequest{Name: "far"}, connect.CodeUnavailable, "RUNTIME_UNAVAILABLE")
	ask(&hearthv1.TailLogsRequest{Name: "waits"}, connect.CodeFailedPrecondition, "RUN_NOT_READY")
	ask(&hearthv1.TailLogsRequest{Name: "never", Follow: true}, connect.CodeNotFound, "LOG_NOT_FOUND")
	ask(&hearthv1.TailLogsRequest{Name: "none"}, connect.CodeNotFound, "RUN_NOT_FOUND")
	h.control.say(&hearthv1.Route{Name: "task", RunUid: "uid-5"})
	ask(&hearthv1.TailLogsRequest{Name: "task"}, connect.CodeFailedPrecondition, "RUN_NOT_READY")
	h.control.say(nil)
	node.err = edge.New(connect.CodeNotFound, "LOG_NOT_FOUND", "no log here", nil)
	ask(&hearthv1.TailLogsRequest{Name: "hello"}, connect.CodeNotFound, "LOG_NOT_FOUND")
	node.err = fmt.Errorf("a fault")
	ask(&hearthv1.TailLogsRequest{Name: "hello"}, connect.CodeInternal, "INTERNAL")
}
