package e2e

import (
	"net"
	"sync"
	"testing"
	"time"
)

// proxy stands on a connection's way, and cuts or delays it.
type proxy struct {
	listener net.Listener
	target   string
	mu       sync.Mutex // guards what follows
	cut      bool
	delay    time.Duration
	conns    map[net.Conn]bool
}

// through starts a proxy in front of target, "host:port".
func through(t *testing.T, target string) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: listener, target: target, conns: map[net.Conn]bool{}}
	var pipes sync.WaitGroup
	pipes.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			pipes.Go(func() { p.carry(conn) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		p.set(true, 0)
		pipes.Wait()
	})
	return p
}

func (p *proxy) address() string { return p.listener.Addr().String() }

// set changes what happens from now on; a cut ends what is open.
func (p *proxy) set(cut bool, delay time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut, p.delay = cut, delay
	if cut {
		for conn := range p.conns {
			conn.Close()
		}
	}
}

func (p *proxy) admit(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range conns {
		p.conns[conn] = true
	}
	return !p.cut
}

func (p *proxy) carry(from net.Conn) {
	defer from.Close()
	to, err := net.DialTimeout("tcp", p.target, time.Second)
	if err != nil {
		return
	}
	defer to.Close()
	if !p.admit(from, to) {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { p.copy(to, from) })
	both.Go(func() { p.copy(from, to) })
	both.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, from)
	delete(p.conns, to)
}

func (p *proxy) copy(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		p.mu.Lock()
		delay := p.delay
		p.mu.Unlock()
		time.Sleep(delay) // the delay is what this proxy is for
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}
