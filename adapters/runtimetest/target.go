package runtimetest

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"runtime"
	"strings"
	"time"
)

// Protocol is how the suite talks to the target.
type Protocol string

// The protocols of the contract: Connect over HTTP/1.1, gRPC over h2c or TLS.
const (
	Connect Protocol = "connect"
	GRPC    Protocol = "grpc"
)

// Target is the Runtime Server under test.
type Target struct {
	// URL is http://HOST:PORT, https://HOST:PORT or unix:PATH.
	URL string
	// Protocols to run over, each a whole run; empty: both.
	Protocols []Protocol
	// Workspace is an absolute folder that the suite can write and the target can
	// read and write under the same path. The suite makes and removes its own
	// folders in it.
	Workspace string
	// Fixtures are the functions to register. Required.
	Fixtures *Fixtures
	// Processes returns the pids of living processes with token as one of their
	// arguments. Nil: taken from /proc where the target is on this machine.
	Processes func(token string) ([]int, error)
	// Restart kills the target with no warning and starts it again at the same
	// URL. Nil: the cases about a crash are skipped.
	Restart func(context.Context) error
	// Times are the target's own settings; zero fields are the contract's.
	Times Times
}

// Times are the limits that a target may have been told to change.
type Times struct {
	// Load ends a registration that does not finish; 60 s.
	Load time.Duration
	// Invoke is what timeout_millis 0 means; 30 s.
	Invoke time.Duration
	// Drain is what drain_timeout_millis 0 means; 30 s.
	Drain time.Duration
	// Patience is the longest of these that the suite waits for; cases that would
	// take longer are skipped. 5 s.
	Patience time.Duration
}

func (t *Target) prepare() error {
	switch {
	case t.URL == "":
		return fmt.Errorf("target: the URL is empty: use http://HOST:PORT or unix:PATH")
	case t.Fixtures == nil:
		return fmt.Errorf("target: no fixtures: use Builtin or Load")
	case !strings.HasPrefix(t.Workspace, "/"):
		return fmt.Errorf("target: workspace %q is not absolute: name a folder that the target can see under the same path", t.Workspace)
	}
	if len(t.Protocols) == 0 {
		t.Protocols = []Protocol{Connect, GRPC}
	}
	for _, p := range t.Protocols {
		if p != Connect && p != GRPC {
			return fmt.Errorf("target: unknown protocol %q: use connect or grpc", p)
		}
	}
	t.Times = t.Times.filled()
	if t.Processes == nil && runtime.GOOS == "linux" && local(t.URL) {
		t.Processes = scan
	}
	return nil
}

func (t Times) filled() Times {
	for _, f := range []struct {
		field *time.Duration
		value time.Duration
	}{{&t.Load, time.Minute}, {&t.Invoke, 30 * time.Second}, {&t.Drain, 30 * time.Second}, {&t.Patience, 5 * time.Second}} {
		if *f.field == 0 {
			*f.field = f.value
		}
	}
	return t
}

// impatient returns why a wait is not worth it, or "".
func (t *Target) impatient(what string, takes time.Duration) string {
	if takes <= t.Times.Patience {
		return ""
	}
	return fmt.Sprintf("%s is ended after %v, the patience is %v", what, takes, t.Times.Patience)
}

// local says whether an address is on this machine.
func local(address string) bool {
	if strings.HasPrefix(address, "unix:") {
		return true
	}
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || (ip != nil && ip.IsLoopback())
}
