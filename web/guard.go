package web

import (
	"slices"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/models"
	"nightshift/models/postgres"
)

// The headers by which a token says where it acts.
const (
	tenantHeader      = "Nightshift-Tenant"
	environmentHeader = "Nightshift-Environment"
)

// guarded is a route's handler behind its guard: who, may they, is there room, how much may they send.
func (s *Server) guarded(r handlers.Route) fiber.Handler {
	public := slices.Contains(r.Scopes, handlers.Public)
	bare := len(r.Doc.Query) == 0 && strings.HasPrefix(r.Path, "/v1/") // it takes no parameter: one sent is refused, never ignored
	return func(c *fiber.Ctx) error {
		if !public {
			caller, err := s.authenticate(c)
			if err != nil {
				return err
			}
			handlers.SetCaller(c, caller)
			if err := s.authorize(c, caller, &r); err != nil {
				return err
			}
			if err := s.quota.take(c, caller, &r, s.ownLimit(c, caller)); err != nil {
				return err
			}
		}
		if bare {
			if err := handlers.NoQuery(c); err != nil {
				return err
			}
		}
		if r.MaxBody > 0 {
			handlers.SetBodyLimit(c, r.MaxBody)
		}
		if r.Bulk {
			_ = c.Context().Conn().SetReadDeadline(time.Now().Add(bulkTimeout))
		}
		return r.Handler(s.deps, c)
	}
}

// ownLimit is the tenant's own limit of requests a minute, nil when it has none or it can't be read now.
func (s *Server) ownLimit(c *fiber.Ctx, caller *handlers.Caller) *int64 {
	if caller.Tenant == 0 {
		return nil
	}
	q, err := s.deps.Directory.Quotas(c.UserContext(), caller.Tenant)
	if err != nil {
		return nil
	}
	return q.RequestsPerMinute
}

// authenticate finds the caller of a bearer token; a call from inside brings its own. Every refusal reads the same.
func (s *Server) authenticate(c *fiber.Ctx) (*handlers.Caller, error) {
	if caller := handlers.InsideCaller(c); caller != nil {
		return caller, nil
	}
	refused := models.Errorf(models.Unauthenticated, "send a valid access token as Authorization: Bearer")
	scheme, token, _ := strings.Cut(c.Get(fiber.HeaderAuthorization), " ")
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return nil, refused
	}
	claims, err := s.deps.Signer.Verify(c.UserContext(), token, handlers.AudienceAPI)
	if err != nil {
		return nil, err
	}
	key, err := s.deps.Keys.Live(c.UserContext(), claims.Subject)
	if err != nil {
		return nil, err
	}
	if key == nil {
		return nil, refused
	}
	caller := &handlers.Caller{
		Kind: handlers.KindKey, Sub: key.ID, KeyID: key.ID, Platform: key.Tenant == nil, Environments: key.Open(),
		Lanes: key.Lanes, Permissions: key.Permissions, Scopes: narrowed(claims.Scope, key), RequestID: handlers.RequestID(c), IP: handlers.ClientIP(c),
	}
	if key.Tenant == nil {
		if claims.Tenant != nil {
			return nil, refused
		}
		return caller, nil
	}
	tenant, err := s.deps.Directory.TenantByNumber(c.UserContext(), *key.Tenant)
	if err != nil {
		return nil, err
	}
	if claims.Tenant == nil || *claims.Tenant != tenant.ID.Text(models.TenantPrefix) {
		return nil, refused
	}
	actFor(caller, tenant)
	return caller, nil
}

// narrowed are the scopes of a token that its key still holds.
func narrowed(scope string, key *postgres.APIKey) []string {
	var out []string
	for _, word := range strings.Fields(scope) {
		if slices.Contains(key.Scopes, word) || slices.Contains(key.Scopes, handlers.Platform) {
			out = append(out, word)
		}
	}
	return out
}

func actFor(caller *handlers.Caller, tenant models.Tenant) {
	caller.Tenant, caller.TenantID, caller.TenantSlug, caller.Suspended = tenant.Number, tenant.ID, tenant.Slug, tenant.Suspended
}

// authorize checks the route's scopes first, then finds the world that the request acts on.
func (s *Server) authorize(c *fiber.Ctx, caller *handlers.Caller, r *handlers.Route) error {
	if !slices.Contains(r.Scopes, handlers.AnyToken) && !caller.Holds(r.Scopes...) {
		return models.Errorf(models.ScopeRequired, "this needs the scope %s", strings.Join(r.Scopes, " or "))
	}
	named := c.Get(tenantHeader)
	switch {
	case handlers.InsideCaller(c) != nil && (caller.Tenant != 0 || !r.TenantNeeded):
		return nil // a page has found its world already
	case named != "" && !caller.Platform:
		return models.Errorf(models.Forbidden, "the token says the tenant; only a platform token names one in %s", tenantHeader)
	case named != "":
		if !handlers.Storable(named) {
			return models.Errorf(models.NotFound, "there is no such tenant")
		}
		tenant, err := s.deps.Directory.Tenant(c.UserContext(), named)
		if err != nil {
			return err
		}
		actFor(caller, tenant)
	case caller.Platform && r.TenantNeeded:
		return models.Errorf(models.TenantRequired, "a platform token names the tenant it acts on in the header %s", tenantHeader)
	}
	if caller.Tenant == 0 {
		return nil
	}
	return s.enter(c, caller)
}

// enter finds the environment: the one the header names, the key's first, or production.
func (s *Server) enter(c *fiber.Ctx, caller *handlers.Caller) error {
	name := "production"
	if len(caller.Environments) > 0 {
		name = caller.Environments[0]
	}
	given := c.Get(environmentHeader)
	if given != "" {
		if !handlers.Storable(given) {
			return models.Errorf(models.NotFound, "there is no such environment")
		}
		name = given
	}
	env, err := s.deps.Directory.Environment(c.UserContext(), caller.Tenant, name)
	if err != nil {
		return err
	}
	if len(caller.Environments) > 0 && !slices.Contains(caller.Environments, env.Name) {
		return models.Errorf(models.Forbidden, "the key is not good for the environment %s", env.Name)
	}
	caller.Env, caller.Environment = env.Env, env.Name
	return nil
}
