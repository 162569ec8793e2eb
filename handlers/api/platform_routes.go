package api

import (
	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
)

type handler = func(*handlers.Deps, *fiber.Ctx) error

// PlatformRoutes are tokens, tenants, environments, keys, kinds, lanes and what the platform says of itself.
func PlatformRoutes() []handlers.Route {
	routes := []handlers.Route{{
		Method: fiber.MethodPost, Path: "/v1/auth/token", Scopes: []string{handlers.Public}, MaxBody: 16 << 10, Handler: token,
		Doc: handlers.Doc{
			Tag: "Tokens and keys", Summary: "Exchange client credentials for an access token",
			Detail: "OAuth 2 client credentials as a form, JSON or HTTP Basic. The token is good for 15 minutes.",
			Body:   tokenRequest{}, BodyType: fiber.MIMEApplicationForm, Replies: map[int]any{200: tokenAnswer{}},
		},
	}}
	routes = append(routes, keyRoutes()...)
	routes = append(routes, customerRoutes()...)
	routes = append(routes, environmentRoutes()...)
	routes = append(routes, laneRoutes()...)
	routes = append(routes, quotaRoutes()...)
	routes = append(routes, budgetRoutes()...)
	routes = append(routes, eventRoutes()...)
	routes = append(routes, scheduleRoutes()...)
	routes = append(routes, variableRoutes()...)
	routes = append(routes, modelRoutes()...)
	return append(routes, stateRoutes()...)
}

// endpoint fills what most endpoints share.
func endpoint(method, path string, scopes []string, tenant bool, tag, summary string, handle handler, body any, status int, reply any) handlers.Route {
	doc := handlers.Doc{Tag: tag, Summary: summary, Body: body, Replies: map[int]any{status: reply}}
	_, doc.BodyOptional = body.(reasonRequest)
	doc.Once = method == fiber.MethodPost && status == fiber.StatusCreated
	return handlers.Route{Method: method, Path: path, Scopes: scopes, TenantNeeded: tenant, Handler: handle, Doc: doc}
}

func listed(r handlers.Route, filters ...handlers.Param) handlers.Route {
	r.Doc.Query = handlers.ListParams(filters...)
	return r
}

func oldestFirst(r handlers.Route) handlers.Route {
	r.Doc.Query = handlers.OldestFirstParams()
	return r
}

func named(r handlers.Route) handlers.Route {
	r.Doc.Query = handlers.ByNameParams()
	return r
}

const (
	get    = fiber.MethodGet
	post   = fiber.MethodPost
	patch  = fiber.MethodPatch
	remove = fiber.MethodDelete
)

var (
	reads    = []string{handlers.AdminRead, handlers.AdminWrite}
	writes   = []string{handlers.AdminWrite}
	platform = []string{handlers.Platform}
	seeing   = []string{handlers.TasksRead, handlers.AdminRead} // lanes, kinds, workers, events
)

func keyRoutes() []handlers.Route {
	const tag = "Tokens and keys"
	rotate := endpoint(post, "/v1/api-keys/:id/rotate", writes, false, tag, "Give a key a new secret; the old one overlaps", rotateKey, rotateRequest{}, 200, APIKey{})
	rotate.Doc.BodyOptional, rotate.Doc.Once, rotate.Doc.Headers = true, true, []handlers.Param{handlers.IfMatchHeader}
	return []handlers.Route{
		endpoint(get, "/v1/whoami", []string{handlers.AnyToken}, false, tag, "Who the token belongs to and what it may do", whoami, nil, 200, whoamiAnswer{}),
		dryable(endpoint(post, "/v1/api-keys", writes, false, tag, "Make a key; its secret is shown once", createKey, newKey{}, 201, APIKey{}), keyDry{}),
		listed(endpoint(get, "/v1/api-keys", reads, false, tag, "List keys", listKeys, nil, 200, handlers.Page[APIKey]{})),
		endpoint(get, "/v1/api-keys/:id", reads, false, tag, "Read a key", getKey, nil, 200, APIKey{}),
		rotate,
		endpoint(remove, "/v1/api-keys/:id", writes, false, tag, "Revoke a key; its tokens end within a minute", revokeKey, nil, 204, nil),
	}
}

