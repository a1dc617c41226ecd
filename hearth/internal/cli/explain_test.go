package cli

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

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
