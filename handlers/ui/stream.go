package ui

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"time"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/models/postgres"
)

// Paces of the stream.
const (
	hintEvery  = 500 * time.Millisecond // events in between become one hint
	pingEvery  = 15 * time.Second
	flushLimit = 10 * time.Second // a browser that takes no byte for so long is gone
)

// stream is the one stream of a browser: hints about all environments that its viewer may see.
func (p *pages) stream(c *fiber.Ctx) error {
	envs, err := p.visible(c)
	if err != nil {
		return err
	}
	c.Set(fiber.HeaderContentType, "text/event-stream")
	c.Set(fiber.HeaderCacheControl, "no-store")
	c.Set("X-Accel-Buffering", "no")
	ctx, stop := handlers.UntilDrain(c.UserContext())
	ended, conn := ctx.Done(), c.Context().Conn()
	token, resumed := handlers.SessionToken(c), c.Get("Last-Event-ID") != ""
	c.Context().SetBodyStreamWriter(func(w *bufio.Writer) {
		defer stop()
		l := p.hub.join(envs)
		defer p.hub.leave(l)
		send := sender{w, conn}
		if !send.text("retry: 2000\n\n") || resumed && !send.hints(nil, true) {
			return // one that comes back has missed what happened meanwhile
		}
		ping := time.NewTicker(pingEvery)
		defer ping.Stop()
		for {
			select {
			case <-ended:
				return
			case <-ping.C:
				user, err := p.Sessions.User(ctx, token)
				if err == nil && user == nil || !send.text(": ping\n\n") {
					return
				}
			case <-l.wake:
				hints, reset := p.hub.take(l)
				if !send.hints(hints, reset) || !pause(ended, hintEvery) {
					return
				}
			}
		}
	})
	return nil
}

// visible are the environments that the viewer may hear of; nil: all.
func (p *pages) visible(c *fiber.Ctx) ([]int32, error) {
	caller := handlers.CallerOf(c)
	if caller.Platform {
		return nil, nil
	}
	rows, _, err := p.World.Environments(c.UserContext(), caller.Tenant, postgres.RowList{Limit: mostChoices})
	envs := make([]int32, 0, len(rows))
	for _, e := range rows {
		envs = append(envs, e.Env)
	}
	return envs, err
}

type sender struct {
	w    *bufio.Writer
	conn net.Conn
}

func (s sender) hints(hints []*Hint, reset bool) bool {
	if reset && !s.text("id: 1\nevent: reset\ndata: {}\n\n") {
		return false
	}
	for _, hint := range hints {
		body, err := json.Marshal(hint)
		if err != nil || !s.text(fmt.Sprintf("id: 1\nevent: hint\ndata: %s\n\n", body)) {
			return false
		}
	}
	return true
}

// text sends at once; false when the browser is gone.
func (s sender) text(text string) bool {
	if _, err := s.w.WriteString(text); err != nil {
		return false
	}
	if err := s.conn.SetWriteDeadline(time.Now().Add(flushLimit)); err != nil {
		return false
	}
	return s.w.Flush() == nil
}

// pause waits, unless the server ends.
func pause(ended <-chan struct{}, how time.Duration) bool {
	timer := time.NewTimer(how)
	defer timer.Stop()
	select {
	case <-ended:
		return false
	case <-timer.C:
		return true
	}
}
