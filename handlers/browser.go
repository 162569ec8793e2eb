package handlers

import (
	"crypto/rand"
	"strings"

	"github.com/gofiber/fiber/v2"
)

type browserKey int

const (
	nonceKey browserKey = iota
	sessionKey
	secureKey
)

// SetBrowser is for web: what a page needs to know of the browser's request.
func SetBrowser(c *fiber.Ctx, session string, secure bool) {
	c.Locals(sessionKey, session)
	c.Locals(secureKey, secure)
}

// Nonce is the word that lets scripts of this answer run.
func Nonce(c *fiber.Ctx) string {
	if nonce, ok := c.Locals(nonceKey).(string); ok {
		return nonce
	}
	nonce := strings.ToLower(rand.Text())
	c.Locals(nonceKey, nonce)
	return nonce
}

// SessionToken is the token of the session that the request belongs to, empty when nobody is signed in.
func SessionToken(c *fiber.Ctx) string {
	token, _ := c.Locals(sessionKey).(string)
	return token
}

// CSRFOf is the word that the forms of this page bring along, in the field "csrf" or the header X-CSRF-Token.
func CSRFOf(c *fiber.Ctx) string {
	if token := SessionToken(c); token != "" {
		return CSRF(token)
	}
	return ""
}

// SessionCookie is the cookie's name: with the prefix that browsers guard, but on plain HTTP, where they refuse it.
func SessionCookie(secure bool) string {
	if secure {
		return "__Host-nightshift"
	}
	return "nightshift"
}

// SignIn checks the words and gives the browser a session.
func SignIn(d *Deps, c *fiber.Ctx, email, password string) error {
	token, err := d.Sessions.SignIn(c.UserContext(), email, password, ClientIP(c), c.Get(fiber.HeaderUserAgent))
	if err != nil {
		return err
	}
	setSession(c, token, int(SessionLife.Seconds()))
	return nil
}

// SignOut ends the browser's session.
func SignOut(d *Deps, c *fiber.Ctx) error {
	token := SessionToken(c)
	setSession(c, "", -1)
	if token == "" {
		return nil
	}
	return d.Sessions.SignOut(c.UserContext(), token)
}

func setSession(c *fiber.Ctx, token string, age int) {
	secure, _ := c.Locals(secureKey).(bool)
	c.Cookie(&fiber.Cookie{
		Name: SessionCookie(secure), Value: token, Path: "/", MaxAge: age, HTTPOnly: true, Secure: secure, SameSite: fiber.CookieSameSiteLaxMode,
	})
}

// The roles of people in a tenant.
const (
	RoleOwner     = "owner"
	RoleAdmin     = "admin"
	RoleOperator  = "operator"
	RoleDeveloper = "developer"
	RoleViewer    = "viewer"
)

// RoleScopes are the scopes a person holds by a role.
func RoleScopes(role string) []string {
	read := []string{TasksRead, SchedulesRead, AdminRead, UsageRead, ScaleRead}
	switch role {
	case RoleOwner, RoleAdmin:
		return append(read, TasksWrite, SchedulesWrite, AdminWrite)
	case RoleOperator, RoleDeveloper:
		return append(read, TasksWrite, SchedulesWrite)
	case RoleViewer:
		return read
	}
	return nil
}
