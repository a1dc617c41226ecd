package upstream_test

import (
	"errors"
	"io"
	"net"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	executorv1 "github.com/hearth-run/hearth/gen/executor/v1"
	"github.com/hearth-run/hearth/gen/executor/v1/executorv1connect"
	"github.com/hearth-run/hearth/internal/kit/dial"
	"github.com/hearth-run/hearth/services/runtimed/internal/clock"
	"github.com/hearth-run/hearth/services/runtimed/internal/upstream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start asks the Runtime Server of an address for an execution.
func start(t *testing.T, address string) error {
	t.Helper()
	dialer := dial.New(nil)
	defer dialer.Close()
	client, err := dialer.Client(address)
	if err != nil {
		t.Fatal(err)
	}
	s := &upstream.Server{
		Runtime: executorv1connect.NewRuntimeClient(client), Clock: clock.Boot, Patience: 100 * time.Millisecond, Call: 10 * time.Second,
	}
	return s.Start(t.Context(), &executorv1.ExecuteRequest{Id: "run.1.node", Args: []string{"true"}})
}

// A Runtime Server that dies while it is asked for an execution is not asked again.
func TestStartIsNotRepeated(t *testing.T) {
	for _, where := range []string{"tcp", "unix"} {
		t.Run(where, func(t *testing.T) {
			address := "127.0.0.1:0"
			if where == "unix" {
				address = filepath.Join(t.TempDir(), "s")
			}
			listener, err := net.Listen(where, address)
			if err != nil {
				t.Fatal(err)
			}
			asked := make(chan int)
			go func() {
				n := 0
				defer func() { asked <- n }()
				for {
					conn, err := listener.Accept()
					if err != nil {
						return
					}
					if read, _ := io.ReadAtLeast(conn, make([]byte, 4096), 1); read > 0 {
						n++
					}
					conn.Close()
				}
			}()
			address = listener.Addr().String()
			if where == "unix" {
				address = "unix:" + address
			}
			if err := start(t, address); err != nil {
				t.Errorf("whether it was heard is not known: %v", err)
			}
			listener.Close()
			if n := <-asked; n != 1 {
				t.Errorf("asked %d times", n)
			}
			// Now nobody listens: that it was not heard is certain.
			var failure *upstream.Failure
			if err := start(t, address); !errors.As(err, &failure) || failure.Reason != "RUNTIME_UNAVAILABLE" {
				t.Errorf("nobody there: %v", err)
			}
		})
	}
}
