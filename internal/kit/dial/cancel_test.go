package dial_test

import (
	"context"
	"log/slog"
	"testing"

	"connectrpc.com/connect/v2"
	"go.uber.org/goleak"

	"github.com/hearth-run/hearth/gen/serverless"
	"github.com/hearth-run/hearth/gen/serverless/serverlessconnect"
	"github.com/hearth-run/hearth/internal/kit/dial"
	"github.com/hearth-run/hearth/internal/kit/serve"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// half answers once and then waits for the end of the call.
type half struct{ ended chan error }

func (h *half) RequestExecution(ctx context.Context, s serverlessconnect.ExecutionServiceRequestExecutionServerStream) error {
	if _, err := s.Receive(); err != nil {
		return err
	}
	if err := s.Send(&serverless.WorkerExecutionResponse{Success: true}); err != nil {
		return err
	}
	_, err := s.Receive() // the body's end would be io.EOF: not for a cancel
	h.ended <- err
	<-ctx.Done()
	return ctx.Err()
}

// A cancel after the first answer, with nothing being sent, reaches both ends, and
// does not look like the end of the body.
func TestCancelReaches(t *testing.T) {
	worker := &half{make(chan error, 1)}
	rpc := connect.NewServer()
	serverlessconnect.RegisterExecutionServiceHandler(rpc, worker)
	server, err := serve.New(serve.Config{Listen: "127.0.0.1:0"}, slog.New(slog.DiscardHandler), rpc)
	if err == nil {
		err = server.Listen()
	}
	if err != nil {
		t.Fatal(err)
	}
	life, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- server.Run(life) }()
	dialer := dial.New(nil)
	for name, dialled := range map[string]func(string) (*connect.Client, error){"connect": dialer.Streams, "grpc": dialer.GRPC} {
		client, err := dialled(server.Address())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		stream, err := serverlessconnect.NewExecutionServiceClient(client).RequestExecution(ctx)
		if err != nil {
			t.Fatal(err)
		}
		stream.Send(&serverless.WorkerExecutionRequest{RequestId: "r"})
		if _, err := stream.Receive(); err != nil {
			t.Fatal(err)
		}
		cancel()
		if _, err := stream.Receive(); err == nil {
			t.Errorf("%s: a cancelled stream goes on", name)
		}
		if err := <-worker.ended; err == nil || connect.CodeOf(err) != connect.CodeCanceled {
			t.Errorf("%s: the server heard %v", name, err)
		}
		stream.Close()
	}
	dialer.Close()
	stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
}
