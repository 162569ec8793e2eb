package web

import (
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/models"
)

var requestIDForm = regexp.MustCompile(`^[A-Za-z0-9._-]{8,64}$`)

// begin gives the answer its request id, once.
func (s *Server) begin(c *fiber.Ctx) {
	if handlers.RequestID(c) != "" {
		return
	}
	id := c.Get("X-Request-Id")
	if !requestIDForm.MatchString(id) {
		id = "req_" + strings.ToLower(rand.Text())
	}
	c.Set("X-Request-Id", id)
}

// around is the outermost step of each request: its id, its context, a panic caught, an error drawn, a line in the log.
func (s *Server) around(c *fiber.Ctx) error {
	began := time.Now()
	s.begin(c)
	c.SetUserContext(s.requests)
	handlers.SetClientIP(c, s.clientIP(c))
	c.Set(fiber.HeaderXContentTypeOptions, "nosniff")
	c.Set(fiber.HeaderReferrerPolicy, "same-origin")
	if s.options.Secure {
		c.Set(fiber.HeaderStrictTransportSecurity, "max-age=31536000")
	}
	err := s.recovered(c)
	if err != nil {
		drain(c)
		if failed := s.fail(c, err); failed != nil {
			return failed
		}
	}
	s.log(c, err, time.Since(began))
	return nil
}

// Bounds of what is read of a refused request's body.
const (
	drainBytes = 8 << 20
	drainTime  = 2 * time.Second
)

// drain reads what a refused sender is still sending, within bounds: a connection closed in its face would take the
// answer along.
func drain(c *fiber.Ctx) {
	stream := c.Context().RequestBodyStream()
	if stream == nil {
		return
	}
	conn := c.Context().Conn()
	_ = conn.SetReadDeadline(time.Now().Add(drainTime))
	n, err := io.Copy(io.Discard, io.LimitReader(stream, drainBytes))
	if n == drainBytes || err != nil {
		c.Context().SetConnectionClose()
	}
	_ = conn.SetReadDeadline(time.Time{})
}

func (s *Server) recovered(c *fiber.Ctx) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = models.Errorf(models.Internal, "panic: %v\n%s", p, debug.Stack())
		}
	}()
	return c.Next()
}

// fail answers an error: as a page for a browser that looks at one, else as problem+json. A page that is not there is
// a page for whoever did not ask for something else.
func (s *Server) fail(c *fiber.Ctx, err error) error {
	p, retryAfter := problemOf(c, err)
	accept := c.Get(fiber.HeaderAccept)
	page := strings.Contains(accept, "text/html") || p.Status == fiber.StatusNotFound && (accept == "" || accept == "*/*")
	if !page || s.options.Trouble == nil || strings.HasPrefix(c.Path()+"/", "/v1/") || strings.HasPrefix(c.Path(), "/.well-known/") {
		return writeProblem(c, err)
	}
	secureHeaders(c, nonceOf(c))
	if retryAfter > 0 {
		c.Set(fiber.HeaderRetryAfter, strconv.Itoa(retryAfter))
	}
	return s.options.Trouble(c.Status(p.Status), p.Status, string(p.Code), p.Detail, p.RequestID)
}

// log says what was asked and answered: the path, never the query, headers or bodies. An error is logged here, once.
func (s *Server) log(c *fiber.Ctx, err error, took time.Duration) {
	status, level := c.Response().StatusCode(), slog.LevelDebug
	route := c.Route().Path
	s.meters.request(c.Method(), route, status, took)
	if status >= 500 && status != fiber.StatusServiceUnavailable {
		level = slog.LevelError
	} else if status == fiber.StatusServiceUnavailable {
		level = slog.LevelWarn
	}
	ctx := c.UserContext()
	if !s.deps.Logger.Enabled(ctx, level) {
		return
	}
	caller := handlers.CallerOf(c)
	attributes := []slog.Attr{
		slog.String("method", c.Method()), slog.String("path", handlers.Shorten(c.Path(), 200)), slog.Int("status", status),
		slog.Duration("took", took), slog.String("request_id", handlers.RequestID(c)), slog.String("ip", handlers.ClientIP(c)),
	}
	if caller.Sub != "" {
		attributes = append(attributes, slog.String("caller", caller.Sub), slog.String("tenant", caller.TenantSlug))
	}
	if err != nil && level >= slog.LevelWarn {
		attributes = append(attributes, slog.String("error", fmt.Sprint(err)))
	}
	s.deps.Logger.LogAttrs(ctx, level, "request", attributes...)
}

// clientIP is who asks. Behind a proxy it is the address the proxy added: the last; those before are anybody's word.
func (s *Server) clientIP(c *fiber.Ctx) string {
	remote := c.Context().RemoteIP().String()
	if !s.options.BehindProxy {
		return remote
	}
	list := strings.Split(c.Get(fiber.HeaderXForwardedFor), ",")
	if address, err := netip.ParseAddr(strings.TrimSpace(list[len(list)-1])); err == nil {
		return address.String()
	}
	return remote
}