func customerRoutes() []handlers.Route {
	const tag = "Platform"
	return []handlers.Route{
		dryable(endpoint(post, "/v1/tenants", platform, false, tag, "Make a tenant, with the environment production and a lane a kind", createTenant, newTenant{}, 201, Tenant{}), tenantDry{}),
		listed(endpoint(get, "/v1/tenants", platform, false, tag, "List tenants", listTenants, nil, 200, handlers.Page[Tenant]{})),
		endpoint(get, "/v1/tenants/:id", platform, false, tag, "Read a tenant", getTenant, nil, 200, Tenant{}),
		endpoint(patch, "/v1/tenants/:id", platform, false, tag, "Edit a tenant", patchTenant, tenantPatch{}, 200, Tenant{}),
		endpoint(post, "/v1/tenants/:id/suspend", platform, false, tag, "Suspend a tenant: nothing of it starts", setSuspended(true, "tenant.suspend"), reasonRequest{}, 200, Tenant{}),
		endpoint(post, "/v1/tenants/:id/resume", platform, false, tag, "Let a suspended tenant go on", setSuspended(false, "tenant.resume"), reasonRequest{}, 200, Tenant{}),
		oldestFirst(endpoint(get, "/v1/kinds", seeing, false, tag, "List the four kinds", listKinds, nil, 200, handlers.Page[Kind]{})),
		endpoint(get, "/v1/kinds/:kind", seeing, false, tag, "Read a kind", getKind, nil, 200, Kind{}),
		endpoint(patch, "/v1/kinds/:kind", platform, false, tag, "Edit a kind", patchKind, kindPatch{}, 200, Kind{}),
	}
}

func environmentRoutes() []handlers.Route {
	const tag = "Environments"
	return []handlers.Route{
		dryable(endpoint(post, "/v1/environments", writes, true, tag, "Make an environment with a lane a kind", createEnvironment, newEnvironment{}, 201, Environment{}), environmentDry{}),
		listed(endpoint(get, "/v1/environments", reads, true, tag, "List environments", listEnvironments, nil, 200, handlers.Page[Environment]{})),
		endpoint(get, "/v1/environments/:name", reads, true, tag, "Read an environment", getEnvironment, nil, 200, Environment{}),
		endpoint(patch, "/v1/environments/:name", writes, true, tag, "Edit an environment", patchEnvironment, environmentPatch{}, 200, Environment{}),
		endpoint(remove, "/v1/environments/:name", writes, true, tag, "Delete an environment in which nothing is left to do; its rows stay", deleteEnvironment, nil, 204, nil),
		endpoint(post, "/v1/environments/:name/pause", writes, true, tag, "Start nothing more in an environment", setPaused(true, "environment.pause"), reasonRequest{}, 200, Environment{}),
		endpoint(post, "/v1/environments/:name/resume", writes, true, tag, "Let a paused environment go on", setPaused(false, "environment.resume"), reasonRequest{}, 200, Environment{}),
	}
}

func laneRoutes() []handlers.Route {
	const tag = "Lanes"
	return []handlers.Route{
		dryable(endpoint(post, "/v1/lanes", writes, true, tag, "Make a lane", createLane, newLane{}, 201, Lane{}), laneDry{}),
		listed(endpoint(get, "/v1/lanes", seeing, true, tag, "List lanes", listLanes, nil, 200, handlers.Page[Lane]{})),
		endpoint(get, "/v1/lanes/:name", seeing, true, tag, "Read a lane", getLane, nil, 200, Lane{}),
		endpoint(patch, "/v1/lanes/:name", writes, true, tag, "Edit a lane", patchLane, laneFields{}, 200, Lane{}),
		endpoint(remove, "/v1/lanes/:name", writes, true, tag, "Remove an empty lane", deleteLane, nil, 204, nil),
		endpoint(post, "/v1/lanes/:name/pause", writes, true, tag, "Start nothing more in a lane", laneAction("lane.pause", pauseLane), reasonRequest{}, 200, Lane{}),
		endpoint(post, "/v1/lanes/:name/resume", writes, true, tag, "Let a paused or draining lane go on", laneAction("lane.resume", resumeLane), reasonRequest{}, 200, Lane{}),
		endpoint(post, "/v1/lanes/:name/drain", writes, true, tag, "Take nothing new and work off what is there", laneAction("lane.drain", drainLane), reasonRequest{}, 200, Lane{}),
		endpoint(get, "/v1/lanes/:name/explain", seeing, true, tag, "Why the first tasks of a lane do not start, live", explainLane, nil, 200, laneExplained{}),
		endpoint(get, "/v1/lanes/:name/stats", seeing, true, tag, "Depth, age and speed of a lane, live", getLaneStats, nil, 200, laneStats{}),
	}
}

func stateRoutes() []handlers.Route {
	const tag = "Operations"
	return []handlers.Route{
		endpoint(get, "/v1/limits", []string{handlers.AnyToken}, false, tag, "The limits every caller is held to", limits, nil, 200, handlers.Limits{}),
		endpoint(get, "/v1/scheduler", platform, false, tag, "Who decides, and which replicas serve", schedulerState, nil, 200, schedulerAnswer{}),
		listed(endpoint(get, "/v1/audit", reads, false, tag, "What people and keys changed", listAudit, nil, 200, handlers.Page[auditRow]{}),
			handlers.Param{Name: "action", Type: "string"}, handlers.Param{Name: "object", Type: "string"}, handlers.Param{Name: "actor", Type: "string"}),
	}
}
