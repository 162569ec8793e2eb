package loop

import (
	"bytes"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// proxy stands between a loop and PostgreSQL. It passes everything on until it is told to cut.
type proxy struct {
	t      *testing.T
	listen net.Listener
	server func() (net.Conn, error)

	mu    sync.Mutex
	conns map[net.Conn]struct{}
	// cut is what the next COMMIT on the wire meets, once.
	cut func(toServer func(), answered <-chan struct{})
	// dead refuses and drops everything.
	dead bool
}

// proxied starts a proxy in front of the database of dsn and gives the DSN through it.
func proxied(t *testing.T, dsn string) (*proxy, string) {
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	network, address := "tcp", u.Host
	if host := q.Get("host"); strings.HasPrefix(host, "/") {
		network, address = "unix", host+"/.s.PGSQL."+q.Get("port")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{t: t, listen: l, conns: map[net.Conn]struct{}{}, server: func() (net.Conn, error) { return net.Dial(network, address) }}
	go p.accept()
	t.Cleanup(func() { _ = l.Close(); p.die(true) })
	q.Del("host")
	q.Del("port")
	q.Set("sslmode", "disable")
	u.Host, u.RawQuery = l.Addr().String(), q.Encode()
	return p, u.String()
}

func (p *proxy) accept() {
	for {
		client, err := p.listen.Accept()
		if err != nil {
			return
		}
		server, err := p.server()
		p.mu.Lock()
		dead := p.dead
		if err == nil && !dead {
			p.conns[client], p.conns[server] = struct{}{}, struct{}{}
		}
		p.mu.Unlock()
		if err != nil || dead {
			_ = client.Close()
			if server != nil { // or the database would wait a minute for what it says first
				_ = server.Close()
			}
			continue
		}
		answered := make(chan struct{}, 1)
		hold := &sync.Mutex{} // held: what the server says does not reach the client
		go p.down(server, client, answered, hold)
		go p.up(client, server, answered, hold)
	}
}

// up carries what the client says. A COMMIT that meets a cut decides whether it still reaches the server.
func (p *proxy) up(client, server net.Conn, answered <-chan struct{}, hold *sync.Mutex) {
	defer p.drop(client, server)
	buffer := make([]byte, 1<<20)
	for {
		n, err := client.Read(buffer)
		if err != nil {
			return
		}
		if bytes.Contains(bytes.ToLower(buffer[:n]), []byte("commit\x00")) {
			p.mu.Lock()
			cut := p.cut
			p.cut = nil
			p.mu.Unlock()
			if cut != nil {
				hold.Lock()
				cut(func() {
					select {
					case <-answered: // of something earlier
					default:
					}
					_, _ = server.Write(buffer[:n])
				}, answered)
				return
			}
		}
		if _, err := server.Write(buffer[:n]); err != nil {
			return
		}
	}
}

func (p *proxy) down(server, client net.Conn, answered chan<- struct{}, hold *sync.Mutex) {
	defer p.drop(client, server)
	buffer := make([]byte, 1<<16)
	for {
		n, err := server.Read(buffer)
		if err != nil {
			return
		}
		if bytes.Contains(buffer[:n], []byte("COMMIT\x00")) {
			select {
			case answered <- struct{}{}:
			default:
			}
		}
		if !hold.TryLock() {
			_, _ = io.Copy(io.Discard, server) // cut: the client hears no more
			return
		}
		_, err = client.Write(buffer[:n])
		hold.Unlock()
		if err != nil {
			return
		}
	}
}

func (p *proxy) drop(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
		delete(p.conns, c)
	}
}

// cutNextCommit breaks the connection at the next COMMIT: after the server has done it, or before it hears of it.
func (p *proxy) cutNextCommit(happens bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = func(toServer func(), answered <-chan struct{}) {
		if happens {
			toServer()
			select {
			case <-answered:
			case <-time.After(patience):
				p.t.Error("a COMMIT got no answer")
			}
		}
	}
}

// die drops every connection and refuses new ones, or lets them through again.
func (p *proxy) die(dead bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dead = dead
	for c := range p.conns {
		_ = c.Close()
	}
	if dead {
		clear(p.conns)
	}
}
