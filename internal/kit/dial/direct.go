package dial

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Bounds of direct.
const (
	// directBody is the largest request that goes this way, in bytes: less than a
	// socket takes in without a reader, so that a peer who answers early and reads no
	// further holds nothing up.
	directBody = 64 << 10
	// directIdle is how many connections wait for the next call, and directRest how
	// long: less than servers of ours wait for it.
	directIdle = 256
	directRest = 30 * time.Second
)

// direct makes small unary calls over a unix socket on the goroutine of their
// caller: it writes the request and reads the response there, where http.Transport
// has a goroutine for each of the two, and changing goroutines costs more than the
// call. Everything else is left to the transport beside it.
type direct struct {
	cancelling
	socket string
	dialer net.Dialer

	mu   sync.Mutex // guards idle
	idle []*wire    // the last one was used last
}

// wire is one connection. It belongs to one call at a time.
type wire struct {
	conn  *net.UnixConn
	in    *bufio.Reader
	out   *bufio.Writer
	since time.Time // it is idle
}

// RoundTrip implements http.RoundTripper.
func (d *direct) RoundTrip(req *http.Request) (*http.Response, error) {
	if !unary(req) {
		return d.cancelling.RoundTrip(req)
	}
	ctx := req.Context()
	if ctx.Err() != nil {
		closeBody(req)
		return nil, ctx.Err()
	}
	w, err := d.take(ctx)
	if err != nil {
		closeBody(req)
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = w.conn.SetDeadline(time.Unix(1, 0)) }) // a closed one needs none
	res, err := w.exchange(req)
	if err != nil {
		stop()
		_ = w.conn.Close() // the call has failed already
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, err
	}
	res.Body = &answer{ReadCloser: res.Body, ctx: ctx, done: func(whole bool) {
		if stop() && whole && !res.Close {
			d.put(w)
			return
		}
		_ = w.conn.Close()
	}}
	return res, nil
}

// unary says whether a request is one small message that is answered by one.
func unary(req *http.Request) bool {
	kind := req.Header.Get("Content-Type")
	return req.Method == http.MethodPost && req.ContentLength >= 0 && req.ContentLength <= directBody &&
		(strings.HasPrefix(kind, "application/proto") || strings.HasPrefix(kind, "application/json")) && req.Header.Get("Expect") == ""
}

func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
}

// exchange writes the request and reads the answer, also that of a peer who did not
// want to hear all of it.
func (w *wire) exchange(req *http.Request) (*http.Response, error) {
	sent := req.Write(w.out)
	if sent == nil {
		sent = w.out.Flush()
	}
	if sent != nil && !errors.Is(sent, syscall.EPIPE) {
		return nil, sent
	}
	res, err := w.receive(req)
	if sent == nil {
		return res, err
	}
	if err != nil {
		return nil, sent
	}
	res.Close = true
	return res, nil
}

func (w *wire) receive(req *http.Request) (*http.Response, error) {
	for {
		res, err := http.ReadResponse(w.in, req)
		if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
			return nil, io.ErrUnexpectedEOF
		}
		// What goes before the answer is no answer.
		if err != nil || res.StatusCode >= 200 || res.StatusCode == http.StatusSwitchingProtocols {
			return res, err
		}
	}
}

// take returns an idle connection that its peer has not closed, or a new one.
func (d *direct) take(ctx context.Context) (*wire, error) {
	for {
		d.mu.Lock()
		n := len(d.idle)
		if n == 0 {
			d.mu.Unlock()
			break
		}
		w := d.idle[n-1]
		d.idle[n-1], d.idle = nil, d.idle[:n-1]
		d.mu.Unlock()
		if w.fresh() {
			return w, nil
		}
		_ = w.conn.Close()
	}
	conn, err := d.dialer.DialContext(ctx, "unix", d.socket)
	if err != nil {
		return nil, err
	}
	return &wire{conn: conn.(*net.UnixConn), in: bufio.NewReader(conn), out: bufio.NewWriter(conn)}, nil
}

// fresh says whether an idle connection can be used: it is open, and silent.
func (w *wire) fresh() bool {
	if time.Since(w.since) > directRest || w.in.Buffered() > 0 {
		return false
	}
	raw, err := w.conn.SyscallConn()
	if err != nil {
		return false
	}
	silent := false
	err = raw.Control(func(fd uintptr) {
		var one [1]byte
		_, _, e := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		silent = e == syscall.EAGAIN
	})
	return err == nil && silent
}

// put keeps a connection for the next call, and lets go of those that have waited
// for long.
func (d *direct) put(w *wire) {
	w.since = time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(d.idle) > 0 && (time.Since(d.idle[0].since) > directRest || len(d.idle) >= directIdle) {
		_ = d.idle[0].conn.Close()
		d.idle = append(d.idle[:0], d.idle[1:]...)
	}
	d.idle = append(d.idle, w)
}

// CloseIdleConnections closes what waits for the next call.
func (d *direct) CloseIdleConnections() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, w := range d.idle {
		_ = w.conn.Close()
	}
	d.idle = nil
	d.Transport.CloseIdleConnections()
}

// answer is the body of a response. Read to its end it gives the connection back.
type answer struct {
	io.ReadCloser
	ctx  context.Context
	done func(whole bool)
	over bool
}

func (a *answer) Read(p []byte) (int, error) {
	n, err := a.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) && a.ctx.Err() != nil {
		err = a.ctx.Err()
	}
	if err != nil {
		a.end(errors.Is(err, io.EOF))
	}
	return n, err
}

func (a *answer) Close() error {
	a.end(false)
	return nil
}

func (a *answer) end(whole bool) {
	if !a.over {
		a.over = true
		a.done(whole)
	}
}
