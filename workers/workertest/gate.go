package workertest

import (
	"net"
	"sync"
)

// gate keeps one address for a server that stops and starts again: nobody else is given it meanwhile. Whoever comes while the
// server is down has its connection reset.
type gate struct {
	net.Listener

	mu   sync.Mutex
	open *passage // nil: down
}

// passage is the listener of one life of the server.
type passage struct {
	conns chan net.Conn
	ended chan struct{}
	end   func()
	addr  net.Addr
}

func newGate() (*gate, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	g := &gate{Listener: listener}
	go g.admit()
	return g, nil
}

// pass opens the gate until what it returns is closed.
func (g *gate) pass() net.Listener {
	p := &passage{conns: make(chan net.Conn), ended: make(chan struct{}), addr: g.Addr()}
	p.end = sync.OnceFunc(func() { close(p.ended) })
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open = p
	return p
}

func (g *gate) admit() {
	for {
		conn, err := g.Listener.Accept()
		if err != nil {
			return
		}
		g.mu.Lock()
		p := g.open
		g.mu.Unlock()
		if p == nil {
			reset(conn)
			continue
		}
		select {
		case p.conns <- conn:
		case <-p.ended:
			reset(conn)
		}
	}
}

func reset(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

func (p *passage) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.ended:
		return nil, net.ErrClosed
	}
}

func (p *passage) Close() error {
	p.end()
	return nil
}

func (p *passage) Addr() net.Addr { return p.addr }
