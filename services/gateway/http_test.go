package gateway_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect/v2"

	executorv1 "github.com/hearth-run/hearth/gen/executor/v1"
	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/internal/kit/edge"
	"github.com/hearth-run/hearth/internal/kit/hop"
	"github.com/hearth-run/hearth/services/gateway"
)

// What goes to the node, and what comes back to the caller.
func TestHeaders(t *testing.T) {
	h := open(t, nil)
	h.tell(snapshot(ready("hello", "uid-1")))
	const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	got := h.post(t, helloPath, `{"a":1}`, "Hearth-Invocation-Id", "mine", "Hearth-Timeout-Millis", "1500", "Traceparent", trace, "Content-Type", "text/plain")
	if got.status != 200 || got.body != `{"a":1}` || got.header.Get("Content-Type") != "application/json" {
		t.Errorf("%d %s %v", got.status, got.body, got.header)
	}
	if got.header.Get("Hearth-Invocation-Id") != "mine" || got.header.Get("Hearth-Run-Uid") != "uid-1" {
		t.Errorf("headers out: %v", got.header)
	}
	_, fence, seenTrace, req := h.node.seen()
	if want := (hop.Fence{Attempt: 3, NodeUID: "node-a"}); fence != want {
		t.Errorf("fence %+v, want %+v", fence, want)
	}
	if seenTrace != trace || req.GetContentType() != "text/plain" || req.GetTimeoutMillis() != 1500 {
		t.Errorf("to the node: %q %v", seenTrace, req)
	}
	if r := req.GetRegistration(); r.GetRunUid() != "uid-1" || r.GetRegistrationId() != "" {
		t.Errorf("registration %v", r)
	}
	for header, want := range map[string]string{"": "application/json", "application/x-www-form-urlencoded": "application/json", "application/cbor": "application/cbor"} {
		h.post(t, helloPath, "x", "Content-Type", header)
		if _, _, _, req := h.node.seen(); req.GetContentType() != want {
			t.Errorf("content type %q reached the node as %q", header, req.GetContentType())
		}
	}
	got = h.post(t, helloPath, "")
	if _, _, _, req := h.node.seen(); got.header.Get("Hearth-Invocation-Id") == "" || req.GetTimeoutMillis() != 30000 {
		t.Errorf("defaults: %v %v", got.header, req)
	}
}

func TestBadHeaders(t *testing.T) {
	h := open(t, nil)
	h.tell(snapshot(ready("hello", "uid-1")))
	for _, row := range [][3]string{
		{"Hearth-Invocation-Id", strings.Repeat("x", 129), "at most 128"},
		{"Hearth-Invocation-Id", "é", "printable ASCII"},
		{"Hearth-Timeout-Millis", "-1", "0 (the default, 30000) to 900000"},
		{"Hearth-Timeout-Millis", "soon", "0 (the default, 30000) to 900000"},
		{"Hearth-Timeout-Millis", "900001", "0 (the default, 30000 ms) to 900000 ms"},
		{"Content-Type", "é", "printable ASCII"},
	} {
		got := h.post(t, helloPath, "{}", row[0], row[1])
		if fault := parse(t, got); got.status != 400 || fault.reason() != "INVALID_ARGUMENT" || !strings.Contains(fault.Message, row[2]) {
			t.Errorf("%s %q: %d %s", row[0], row[1], got.status, got.body)
		}
	}
	if got := h.post(t, helloPath, "{}", "Hearth-Invocation-Id", strings.Repeat("x", 128), "Hearth-Timeout-Millis", "900000"); got.status != 200 {
		t.Errorf("at the bounds: %d %s", got.status, got.body)
	}
}

