package violator

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"
)

// Server serves a fake on a port of its own, over HTTP/1.1 and h2c.
type Server struct {
	fake     *Runtime
	http     *http.Server
	listener net.Listener
	served   sync.WaitGroup

	mu    sync.Mutex // guards conns
	conns map[net.Conn]bool
}

// Serve starts a fake. Close ends it.
func Serve(cfg Settings) (*Server, error) {
	s := &Server{fake: New(cfg), conns: map[net.Conn]bool{}}
	rpc := connect.NewServer()
	s.fake.Register(rpc)
	mux := http.NewServeMux()
	connecthttp.Mount(mux, rpc, connecthttp.WithReadMaxBytes(s.fake.MaxMessage()))
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	s.http = &http.Server{
		Handler:           s.counted(mux),
		Protocols:         protocols,
		ReadHeaderTimeout: 10 * time.Second,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: 2000},
		ConnState:         s.track,
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s.listener = listener
	s.served.Go(func() { _ = s.http.Serve(listener) })
	return s, nil
}

// counted serves only while the fake lives, and lets Close wait for it.
func (s *Server) counted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.fake.begin() {
			http.Error(w, errClosed.Error(), http.StatusServiceUnavailable)
			return
		}
		defer s.fake.work.Done()
		next.ServeHTTP(w, r)
	})
}

// URL is where the fake listens.
func (s *Server) URL() string { return "http://" + s.listener.Addr().String() }

// Processes is the fake's table of processes.
func (s *Server) Processes(token string) ([]int, error) { return s.fake.Processes(token) }

func (s *Server) track(conn net.Conn, state http.ConnState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if state == http.StateClosed || state == http.StateHijacked {
		delete(s.conns, conn)
		return
	}
	s.conns[conn] = true
}

// Restart plays a kill and a start: state and connections are lost.
func (s *Server) Restart(context.Context) error {
	if s.fake.Crash() {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for conn := range s.conns {
		errs = append(errs, conn.Close())
	}
	return errors.Join(errs...)
}

// Close ends the fake and everything in it.
func (s *Server) Close() error {
	err := s.http.Close()
	s.served.Wait()
	s.fake.Close()
	return err
}
