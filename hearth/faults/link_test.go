package faults

import (
	"context"
	"sync"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connectinprocess"
)

// process is one place where a server lives, one life after the other.
type process struct {
	name string
	mu   sync.Mutex // guards what follows
	// server is nil while the process is dead.
	server *connect.Server
	life   int
	// end cancels everything that goes in or out of this life.
	end   context.CancelFunc
	ended context.Context
	// frozen is not nil while the process is stopped; closed when it goes on.
	frozen chan struct{}
}

// begin starts a life, which nobody can reach before open.
func (p *process) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.life++
	p.ended, p.end = context.WithCancel(context.Background())
}

// open lets others reach the life.
func (p *process) open(server *connect.Server) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.server = server
}

// kill ends a life as the network sees it: at once, in the middle of everything.
func (p *process) kill() {
	p.thaw()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.server = nil
	if p.end != nil {
		p.end()
	}
}

func (p *process) freeze() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.frozen == nil && p.server != nil {
		p.frozen = make(chan struct{})
	}
}

func (p *process) thaw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.frozen != nil {
		close(p.frozen)
		p.frozen = nil
	}
}

// now returns the present life.
func (p *process) now() (*connect.Server, context.Context, chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.server, p.ended, p.frozen
}

// await returns once the process is not frozen.
func (p *process) await(ctx context.Context) error {
	for {
		_, _, frozen := p.now()
		if frozen == nil {
			return nil
		}
		select {
		case <-frozen:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// link is the way from one process to another. It is a connect.Transport.
type link struct {
	from, to *process
	// owner is the life of from that uses the link: calls of an earlier one fail.
	owner context.Context
	net   *network
}

// network is what may happen to every link.
type network struct {
	mu sync.Mutex // guards what follows
	// cut links lose everything; lossy ones lose some answers after the call was
	// served.
	cut   map[string]bool
	lossy map[string]bool
	draw  func(n int) int
	// plant is the bug that this world has on purpose; see plants_test.go.
	plant   *plant
	witness *witness
	live    map[*stream]string
}

func (n *network) is(set map[string]bool, name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return set[name]
}

// sever cuts a link and everything that is under way on it.
func (n *network) sever(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cut[name] = true
	for s, on := range n.live {
		if on == name {
			s.cancel()
		}
	}
}

func (n *network) set(set map[string]bool, name string, on bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	set[name] = on
}

func (n *network) heal() {
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.cut)
	clear(n.lossy)
}

func (l *link) name() string { return l.from.name + ">" + l.to.name }

var errCut = connect.NewError(connect.CodeUnavailable, "connection refused")

// NewClientStream implements connect.Transport.
func (l *link) NewClientStream(ctx context.Context, spec connect.Spec) (connect.ClientStream, error) {
	if err := l.from.await(ctx); err != nil {
		return nil, err
	}
	server, ended, _ := l.to.now()
	if server == nil || l.owner.Err() != nil || l.net.is(l.net.cut, l.name()) {
		return nil, errCut
	}
	ctx, cancel := context.WithCancel(ctx)
	inner, err := connectinprocess.New(server).NewClientStream(ctx, spec)
	if err != nil {
		cancel()
		return nil, err
	}
	s := &stream{link: l, inner: inner, ctx: ctx, cancel: cancel, spec: spec, own: l.owner, their: ended}
	s.stops = []func() bool{context.AfterFunc(l.owner, cancel), context.AfterFunc(ended, cancel)}
	l.net.mu.Lock()
	l.net.live[s] = l.name()
	l.net.mu.Unlock()
	return s, nil
}

// stream is a call under way on a link.
type stream struct {
	link       *link
	inner      connect.ClientStream
	ctx        context.Context
	cancel     context.CancelFunc
	spec       connect.Spec
	own, their context.Context
	stops      []func() bool
}

func (s *stream) SendHeaders() error { return s.inner.SendHeaders() }

func (s *stream) CloseSend() error { return s.inner.CloseSend() }

func (s *stream) Send(msg any) error {
	if err := s.link.to.await(s.ctx); err != nil {
		return err
	}
	if s.broken() {
		return errCut
	}
	return s.inner.Send(msg)
}

func (s *stream) Receive(msg any) error {
	err := s.receive(msg)
	if err != nil && s.spec.StreamType != connect.StreamTypeUnary {
		_ = s.Close() // its reader is told of the end, and may not close it
	}
	return err
}

func (s *stream) receive(msg any) error {
	err := s.inner.Receive(msg)
	if frozen := s.link.to.await(s.ctx); frozen != nil && err == nil {
		err = frozen
	}
	if frozen := s.link.from.await(s.ctx); frozen != nil && err == nil {
		err = frozen
	}
	if s.broken() {
		return errCut
	}
	if err == nil && s.spec.StreamType == connect.StreamTypeUnary && s.link.net.is(s.link.net.lossy, s.link.name()) && s.link.net.draw(3) == 0 {
		return errCut // it was served, and nobody is told
	}
	return err
}

// broken says that one of the two ends has died or the way between is cut.
func (s *stream) broken() bool {
	return s.own.Err() != nil || s.their.Err() != nil || s.link.net.is(s.link.net.cut, s.link.name())
}

func (s *stream) Close() error {
	for _, stop := range s.stops {
		stop()
	}
	s.link.net.mu.Lock()
	delete(s.link.net.live, s)
	s.link.net.mu.Unlock()
	err := s.inner.Close()
	s.cancel()
	return err
}

// client returns a client over the link, with the planted bug between the two.
func (l *link) client() *connect.Client {
	if p := l.net.plant; p != nil {
		return connect.NewClient(l, p.on(l))
	}
	return connect.NewClient(l)
}