func TestEnvelope(t *testing.T) {
	h := open(t, nil)
	h.tell(snapshot(ready("hello", "uid-1")))
	for contentType, row := range map[string]struct{ output, want string }{
		"application/json":          {`{"a":1}`, `"output":{"a":1}`},
		"text/plain; charset=utf-8": {"hi\n", `"outputText":"hi\n"`},
		"application/octet-stream":  {"\xff\x00", `"outputBase64":"/wA="`},
	} {
		h.node.does(func(context.Context, *executorv1.InvokeFunctionRequest) (*executorv1.InvokeFunctionResponse, error) {
			return &executorv1.InvokeFunctionResponse{Output: []byte(row.output), ContentType: contentType, Outputs: map[string]string{"k": "v"}}, nil
		})
		got := h.post(t, helloPath, "{}", "Accept", "application/vnd.hearth.invocation+json")
		var e struct {
			RunUID  string            `json:"runUid"`
			Outputs map[string]string `json:"outputs"`
		}
		if err := json.Unmarshal([]byte(got.body), &e); err != nil || e.RunUID != "uid-1" || e.Outputs["k"] != "v" || !strings.Contains(got.body, row.want) {
			t.Errorf("%s: %s, %v", contentType, got.body, err)
		}
		if got := h.post(t, helloPath, "{}"); got.body != row.output || got.header.Get("Content-Type") != contentType {
			t.Errorf("plain: %q %v", got.body, got.header)
		}
	}
}

