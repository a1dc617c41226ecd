// Package dial owns the one way in which a Hearth service is called. An address
// is an http or https URL, "host:port", "unix:PATH", or "inprocess:NAME" for a
// dispatcher in the same process.
//
// Client is for unary calls and server streams, over HTTP/1.1 keep-alive, which
// has the lowest latency; Streams is for two-way streams, over h2c or TLS.
// Deadlines travel with the call in both.
package dial

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"
	"connectrpc.com/connect/v2/connectinprocess"
)

// Dialer makes clients and owns their connections. Safe for concurrent use.
type Dialer struct {
	tls       *tls.Config
	mu        sync.Mutex // guards the maps
	inprocess map[string]*connect.Server
	http      map[key]*http.Client
}

// dialTimeout is how long a connection may take to come about.
const dialTimeout = 5 * time.Second

type key struct {
	address string
	h2      bool
}

// New returns a dialer; tls configures https addresses and may be nil.
func New(tls *tls.Config) *Dialer {
	return &Dialer{tls: tls, inprocess: map[string]*connect.Server{}, http: map[key]*http.Client{}}
}

// Add names a dispatcher of this process, so that "inprocess:NAME" reaches it.
func (d *Dialer) Add(name string, server *connect.Server) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.inprocess[name] = server
}

// Client returns a client for unary calls and server streams.
func (d *Dialer) Client(address string) (*connect.Client, error) {
	return d.client(address, false)
}

// Streams returns a client for two-way streams.
func (d *Dialer) Streams(address string) (*connect.Client, error) {
	return d.client(address, true)
}

// GRPC returns a client for any call that speaks gRPC over h2c or TLS, for peers
// that may not be Hearth's.
func (d *Dialer) GRPC(address string) (*connect.Client, error) {
	return d.client(address, true, connecthttp.WithGRPC())
}

func (d *Dialer) client(address string, h2 bool, options ...connecthttp.Option) (*connect.Client, error) {
	if name, ok := strings.CutPrefix(address, "inprocess:"); ok {
		d.mu.Lock()
		defer d.mu.Unlock()
		server, there := d.inprocess[name]
		if !there {
			return nil, fmt.Errorf("dial %s: no such service in this process", address)
		}
		return connect.NewClient(connectinprocess.New(server)), nil
	}
	client, base, err := d.HTTP(address, h2)
	if err != nil {
		return nil, err
	}
	// Messages may be larger than their payload bound by their envelope.
	options = append(options, connecthttp.WithReadMaxBytes(16<<20), connecthttp.WithCompressors())
	return connect.NewClient(connecthttp.NewTransport(client, base, options...)), nil
}

// HTTP returns the HTTP client behind an address and the base URL to use with it.
func (d *Dialer) HTTP(address string, h2 bool) (*http.Client, string, error) {
	base, socket, err := split(address)
	if err != nil {
		return nil, "", err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	k := key{address, h2}
	if d.http[k] == nil {
		d.http[k] = &http.Client{Transport: roundTripper(cancelling{d.transport(socket, h2)}, socket, h2)}
	}
	return d.http[k], base, nil
}

// roundTripper lets small calls over a unix socket go the direct way.
func roundTripper(t cancelling, socket string, h2 bool) http.RoundTripper {
	if socket == "" || h2 {
		return t
	}
	return &direct{cancelling: t, socket: socket, dialer: net.Dialer{Timeout: dialTimeout}}
}

// split returns the base URL of an address, and the socket's path if it is one.
func split(address string) (base, socket string, err error) {
	switch {
	case strings.HasPrefix(address, "unix:"):
		return "http://localhost", strings.TrimPrefix(address, "unix:"), nil
	case strings.HasPrefix(address, "http://"), strings.HasPrefix(address, "https://"):
		return strings.TrimSuffix(address, "/"), "", nil
	}
	if _, _, err := net.SplitHostPort(address); err != nil {
		return "", "", fmt.Errorf("address %q: want http://HOST:PORT, https://HOST:PORT, HOST:PORT, unix:PATH or inprocess:NAME", address)
	}
	return "http://" + address, "", nil
}

func (d *Dialer) transport(socket string, h2 bool) *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(!h2)
	protocols.SetHTTP2(h2)
	protocols.SetUnencryptedHTTP2(h2)
	t := &http.Transport{
		Protocols:           protocols,
		TLSClientConfig:     d.tls,
		MaxIdleConnsPerHost: 256,
		IdleConnTimeout:     90 * time.Second,
		DisableCompression:  true,
		HTTP2:               &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 5 * time.Second},
	}
	dialer := &net.Dialer{Timeout: dialTimeout}
	t.DialContext = dialer.DialContext
	if socket != "" {
		t.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "unix", socket)
		}
	}
	return t
}

// Forget closes the idle connections to an address that will not be used again.
func (d *Dialer) Forget(address string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, h2 := range []bool{false, true} {
		if c := d.http[key{address, h2}]; c != nil {
			c.CloseIdleConnections()
			delete(d.http, key{address, h2})
		}
	}
}

// Close closes every idle connection. Calls under way go on.
func (d *Dialer) Close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.http {
		c.CloseIdleConnections()
	}
}
