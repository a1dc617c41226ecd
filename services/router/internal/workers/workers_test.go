package workers_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect/v2"
	"go.uber.org/goleak"

	"github.com/hearth-run/hearth/gen/serverless"
	"github.com/hearth-run/hearth/internal/kit/dial"
	"github.com/hearth-run/hearth/internal/kit/serve"
	"github.com/hearth-run/hearth/services/router/internal/workers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var quiet = slog.New(slog.DiscardHandler)

// Probes against what may stand at a worker's address.
func TestCheck(t *testing.T) {
	var notReady error
	server, err := serve.New(serve.Config{Listen: "127.0.0.1:0", Ready: func() error { return notReady }}, quiet, connect.NewServer())
	if err == nil {
		err = server.Listen()
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- server.Run(ctx) }()
	bare := httptest.NewUnstartedServer(http.NotFoundHandler())
	bare.Config.Protocols = new(http.Protocols)
	bare.Config.Protocols.SetUnencryptedHTTP2(true)
	bare.Start()
	dialer := dial.New(nil)
	dialer.Add("here", connect.NewServer())
	d := workers.Dial(dialer)

	check := func(what, uri, want string) {
		t.Helper()
		err := d.Check(t.Context(), uri)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", what, err, want)
		}
	}
	check("serving", server.Address(), "")
	notReady = errors.New("draining")
	check("not serving", server.Address(), "not_serving")
	check("no health service", bare.URL, "")
	check("nobody", "http://127.0.0.1:1", "refused")
	check("no address", "nonsense", "want http")
	check("in this process", "inprocess:here", "")
	check("no longer in this process", "inprocess:gone", "no such service")

	if _, err := d.Client("nonsense"); err == nil {
		t.Error("no address made a client")
	}
	client, err := d.Client("http://127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	stream, err := client.RequestExecution(t.Context())
	if err == nil {
		stream.Send(&serverless.WorkerExecutionRequest{})
		_, err = stream.Receive()
	}
	if !workers.NotReached(err) || workers.Verdict(err) {
		t.Errorf("a call that reached nobody: %v", err)
	}
	d.Forget(server.Address())
	dialer.Close()
	bare.Close()
	stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

func TestVerdict(t *testing.T) {
	for _, tc := range []struct {
		err  error
		want bool
	}{
		{connect.NewError(connect.CodeNotFound, "").WithRemote(), true},
		{fmt.Errorf("in: %w", connect.NewError(connect.CodeUnknown, "").WithRemote()), true},
		{connect.NewError(connect.CodeCanceled, "").WithRemote(), false}, // nobody here cancelled
		{connect.NewError(connect.CodeUnavailable, "connection reset"), false},
		{errors.New("other"), false},
	} {
		if workers.Verdict(tc.err) != tc.want {
			t.Errorf("%v", tc.err)
		}
	}
}

// A thousand workers, every third of which is dead: exactly those are evicted,
// after the third round, and the others are not kept waiting.
func TestManyProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		targets, evicted := map[string]string{}, map[string]time.Duration{}
		for i := range 1000 {
			targets[fmt.Sprintf("w%d", i)] = fmt.Sprint(i % 3)
		}
		start := time.Now()
		p := workers.Prober{
			Check: func(ctx context.Context, uri string) error {
				if uri == "0" {
					<-ctx.Done()
					return ctx.Err()
				}
				return nil
			},
			Targets: func() map[string]string {
				mu.Lock()
				defer mu.Unlock()
				out := map[string]string{}
				for worker, uri := range targets {
					out[worker] = uri
				}
				return out
			},
			Evict: func(worker, uri, cause string) {
				mu.Lock()
				defer mu.Unlock()
				delete(targets, worker)
				evicted[worker] = time.Since(start)
			},
			Every: 5 * time.Second, Timeout: 2 * time.Second, Failures: 3, Log: quiet,
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- p.Run(ctx) }()
		time.Sleep(time.Minute)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if len(evicted) != 334 || len(targets) != 666 {
			t.Errorf("%d evicted, %d left", len(evicted), len(targets))
		}
		for worker, after := range evicted {
			if after < 15*time.Second || after > 25*time.Second {
				t.Errorf("%s was evicted after %v", worker, after)
			}
		}
	})
}