// counted says how many bytes of a body were taken.
type counted struct {
	reader io.Reader
	read   atomic.Int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.reader.Read(p)
	c.read.Add(int64(n))
	return n, err
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestPayloadBound(t *testing.T) {
	h := open(t, nil)
	h.tell(snapshot(ready("hello", "uid-1")))
	exact := strings.Repeat("x", 1<<20)
	if got := h.post(t, helloPath, exact); got.status != 200 || got.body != exact {
		t.Errorf("1 MiB: %d, %d bytes back", got.status, len(got.body))
	}
	chunked := struct{ io.Reader }{strings.NewReader(exact)}
	if got := h.do(t, "POST", helloPath, chunked); got.status != 200 || got.body != exact {
		t.Errorf("1 MiB in chunks: %d, %d bytes back", got.status, len(got.body))
	}
	h.node.does(echo)
	endless := &counted{reader: zeros{}}
	if got := h.do(t, "POST", helloPath, endless); got.status != 400 || !strings.Contains(got.body, "1048576") {
		t.Errorf("endless: %d %s", got.status, got.body)
	}
	// Most of what was taken lies in the buffers of the connection: tens of MiB at most.
	if read := endless.read.Load(); read > 64<<20 {
		t.Errorf("%d bytes of an endless body were taken", read)
	}
	if calls, _, _, _ := h.node.seen(); calls != 0 {
		t.Error("the node was called")
	}
}

// A length beyond the bound is refused before a byte of the body was sent.
func TestPayloadRefusedUnread(t *testing.T) {
	h := open(t, nil)
	h.tell(snapshot(ready("hello", "uid-1")))
	conn, err := net.Dial("tcp", strings.TrimPrefix(h.base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: 1048577\r\n\r\n", helloPath)
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, _ := io.ReadAll(res.Body)
	if res.StatusCode != 400 || !res.Close || !strings.Contains(string(body), "1048577 bytes") {
		t.Errorf("%d close=%v %s", res.StatusCode, res.Close, body)
	}
}

func TestDeadline(t *testing.T) {
	h := open(t, nil)
	h.tell(snapshot(ready("hello", "uid-1")))
	hangs := func(ctx context.Context, _ *executorv1.InvokeFunctionRequest) (*executorv1.InvokeFunctionResponse, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	h.node.does(hangs)
	if got := h.post(t, helloPath, "{}", "Hearth-Timeout-Millis", "1"); got.status != 504 || parse(t, got).reason() != "DEADLINE_EXCEEDED" {
		t.Errorf("%d %s", got.status, got.body)
	}
	// The node's own word comes first where it keeps the deadline.
	h.node.does(func(ctx context.Context, req *executorv1.InvokeFunctionRequest) (*executorv1.InvokeFunctionResponse, error) {
		ctx, cancel := context.WithTimeout(ctx, time.Duration(req.GetTimeoutMillis())*time.Millisecond)
		defer cancel()
		<-ctx.Done()
		return nil, edge.New(connect.CodeDeadlineExceeded, "DEADLINE_EXCEEDED", "ended by the node", nil)
	})
	if got := h.post(t, helloPath, "{}", "Hearth-Timeout-Millis", "1"); got.status != 504 || parse(t, got).Message != "ended by the node" {
		t.Errorf("%d %s", got.status, got.body)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	h.node.does(hangs)
	if _, err := h.rpc(t).Invoke(ctx, &hearthv1.InvokeRequest{Name: "hello"}); connect.CodeOf(err) != connect.CodeDeadlineExceeded {
		t.Errorf("an RPC's own deadline: %v", err)
	}
}

// A caller that goes away ends its invocation.
func TestCallerGone(t *testing.T) {
	h := open(t, nil)
	h.tell(snapshot(ready("hello", "uid-1")))
	entered, ended := make(chan struct{}), make(chan error, 1)
	h.node.does(func(ctx context.Context, _ *executorv1.InvokeFunctionRequest) (*executorv1.InvokeFunctionResponse, error) {
		close(entered)
		<-ctx.Done()
		ended <- ctx.Err()
		return nil, ctx.Err()
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-entered; cancel() }()
	req, err := http.NewRequestWithContext(ctx, "POST", h.base+helloPath, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := http.DefaultClient.Do(req); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the invocation ended with %v", err)
	}
}

func TestInFlightBound(t *testing.T) {
	h := open(t, func(c *gateway.Config) { c.MaxInFlight = 1 })
	h.tell(snapshot(ready("hello", "uid-1")))
	entered, release := make(chan struct{}), make(chan struct{})
	h.node.does(func(context.Context, *executorv1.InvokeFunctionRequest) (*executorv1.InvokeFunctionResponse, error) {
		close(entered)
		<-release
		return &executorv1.InvokeFunctionResponse{}, nil
	})
	first := make(chan int)
	go func() { first <- h.post(t, helloPath, "{}").status }()
	<-entered
	got := h.post(t, helloPath, "{}")
	if got.status != 503 || parse(t, got).reason() != "GATEWAY_OVERLOADED" || got.header.Get("Retry-After") != "1" {
		t.Errorf("%d %v %s", got.status, got.header, got.body)
	}
	if _, err := h.rpc(t).Invoke(t.Context(), &hearthv1.InvokeRequest{Name: "hello"}); edge.Reason(err) != "GATEWAY_OVERLOADED" {
		t.Errorf("InvokeService: %v", err)
	}
	close(release)
	if status := <-first; status != 200 {
		t.Errorf("the call in flight: %d", status)
	}
	h.node.does(echo)
	if got := h.post(t, helloPath, "{}"); got.status != 200 {
		t.Errorf("after it: %d", got.status)
	}
}

// A node that cannot be reached did not run the function; one that goes away
// during the call may have.
func TestNodeGone(t *testing.T) {
	h := open(t, nil)
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dead := ready("dead", "uid-2")
	dead.Address = closed.Addr().String()
	closed.Close()
	hangsUp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer hangsUp.Close()
	go func() {
		for conn, err := hangsUp.Accept(); err == nil; conn, err = hangsUp.Accept() {
			bufio.NewReader(conn).ReadString('\n')
			conn.Close()
		}
	}()
	lost := ready("lost", "uid-3")
	lost.Address = hangsUp.Addr().String()
	bad := ready("bad", "uid-4")
	bad.Address = "inprocess:nobody"
	h.tell(snapshot(dead, lost, bad))
	for name, row := range map[string][2]string{
		"dead": {"RUNTIME_UNAVAILABLE", "did not run"},
		"lost": {"RUNTIME_UNAVAILABLE", "not known"},
		"bad":  {"RUN_NOT_READY", "READY"},
	} {
		got := h.post(t, "/v1/namespaces/default/runs/"+name+":invoke", "{}")
		if fault := parse(t, got); got.status != 503 || fault.reason() != row[0] || !strings.Contains(fault.Message, row[1]) {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
}

func TestCORS(t *testing.T) {
	h := open(t, func(c *gateway.Config) { c.CORSOrigins = []string{"https://app.example", "http://localhost:*"} })
	h.tell(snapshot(ready("hello", "uid-1")))
	rpcPath := "/hearth.v1.InvokeService/Invoke"
	for _, path := range []string{helloPath, rpcPath} {
		got := h.do(t, http.MethodOptions, path, nil, "Origin", "https://app.example", "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "content-type")
		if got.status != 204 || got.header.Get("Access-Control-Allow-Origin") != "https://app.example" ||
			!strings.Contains(got.header.Get("Access-Control-Allow-Headers"), "Hearth-Timeout-Millis") || !strings.Contains(got.header.Get("Access-Control-Allow-Methods"), "POST") {
			t.Errorf("preflight of %s: %d %v", path, got.status, got.header)
		}
	}
	got := h.post(t, helloPath, "{}", "Origin", "http://localhost:5173")
	if got.status != 200 || got.header.Get("Access-Control-Allow-Origin") != "http://localhost:5173" || !strings.Contains(got.header.Get("Access-Control-Expose-Headers"), "Hearth-Invocation-Id") {
		t.Errorf("call: %d %v", got.status, got.header)
	}
	if got := h.post(t, rpcPath, `{"name":"hello"}`, "Origin", "http://localhost:1", "Content-Type", "application/json"); got.status != 200 || got.header.Get("Access-Control-Allow-Origin") == "" {
		t.Errorf("procedure: %d %v", got.status, got.header)
	}
	h.node.does(echo)
	for _, origin := range []string{"https://evil.example", "http://localhost.evil.example", "null", "https://app.example.evil"} {
		got := h.post(t, helloPath, "{}", "Origin", origin)
		if got.status != 403 || parse(t, got).reason() != "ORIGIN_NOT_ALLOWED" || got.header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: %d %v", origin, got.status, got.header)
		}
	}
	if calls, _, _, _ := h.node.seen(); calls != 0 {
		t.Error("a page that may not call has called")
	}
	if got := h.post(t, helloPath, "{}", "Origin", h.base); got.status != 200 {
		t.Errorf("the gateway's own origin: %d", got.status)
	}
}

// Before the first snapshot nobody can say that a Run is not there.
func TestStarting(t *testing.T) {
	h := open(t, nil)
	if got := h.post(t, helloPath, "{}"); got.status != 503 || parse(t, got).reason() != "GATEWAY_STARTING" {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := h.do(t, "GET", "/readyz", nil); got.status != 503 {
		t.Errorf("readyz: %d", got.status)
	}
	h.tell(snapshot())
	if got := h.post(t, helloPath, "{}"); got.status != 404 {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := h.do(t, "GET", "/readyz", nil); got.status != 200 {
		t.Errorf("readyz: %d", got.status)
	}
}

func TestConfig(t *testing.T) {
	if err := gateway.Default().Validate(); err != nil {
		t.Error(err)
	}
	err := gateway.Config{MaxTimeout: time.Hour, CORSOrigins: []string{"example.com", "*"}}.Validate()
	for _, field := range []string{"max timeout", "default timeout", "max in flight", "cors origin"} {
		if err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%q is not named in: %v", field, err)
		}
	}
	if _, err := gateway.New(gateway.Default(), gateway.Deps{}); err == nil {
		t.Error("a gateway without its dependencies")
	}
}
