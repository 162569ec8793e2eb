package handlers

import (
	"context"
	"errors"
	"net"
	"syscall"
	"time"

	"github.com/gofiber/fiber/v2"
	"golang.org/x/sys/unix"
)

// ErrClientGone is the cause of a context that ended because nobody waits for the answer any more.
var ErrClientGone = errors.New("the client is gone")

// Attend gives a context that ends when the peer closes its connection, the server cuts what takes too long at its end,
// or stop is called. fasthttp
// does not notice a client that leaves during a long poll. The body must have been read before; stop must be called
// before the handler returns.
func Attend(c *fiber.Ctx) (ctx context.Context, stop func()) {
	inner, cancel := context.WithCancelCause(c.UserContext())
	raw := c.Context().Conn()
	if t, ok := raw.(interface{ NetConn() net.Conn }); ok { // *tls.Conn
		raw = t.NetConn()
	}
	sc, ok := raw.(syscall.Conn)
	if !ok {
		return inner, func() { cancel(nil) }
	}
	rc, err := sc.SyscallConn()
	if err != nil {
		return inner, func() { cancel(nil) }
	}
	_ = raw.SetReadDeadline(time.Time{}) // the one for reading the request would end the watch
	done := make(chan struct{})
	go func() {
		defer close(done)
		err := rc.Read(func(fd uintptr) bool { // parked in the netpoller; reads no byte
			p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
			n, _ := unix.Poll(p, 0)
			return n > 0 && p[0].Revents&(unix.POLLRDHUP|unix.POLLHUP|unix.POLLERR) != 0
		})
		if err == nil {
			cancel(ErrClientGone)
		}
	}()
	return inner, func() {
		_ = raw.SetReadDeadline(time.Unix(1, 0))
		<-done
		_ = raw.SetReadDeadline(time.Time{})
		cancel(nil)
	}
}
