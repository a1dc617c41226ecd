// Package serve owns the one way in which a Hearth service is served: a listener
// that speaks HTTP/1.1, h2c and, given a certificate, TLS; Connect, gRPC and
// gRPC-Web on it; reflection, health, readiness; and a drain of bounded length.
package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"
	"connectrpc.com/grpchealth"
	"connectrpc.com/grpcreflect/v2"
)

// Config says where and how to serve.
type Config struct {
	// Listen is "host:port" or "unix:PATH".
	Listen string
	// TLSCert and TLSKey are PEM files; both or none.
	TLSCert, TLSKey string
	// Drain is how long calls may go on after the stop; 0 is 4 s.
	Drain time.Duration
	// MaxMessage is the largest message to read, in bytes; 0 is 4 MiB.
	MaxMessage int
	// Ready says why the service cannot take work yet, nil if it can. Nil: always.
	Ready func() error
	// Wrap goes around every route, procedures included (CORS). Nil: nothing.
	Wrap func(http.Handler) http.Handler
}

// Server serves one dispatcher on one listener.
type Server struct {
	cfg      Config
	log      *slog.Logger
	mux      *http.ServeMux
	http     *http.Server
	listener net.Listener
	draining chan struct{}
	// base is what the contexts of all calls are made of; cut ends them, when the
	// time of the drain is over.
	base context.Context
	cut  context.CancelCauseFunc
}

// lastWords is the time that calls have to tell their callers that they were cut
// off, before their connections are.
const lastWords = 200 * time.Millisecond

// New mounts the dispatcher, reflection, health and readiness, and starts
// nothing. Register every service on rpc before.
func New(cfg Config, log *slog.Logger, rpc *connect.Server) (*Server, error) {
	if (cfg.TLSCert == "") != (cfg.TLSKey == "") {
		return nil, errors.New("serve: a TLS certificate and its key go together: set both or none")
	}
	if cfg.Drain == 0 {
		cfg.Drain = 4 * time.Second
	}
	if cfg.MaxMessage == 0 {
		cfg.MaxMessage = 4 << 20
	}
	if cfg.Ready == nil {
		cfg.Ready = func() error { return nil }
	}
	s := &Server{cfg: cfg, log: log, mux: http.NewServeMux(), draining: make(chan struct{})}
	s.base, s.cut = context.WithCancelCause(context.WithValue(context.Background(), drainKey{}, (<-chan struct{})(s.draining)))
	s.mount(rpc)
	var root http.Handler = s.mux
	if cfg.Wrap != nil {
		root = cfg.Wrap(root)
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	s.http = &http.Server{
		Handler:           root,
		Protocols:         protocols,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: 1000,
			// A handler that does not read its stream holds the stream's window, and with
			// it that part of the connection's: by default all of it, so that every other
			// stream of the connection would stand still. 4 MiB is net/http's most.
			MaxReceiveBufferPerStream:     256 << 10,
			MaxReceiveBufferPerConnection: 4<<20 - 1,
		},
		ErrorLog:    slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		BaseContext: func(net.Listener) context.Context { return s.base },
	}
	return s, nil
}

func (s *Server) mount(rpc *connect.Server) {
	var names []string
	for spec := range rpc.Specs() {
		name, _, _ := strings.Cut(strings.TrimPrefix(spec.Procedure, "/"), "/")
		if len(names) == 0 || names[len(names)-1] != name {
			names = append(names, name)
		}
	}
	checker := &health{ready: s.ready, services: names}
	connecthttp.Mount(s.mux, rpc, connecthttp.WithReadMaxBytes(s.cfg.MaxMessage))
	// Reflection has a dispatcher of its own: its bidi streams pass none of the
	// service's interceptors, and rpc stays as its owner registered it.
	reflection := connect.NewServer()
	grpcreflect.Register(reflection, grpcreflect.WithNamer(grpcreflect.NamerFunc(func() []string {
		return append([]string{grpchealth.HealthV1ServiceName}, names...)
	})))
	connecthttp.Mount(s.mux, reflection)
	s.mux.Handle(grpchealth.NewHandler(checker))
	s.mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	s.mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := s.ready(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ready")
	})
}

func (s *Server) ready() error {
	select {
	case <-s.draining:
		return ErrDraining
	default:
		return s.cfg.Ready()
	}
}

// Handle adds a plain HTTP route beside the procedures; before Run.
func (s *Server) Handle(pattern string, handler http.Handler) { s.mux.Handle(pattern, handler) }

// Listen binds the address, so that Address can be read before Run. A socket
// file that nobody listens on any more is replaced.
func (s *Server) Listen() error {
	network, address := "tcp", s.cfg.Listen
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		network, address = "unix", path
		if err := clearSocket(path); err != nil {
			return err
		}
	}
	listener, err := net.Listen(network, address)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", s.cfg.Listen, err)
	}
	if network == "unix" {
		// The socket is the only lock on this door: our user alone.
		if err := os.Chmod(address, 0o600); err != nil {
			return errors.Join(err, listener.Close())
		}
	}
	s.listener = listener
	return nil
}

// clearSocket removes a socket file that no process answers on.
func clearSocket(path string) error {
	conn, err := net.DialTimeout("unix", path, time.Second)
	if err == nil {
		return errors.Join(fmt.Errorf("listen on unix:%s: another process serves it", path), conn.Close())
	}
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode()&fs.ModeSocket == 0:
		return fmt.Errorf("listen on unix:%s: the path is there and is no socket", path)
	}
	return os.Remove(path)
}

// Address returns where the server listens, as dial takes it: an http or https
// URL, or "unix:PATH". Empty before Listen.
func (s *Server) Address() string {
	switch {
	case s.listener == nil:
		return ""
	case s.listener.Addr().Network() == "unix":
		return "unix:" + s.listener.Addr().String()
	case s.cfg.TLSCert != "":
		return "https://" + s.listener.Addr().String()
	default:
		return "http://" + s.listener.Addr().String()
	}
}

// Run serves until ctx is done, then drains: no new connection, watches ended at
// once, calls given Config.Drain; the rest is told that it is cut off, and is.
func (s *Server) Run(ctx context.Context) error {
	if s.listener == nil {
		if err := s.Listen(); err != nil {
			return err
		}
	}
	served := make(chan error, 1)
	go func() { served <- s.serve() }()
	select {
	case err := <-served:
		return fmt.Errorf("serve %s: %w", s.Address(), err)
	case <-ctx.Done():
	}
	close(s.draining)
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.Drain)
	defer cancel()
	err := s.http.Shutdown(drain)
	if err != nil {
		s.log.Warn("drain cut short", "address", s.Address(), "after", s.cfg.Drain)
		err = s.cutOff()
	}
	s.cut(nil)
	if stopped := <-served; !errors.Is(stopped, http.ErrServerClosed) {
		err = errors.Join(err, stopped)
	}
	return err
}

// cutOff ends what is still served.
func (s *Server) cutOff() error {
	s.cut(ErrDraining)
	ctx, cancel := context.WithTimeout(context.Background(), lastWords)
	defer cancel()
	if s.http.Shutdown(ctx) == nil {
		return nil
	}
	return s.http.Close()
}

func (s *Server) serve() error {
	if s.cfg.TLSCert == "" {
		return s.http.Serve(s.listener)
	}
	s.http.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	return s.http.ServeTLS(s.listener, s.cfg.TLSCert, s.cfg.TLSKey)
}
