package dial

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// peer is an HTTP server on a unix socket that counts its connections.
type peer struct {
	*http.Server
	conns atomic.Int64
	ended chan struct{}
}

func listen(t *testing.T, socket string, handler http.HandlerFunc) *peer {
	t.Helper()
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	p := &peer{Server: &http.Server{Handler: handler}, ended: make(chan struct{})}
	p.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			p.conns.Add(1)
		}
	}
	go func() {
		defer close(p.ended)
		_ = p.Serve(l) // until it is closed
	}()
	t.Cleanup(p.end)
	return p
}

func (p *peer) end() {
	_ = p.Close()
	<-p.ended
}

func echo(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
	}
	_, _ = w.Write(body)
}

// post makes a unary call through the client of a socket.
func post(ctx context.Context, client *http.Client, base string, body []byte) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/", bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/proto")
	res, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	return fmt.Sprintf("%d %s", res.StatusCode, got), err
}

func reach(t *testing.T, socket string) (*http.Client, string) {
	t.Helper()
	d := New(nil)
	t.Cleanup(d.Close)
	client, base, err := d.HTTP("unix:"+socket, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := client.Transport.(*direct); !ok {
		t.Fatalf("small calls go by %T", client.Transport)
	}
	return client, base
}

func TestDirectReusesAConnection(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	p := listen(t, socket, echo)
	client, base := reach(t, socket)
	for i := range 20 {
		want := strings.Repeat("x", i)
		if got, err := post(t.Context(), client, base, []byte(want)); err != nil || got != "200 "+want {
			t.Fatalf("%q, %v", got, err)
		}
	}
	if n := p.conns.Load(); n != 1 {
		t.Errorf("%d connections for calls one after the other", n)
	}
	big := bytes.Repeat([]byte("y"), 1<<20) // by the transport
	if got, err := post(t.Context(), client, base, big); err != nil || len(got) != 4+len(big) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

func TestDirectManyCallersGetTheirOwn(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	p := listen(t, socket, echo)
	client, base := reach(t, socket)
	var callers sync.WaitGroup
	for c := range 32 {
		callers.Go(func() {
			for i := range 50 {
				want := fmt.Sprintf("%d.%d %s", c, i, strings.Repeat("z", 40*i))
				if got, err := post(t.Context(), client, base, []byte(want)); err != nil || got != "200 "+want {
					t.Errorf("%.40q, %v, want %.40q", got, err, want)
					return
				}
			}
		})
	}
	callers.Wait()
	if n := p.conns.Load(); n > 32 {
		t.Errorf("%d connections for 32 callers", n)
	}
}

// A call that is cut off ends at once, and what its peer still says reaches nobody.
func TestDirectCancel(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	entered, left := make(chan struct{}), make(chan struct{})
	listen(t, socket, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch string(body) {
		case "hang":
			close(entered)
			<-r.Context().Done() // the peer hears of it
			close(left)
		case "half":
			w.Header().Set("Content-Length", "10")
			_, _ = w.Write([]byte("12345"))
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		default:
			_, _ = w.Write(body)
		}
	})
	client, base := reach(t, socket)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-entered; cancel() }()
	if _, err := post(ctx, client, base, []byte("hang")); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	<-left
	short, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	if got, err := post(short, client, base, []byte("half")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := post(ctx, client, base, []byte("late")); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that is done: %v", err)
	}
	if got, err := post(t.Context(), client, base, []byte("next")); err != nil || got != "200 next" {
		t.Errorf("%q, %v", got, err)
	}
}

// A peer that has closed an idle connection, or ended and come back, costs no call.
func TestDirectPeerComesBack(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	client, base := reach(t, socket)
	if _, err := post(t.Context(), client, base, nil); err == nil {
		t.Error("nobody listens, and somebody answered")
	}
	for life := range 3 {
		p := listen(t, socket, echo)
		for range 2 {
			if got, err := post(t.Context(), client, base, []byte("x")); err != nil || got != "200 x" {
				t.Errorf("life %d: %q, %v", life, got, err)
			}
		}
		p.end()
	}
}

// A peer may answer without having read, may close after its answer, and may end
// inside of it.
func TestDirectOddAnswers(t *testing.T) {
	for name, tc := range map[string]struct {
		raw, want string
		fails     bool
	}{
		"early and closed": {"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno", "413 no", false},
		"continue first":   {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "200 ok", false},
		"chunked":          {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", "200 abc", false},
		"until the end":    {"HTTP/1.0 200 OK\r\n\r\nall", "200 all", false},
		"cut in the head":  {"HTTP/1.1 200 OK\r\nContent-Le", "", true},
		"cut in the body":  {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", "", true},
		"nothing":          {"", "", true},
		"more than asked":  {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n", "200 ok", false},
	} {
		t.Run(name, func(t *testing.T) {
			socket := filepath.Join(t.TempDir(), "s")
			l, err := net.Listen("unix", socket)
			if err != nil {
				t.Fatal(err)
			}
			var served sync.WaitGroup
			served.Go(func() {
				for {
					conn, err := l.Accept()
					if err != nil {
						return
					}
					if name != "early and closed" {
						if req, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
							_, _ = io.Copy(io.Discard, req.Body)
						}
					}
					_, _ = io.WriteString(conn, tc.raw)
					_ = conn.Close()
				}
			})
			client, base := reach(t, socket)
			for range 2 { // the second call finds a connection that is of no use
				got, err := post(t.Context(), client, base, []byte(strings.Repeat("b", 1000)))
				if (err != nil) != tc.fails || err == nil && got != tc.want {
					t.Errorf("%q, %v", got, err)
				}
			}
			_ = l.Close()
			served.Wait()
		})
	}
}
