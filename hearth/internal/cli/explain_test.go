package cli

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect/v2"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/gen/hearth/v1/hearthv1connect"
	"github.com/hearth-run/hearth/gen/serverless"
	"github.com/hearth-run/hearth/gen/serverless/serverlessconnect"
	"github.com/hearth-run/hearth/internal/kit/dial"
)

// A peer that accepts connections and ends before a request has gone over them was
// not reached: nothing of the call was carried out, and its reader is told so.
func TestExplainNotEstablished(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_ = conn.Close()
		}
	}()
	defer func() { _ = listener.Close(); <-ended }()
	dialer := dial.New(nil)
	defer dialer.Close()
	client, err := dialer.Streams("http://" + listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for range 20 { // the end is noticed now before the request and now in it
		if text := explain(attempt(ctx, serverlessconnect.NewProxyServiceClient(client))); !strings.Contains(text, "cannot reach") && !strings.Contains(text, "[CONNECTION_LOST]") {
			t.Fatalf("says %q", text)
		}
	}
}

func attempt(ctx context.Context, client serverlessconnect.ProxyServiceClient) error {
	stream, err := client.RequestExecution(ctx)
	if err != nil {
		return err
	}
	defer stream.Close()
	_ = stream.Send(&serverless.ClientExecutionRequest{RequestId: "r"})
	_ = stream.CloseSend()
	_, err = stream.Receive()
	return err
}

// Whoever reaches the wrong service is told so, and which flags lead elsewhere.
func TestExplainWrongService(t *testing.T) {
	elsewhere := httptest.NewUnstartedServer(http.NotFoundHandler())
	elsewhere.Config.Protocols = new(http.Protocols)
	elsewhere.Config.Protocols.SetHTTP1(true)
	elsewhere.Config.Protocols.SetUnencryptedHTTP2(true)
	elsewhere.Start()
	defer elsewhere.Close()
	dialer := dial.New(nil)
	defer dialer.Close()
	streams, err := dialer.Streams(elsewhere.URL)
	if err != nil {
		t.Fatal(err)
	}
	calls, err := dialer.Client(elsewhere.URL)
	if err != nil {
		t.Fatal(err)
	}
	_, unary := hearthv1connect.NewRunServiceClient(calls).ListRuns(t.Context(), &hearthv1.ListRunsRequest{})
	for name, err := range map[string]error{"exec": attempt(t.Context(), serverlessconnect.NewProxyServiceClient(streams)), "run list": unary} {
		if text := explain(err); !strings.Contains(text, "something else answers there") || !strings.Contains(text, "--router") {
			t.Errorf("%s says %q", name, text)
		}
	}
}

// A call that took too long names its bound and the flag that moves it, and ends
// the command with the code of a timeout.
func TestTimeoutIsExplained(t *testing.T) {
	late := ofCall(t.Context(), "exec f.py:g", time.Second, connect.NewError(connect.CodeDeadlineExceeded, "context deadline exceeded"))
	if text := explain(late); text != "exec f.py:g: timed out after 1s; --timeout gives more" || !errors.Is(late, errTimeout) {
		t.Errorf("says %q", text)
	}
	told, end := context.WithCancel(t.Context())
	end()
	cut := connect.NewError(connect.CodeCanceled, "context canceled")
	if text := explain(ofCall(told, "exec f.py:g", time.Second, cut)); text != "exec f.py:g: interrupted; it was told to end" {
		t.Errorf("says %q", text)
	}
	// Nobody here has ended it: the other side has, without a word.
	if text := explain(ofCall(t.Context(), "exec f.py:g", time.Second, cut)); !strings.Contains(text, "CONNECTION_LOST") {
		t.Errorf("says %q", text)
	}
}

// HEARTH_DATA is where `hearth up` keeps its things, HEARTH_INVOCATION_ID the call
// that a function is in: neither says anything about a call that is made.
func TestCallTakesNothingOfOthers(t *testing.T) {
	t.Setenv("HEARTH_DATA", "/srv/hearth")
	t.Setenv("HEARTH_INVOCATION_ID", "outer")
	var commands grammar
	parser, err := newParser(&commands, Shell{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.Parse([]string{"invoke", "hello"}); err != nil {
		t.Fatal(err)
	}
	if c := commands.Invoke; c.Data != "null" || c.InvocationID != "" {
		t.Errorf("sends %q as %q", c.Data, c.InvocationID)
	}
}
