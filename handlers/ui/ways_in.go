package ui

import (
	"errors"
	"strings"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/models"
	"nightshift/templates"
)

func (p *pages) login(c *fiber.Ctx) error {
	next := safeNext(c.Query("next"))
	if handlers.CallerOf(c).Sub != "" {
		return c.Redirect(next, fiber.StatusSeeOther)
	}
	return show(c, fiber.StatusOK, templates.Login(templates.LoginView{Next: next}))
}

func (p *pages) signIn(c *fiber.Ctx) error {
	email, next := c.FormValue("email"), safeNext(c.FormValue("next"))
	if !handlers.Storable(email) {
		email = ""
	}
	err := handlers.SignIn(p.Deps, c, email, c.FormValue("password"))
	switch models.CodeOf(err) {
	case "":
		return c.Redirect(next, fiber.StatusSeeOther)
	case models.InvalidClient, models.RateLimited, models.Overloaded:
		status := fiber.StatusUnauthorized
		if models.CodeOf(err) != models.InvalidClient {
			status = fiber.StatusTooManyRequests
		}
		return show(c, status, templates.Login(templates.LoginView{Email: email, Next: next, Wrong: sentence(detail(err))}))
	}
	return err
}

func (p *pages) signOut(c *fiber.Ctx) error {
	if err := handlers.SignOut(p.Deps, c); err != nil {
		return err
	}
	return c.Redirect("/login", fiber.StatusSeeOther)
}

func (p *pages) start(c *fiber.Ctx) error {
	page, err := p.whole(c, "Start here", "/start")
	if err != nil {
		return err
	}
	return show(c, fiber.StatusOK, templates.Start(page, templates.StartView{Server: c.BaseURL()}))
}

// safeNext is where to go after signing in: a path of this site, never another one.
func safeNext(next string) string {
	if !strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") || strings.ContainsAny(next, "\\\r\n\t") || !handlers.Storable(next) {
		return "/"
	}
	return next
}

// Trouble draws an error for a browser.
func Trouble(c *fiber.Ctx, status int, code, detail, requestID string) error {
	view := templates.TroubleView{Status: status, Heading: troubleHeading(status), Text: sentence(detail), Request: requestID}
	if handlers.CallerOf(c).Sub == "" {
		return show(c, status, templates.TroubleOutside(view))
	}
	return show(c, status, templates.Trouble(frame(c, view.Heading, ""), view))
}

func troubleHeading(status int) string {
	switch {
	case status == fiber.StatusNotFound:
		return "There is nothing here"
	case status == fiber.StatusForbidden:
		return "You may not do this"
	case status == fiber.StatusTooManyRequests, status == fiber.StatusServiceUnavailable:
		return "Not now"
	case status >= 500:
		return "This went wrong"
	default:
		return "This can't be done"
	}
}

func forbidden(row page) error {
	if isWrite(row) {
		return models.Errorf(models.Forbidden, "your role does not let you do this; ask an admin of the tenant")
	}
	return models.Errorf(models.Forbidden, "this page is not for your role")
}

// detail is the sentence of a refusal.
func detail(err error) string {
	var known *models.Error
	if errors.As(err, &known) {
		return known.Detail
	}
	return err.Error()
}

// sentence begins with a capital letter and ends with a full stop.
func sentence(text string) string {
	if text == "" {
		return ""
	}
	text = strings.ToUpper(text[:1]) + text[1:]
	if !strings.HasSuffix(text, ".") {
		text += "."
	}
	return text
}
