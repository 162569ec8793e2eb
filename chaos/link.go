package chaos

import (
	"bytes"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// Mode is how a link fails.
type Mode int

// The modes. A black hole takes bytes and delivers none, without a word. Deaf delivers what is asked and loses every
// answer; Commits does so from the first COMMIT on, and breaks the connection a moment later.
const (
	Pass Mode = iota
	Refuse
	Reset
	BlackHole
	HalfClose
	Slow
	Deaf
	Commits
	CutAfter
	Hold // the first COMMIT and what follows it stand still until the mode changes
)

func (m Mode) String() string {
	return [...]string{"pass", "refuse", "reset", "black hole", "half-close", "slow", "deaf", "cut after COMMIT", "cut after 2 kB", "hold"}[m]
}

const (
	slowBy   = 300 * time.Millisecond
	cutAfter = 2000
)

// Link is a TCP proxy: the wire between two parties of a test.
type Link struct {
	listener net.Listener
	dial     func() (net.Conn, error)

	mu    sync.Mutex
	mode  Mode
	conns map[*wire]bool
	cut   int // connections broken by Commits or CutAfter
	held  chan struct{}
	loose chan struct{}
}

// wire is one connection through a link.
type wire struct {
	link     *Link
	near     net.Conn
	far      net.Conn
	deafened bool // under the link's mutex
	passed   int
}

func newLink(t testing.TB, dial func() (net.Conn, error)) *Link {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &Link{listener: listener, dial: dial, conns: map[*wire]bool{}, held: make(chan struct{}, 1), loose: make(chan struct{})}
	go l.accept()
	t.Cleanup(func() {
		l.Set(Pass)
		_ = listener.Close()
		l.Break()
	})
	return l
}

// Address is where the near side connects.
func (l *Link) Address() string { return l.listener.Addr().String() }

// URL is the address for HTTP.
func (l *Link) URL() string { return "http://" + l.Address() }

// Set changes how the link behaves from now on, for open connections too: Refuse and Reset break them, HalfClose ends
// their way there.
func (l *Link) Set(m Mode) {
	l.mu.Lock()
	if l.mode == Hold {
		close(l.loose)
		l.loose = make(chan struct{})
	}
	l.mode = m
	var open []*wire
	for w := range l.conns {
		open = append(open, w)
		if m == Pass {
			continue
		}
		w.passed = 0
	}
	l.mu.Unlock()
	switch m {
	case Refuse, Reset:
		l.Break()
	case HalfClose:
		for _, w := range open {
			closeWrite(w.far)
		}
	case Pass: // bytes of these were lost: nothing sensible comes through any more
		for _, w := range open {
			if w.isDeaf() {
				w.reset()
			}
		}
	}
}

// Held receives when a COMMIT stands still.
func (l *Link) Held() <-chan struct{} { return l.held }

// Break ends every open connection with a reset.
func (l *Link) Break() {
	l.mu.Lock()
	open := make([]*wire, 0, len(l.conns))
	for w := range l.conns {
		open = append(open, w)
	}
	l.mu.Unlock()
	for _, w := range open {
		w.reset()
	}
}

// Cut is how many connections Commits or CutAfter have broken.
func (l *Link) Cut() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cut
}

func (l *Link) now() Mode {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mode
}

func (l *Link) accept() {
	for {
		near, err := l.listener.Accept()
		if err != nil {
			return
		}
		if m := l.now(); m == Refuse || m == Reset {
			abort(near)
			continue
		}
		go l.carry(near)
	}
}

func (l *Link) carry(near net.Conn) {
	far, err := l.dial()
	if err != nil {
		abort(near)
		return
	}
	w := &wire{link: l, near: near, far: far}
	l.mu.Lock()
	l.conns[w] = true
	l.mu.Unlock()
	var ways sync.WaitGroup
	ways.Go(func() { w.pump(near, far, true) })
	ways.Go(func() { w.pump(far, near, false) })
	ways.Wait()
	_ = near.Close()
	_ = far.Close()
	l.mu.Lock()
	delete(l.conns, w)
	l.mu.Unlock()
}

// pump carries one way until it ends, and does to the bytes what the mode says.
func (w *wire) pump(from, to net.Conn, there bool) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 && w.passes(buffer[:n], there) {
			if _, err := to.Write(buffer[:n]); err != nil {
				w.reset()
				return
			}
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				closeWrite(to)
			} else {
				w.reset()
			}
			return
		}
	}
}

// passes decides about some bytes of one way.
func (w *wire) passes(some []byte, there bool) bool {
	switch mode := w.link.now(); mode {
	case BlackHole:
		w.deafen()
		return false
	case Deaf:
		if !there {
			w.deafen()
		}
		return there
	case Slow:
		time.Sleep(slowBy) // the latency itself, not a wait for something
	case Commits:
		if there && bytes.Contains(some, []byte("commit\x00")) && w.deafen() {
			w.breakSoon()
		}
		return there || !w.isDeaf()
	case Hold:
		if there && bytes.Contains(some, []byte("commit\x00")) {
			w.stand()
		}
	case CutAfter:
		w.link.mu.Lock()
		w.passed += len(some)
		over := w.passed > cutAfter
		w.link.mu.Unlock()
		if over {
			w.breakSoon()
			return false
		}
	}
	return there || !w.isDeaf()
}

// stand waits until the link's mode changes.
func (w *wire) stand() {
	w.link.mu.Lock()
	loose := w.link.loose
	w.link.mu.Unlock()
	select {
	case w.link.held <- struct{}{}:
	default:
	}
	<-loose
}

// breakSoon ends the connection once what was sent has had its effect.
func (w *wire) breakSoon() {
	w.link.mu.Lock()
	w.link.cut++
	w.link.mu.Unlock()
	time.AfterFunc(200*time.Millisecond, w.reset)
}

// deafen loses all later answers of this connection; true the first time.
func (w *wire) deafen() bool {
	w.link.mu.Lock()
	defer w.link.mu.Unlock()
	first := !w.deafened
	w.deafened = true
	return first
}

func (w *wire) isDeaf() bool {
	w.link.mu.Lock()
	defer w.link.mu.Unlock()
	return w.deafened
}

func (w *wire) reset() {
	abort(w.near)
	abort(w.far)
}

// abort closes with a reset, where the connection knows one.
func abort(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

func closeWrite(c net.Conn) {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
}
