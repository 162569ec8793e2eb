package web_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/models"
)

// locked lets the server write its log while the test reads it.
type locked struct {
	mu sync.Mutex
	to bytes.Buffer
}

func (l *locked) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.to.String()
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.to.Write(p)
}

// troubleRoutes are endpoints that go wrong, or read a body, as the test wants.
func troubleRoutes() []handlers.Route {
	public, doc := []string{handlers.Public}, handlers.Doc{Tag: "Test", Summary: "of this test alone"}
	return []handlers.Route{
		{Method: "GET", Path: "/v1/trouble/:code", Scopes: public, Doc: doc, Handler: func(_ *handlers.Deps, c *fiber.Ctx) error {
			switch code := c.Params("code"); code {
			case "panic":
				panic("as the test wants")
			case "unknown":
				return errors.New("secret words of the database")
			default:
				return models.Errorf(models.Code(code), "as the test wants")
			}
		}},
		{Method: "POST", Path: "/v1/trouble/echo", Scopes: public, Doc: doc, MaxBody: 2000, Handler: func(_ *handlers.Deps, c *fiber.Ctx) error {
			var ask struct {
				Name  string `json:"name"`
				Tasks []struct {
					Priority int `json:"priority"`
				} `json:"tasks"`
				Payload any `json:"payload"`
			}
			if err := handlers.Bind(c, &ask); err != nil {
				return err
			}
			return handlers.Answer(c, 200, map[string]any{"name": ask.Name, "tasks": len(ask.Tasks)})
		}},
		{Method: "POST", Path: "/v1/trouble/bulk", Scopes: public, Doc: doc, MaxBody: 8 << 20, Bulk: true, Handler: func(_ *handlers.Deps, c *fiber.Ctx) error {
			n, err := io.Copy(io.Discard, handlers.BodyOf(c))
			if err != nil {
				return err
			}
			return handlers.Answer(c, 200, map[string]int64{"bytes": n})
		}},
		{Method: "GET", Path: "/v1/trouble/wait", Scopes: public, Doc: doc, Long: true, Handler: func(d *handlers.Deps, c *fiber.Ctx) error {
			ctx, stop := handlers.Watch(c)
			defer stop()
			d.Logger.Info("the wait begins")
			<-ctx.Done()
			d.Logger.Info("the wait ended", "gone", errors.Is(context.Cause(ctx), handlers.ErrClientGone))
			return handlers.NoContent(c)
		}},
	}
}

// testTrouble stands for the page that says what went wrong.
func testTrouble(c *fiber.Ctx, status int, _, detail, _ string) error {
	c.Set(fiber.HeaderContentType, fiber.MIMETextHTMLCharsetUTF8)
	return c.Status(status).SendString(detail)
}

// testPages stand for the pages: what they need of the front is who looks, from where, and the form's word.
func testPages(r fiber.Router, d *handlers.Deps) {
	r.Get("/login", func(c *fiber.Ctx) error { return c.SendString("sign in") })
	r.Post("/login", func(c *fiber.Ctx) error {
		if err := handlers.SignIn(d, c, c.FormValue("email"), c.FormValue("password")); err != nil {
			return err
		}
		return c.Redirect("/", fiber.StatusSeeOther)
	})
	r.Post("/logout", func(c *fiber.Ctx) error {
		if err := handlers.SignOut(d, c); err != nil {
			return err
		}
		return c.Redirect("/login", fiber.StatusSeeOther)
	})
	r.Get("/tasks", func(c *fiber.Ctx) error { return c.SendString("tasks") })
	r.Get("/", func(c *fiber.Ctx) error {
		caller := handlers.CallerOf(c)
		return c.JSON(fiber.Map{"email": caller.Email, "tenant": caller.TenantSlug, "environment": caller.Environment, "csrf": handlers.CSRFOf(c)})
	})
}
