package web

import (
	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
)

// ownRoutes are those of the front itself; none needs a token.
func (s *Server) ownRoutes() []handlers.Route {
	public := []string{handlers.Public}
	get := func(path, summary string, handler func(*handlers.Deps, *fiber.Ctx) error) handlers.Route {
		return handlers.Route{Method: fiber.MethodGet, Path: path, Scopes: public, Handler: handler, Doc: handlers.Doc{Tag: "Health", Summary: summary}}
	}
	return []handlers.Route{
		get("/livez", "The process serves", s.livez),
		get("/readyz", "Migrated, the database answers and a brain is known", s.readyz),
		get("/healthz", "Each of these as JSON", s.healthz),
		get("/metrics", "Prometheus metrics", s.metrics),
		get("/.well-known/jwks.json", "The public keys that tokens are signed with", jwks),
		get("/openapi.json", "This document", s.openapiJSON),
		get("/openapi.yaml", "This document as YAML", s.openapiYAML),
		get("/docs", "The reference as a page", s.docs),
	}
}

func jwks(d *handlers.Deps, c *fiber.Ctx) error {
	if err := handlers.Answer(c, fiber.StatusOK, d.Signer.JWKS()); err != nil {
		return err
	}
	c.Set(fiber.HeaderCacheControl, "public, max-age=60")
	return nil
}

func (s *Server) openapiJSON(_ *handlers.Deps, c *fiber.Ctx) error {
	c.Set(fiber.HeaderContentType, "application/json")
	return c.Send(s.spec.json)
}

func (s *Server) openapiYAML(_ *handlers.Deps, c *fiber.Ctx) error {
	c.Set(fiber.HeaderContentType, "application/yaml")
	return c.Send(s.spec.yaml)
}
