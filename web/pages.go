package web

import (
	"net/url"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/models"
	"nightshift/models/postgres"
)

// pages is the guard of what browsers see: headers, who is signed in, where they look, and that a write was meant.
func (s *Server) pages(c *fiber.Ctx) error {
	path := c.Path()
	if strings.HasPrefix(path, "/v1/") || path == "/v1" || strings.HasPrefix(path, "/static/") {
		return c.Next()
	}
	secureHeaders(c, nonceOf(c))
	token := c.Cookies(handlers.SessionCookie(s.options.Secure))
	handlers.SetBrowser(c, "", s.options.Secure)
	if isWrite(c) && !sameOrigin(c) {
		return models.Errorf(models.Forbidden, "this form was sent from another site")
	}
	if isWrite(c) { // forms are small; fasthttp would read any length into memory
		body, err := handlers.RawBody(c)
		if err != nil {
			return err
		}
		c.Request().SetBodyRaw(body)
	}
	user, err := s.deps.Sessions.User(c.UserContext(), token)
	if err != nil {
		return err
	}
	if user == nil {
		return s.signedOut(c)
	}
	handlers.SetBrowser(c, token, s.options.Secure)
	if isWrite(c) && path != "/login" && !handlers.CSRFFits(token, formWord(c)) {
		return models.Errorf(models.Forbidden, "this form is too old; load the page again")
	}
	caller, err := s.viewer(c, user)
	if err != nil {
		return err
	}
	handlers.SetCaller(c, caller)
	return c.Next()
}

// signedOut lets a browser sign in, and sends it there from any page. What is no page is not there for anybody.
func (s *Server) signedOut(c *fiber.Ctx) error {
	if c.Path() == "/login" || c.Path() == "/favicon.ico" || !s.leadsToPages(c.Path()) {
		return c.Next()
	}
	to := "/login"
	if c.Method() == fiber.MethodGet && c.Path() != "/" && c.Path() != "/logout" {
		to += "?next=" + url.QueryEscape(c.OriginalURL())
	}
	if c.Get("HX-Request") != "" { // htmx follows a redirect inside the page; this one is for the whole window
		c.Set("HX-Redirect", "/login")
		return c.SendStatus(fiber.StatusUnauthorized)
	}
	return c.Redirect(to, fiber.StatusSeeOther)
}

// leadsToPages says whether there are pages below the first word of a path, apart from the front's own endpoints.
func (s *Server) leadsToPages(path string) bool {
	first := firstWord(path)
	if slices.ContainsFunc(s.ownRoutes(), func(r handlers.Route) bool { return firstWord(r.Path) == first }) {
		return false
	}
	return slices.ContainsFunc(s.App.GetRoutes(true), func(r fiber.Route) bool { return firstWord(r.Path) == first })
}

func firstWord(path string) string {
	word, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return word
}

func isWrite(c *fiber.Ctx) bool {
	return !slices.Contains([]string{fiber.MethodGet, fiber.MethodHead, fiber.MethodOptions}, c.Method())
}

// sameOrigin is the rule of net/http's CrossOriginProtection: what the browser says of where a request comes from; a
// request without those headers comes from no browser.
func sameOrigin(c *fiber.Ctx) bool {
	switch c.Get("Sec-Fetch-Site") {
	case "same-origin", "none":
		return true
	case "":
	default:
		return false
	}
	origin := c.Get(fiber.HeaderOrigin)
	if origin == "" {
		return true
	}
	from, err := url.Parse(origin)
	return err == nil && from.Host != "" && from.Host == string(c.Context().Host())
}

func formWord(c *fiber.Ctx) string {
	if word := c.Get("X-CSRF-Token"); word != "" {
		return word
	}
	return c.FormValue("csrf")
}

// viewer is the caller of a signed-in person: what they may do, and the tenant and environment they look at.
func (s *Server) viewer(c *fiber.Ctx, user *postgres.User) (*handlers.Caller, error) {
	id := models.ID(user.ID)
	caller := &handlers.Caller{
		Kind: handlers.KindUser, Sub: id.Text(models.UserPrefix), Email: user.Email, Platform: user.Platform,
		RequestID: handlers.RequestID(c), IP: handlers.ClientIP(c),
	}
	named := c.Query("tenant")
	if user.Platform {
		caller.Role, caller.Scopes = "platform operator", []string{handlers.Platform}
		if err := s.lookAt(c, caller, named); err != nil {
			return nil, err
		}
	} else if err := s.asMember(c, caller, id, named); err != nil {
		return nil, err
	}
	if caller.Tenant == 0 {
		return caller, nil
	}
	name := c.Query("environment", "production")
	if !handlers.Storable(name) {
		return nil, models.Errorf(models.NotFound, "there is no such environment")
	}
	env, err := s.deps.Directory.Environment(c.UserContext(), caller.Tenant, name)
	if err != nil {
		return nil, err
	}
	caller.Env, caller.Environment = env.Env, env.Name
	return caller, nil
}

// lookAt chooses the tenant that an operator looks at: the one named, else the first there is.
func (s *Server) lookAt(c *fiber.Ctx, caller *handlers.Caller, named string) error {
	if named != "" {
		if !handlers.Storable(named) {
			return models.Errorf(models.NotFound, "there is no such tenant")
		}
		tenant, err := s.deps.Directory.Tenant(c.UserContext(), named)
		if err == nil {
			actFor(caller, tenant)
		}
		return err
	}
	first, _, err := s.deps.World.Tenants(c.UserContext(), postgres.RowList{Limit: 1})
	if err == nil && len(first) > 0 {
		actFor(caller, first[0])
	}
	return err
}

// asMember chooses among the tenants that a person belongs to.
func (s *Server) asMember(c *fiber.Ctx, caller *handlers.Caller, user models.ID, named string) error {
	memberships, err := s.deps.People.Memberships(c.UserContext(), user)
	if err != nil {
		return err
	}
	for _, m := range memberships {
		tenant, err := s.deps.Directory.TenantByNumber(c.UserContext(), m.Tenant)
		if err != nil {
			return err
		}
		if named == "" || named == tenant.Slug || named == tenant.ID.Text(models.TenantPrefix) {
			actFor(caller, tenant)
			caller.Role, caller.Scopes = m.Role, handlers.RoleScopes(m.Role)
			return nil
		}
	}
	if named != "" {
		return models.Errorf(models.NotFound, "there is no tenant %q here", handlers.Shorten(named, 80))
	}
	return models.Errorf(models.Forbidden, "you belong to no tenant yet; ask an admin to invite you")
}

func nonceOf(c *fiber.Ctx) string { return handlers.Nonce(c) }

// secureHeaders lets a page run its own scripts and styles, and nobody frame it.
func secureHeaders(c *fiber.Ctx, nonce string) {
	c.Set(fiber.HeaderContentSecurityPolicy, "default-src 'none'; script-src 'self' 'nonce-"+nonce+"'; style-src 'self'; "+
		"img-src 'self' data:; font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	c.Set(fiber.HeaderXFrameOptions, "DENY")
	c.Set(fiber.HeaderCacheControl, "no-store")
	c.Set("Cross-Origin-Opener-Policy", "same-origin")
}
