package web

import (
	"bytes"
	"fmt"
	"html"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/static"
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
		get("/docs", "The reference as a page", docs),
		get("/docs/start.js", "What starts that page", docsScript),
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

// docs is the reference. Swagger UI writes style attributes, so this page alone allows them.
func docs(_ *handlers.Deps, c *fiber.Ctx) error {
	c.Set(fiber.HeaderContentSecurityPolicy, "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "+
		"img-src 'self' data:; font-src 'self'; connect-src 'self'; base-uri 'none'; frame-ancestors 'none'")
	c.Set(fiber.HeaderContentType, fiber.MIMETextHTMLCharsetUTF8)
	var page bytes.Buffer
	fmt.Fprintf(&page, `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>API reference · Nightshift</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="stylesheet" href="%s"></head>
<body><h1 hidden>API reference</h1><div id="reference"></div>
<script src="%s"></script><script src="/docs/start.js"></script></body></html>
`, html.EscapeString(static.URL("swagger-ui.css")), html.EscapeString(static.URL("swagger-ui-bundle.js")))
	return c.Send(page.Bytes())
}

func docsScript(_ *handlers.Deps, c *fiber.Ctx) error {
	c.Set(fiber.HeaderContentType, "text/javascript; charset=utf-8")
	return c.SendString(`SwaggerUIBundle({url: "/openapi.json", dom_id: "#reference", deepLinking: true, validatorUrl: null});` + "\n")
}
