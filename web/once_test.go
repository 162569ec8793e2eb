package web_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"nightshift/handlers"
)

// made is one creating call: its path and body, and a body that asks for something else.
type made struct {
	path   string
	body   string
	other  string
	status int
}

// creating says how each creating call is made. A route of the table that is missing here fails the test.
func (s *stage) creating(token string) map[string]made {
	auth := []string{"Authorization", token}
	key := s.want(s.call("POST", "/v1/api-keys", `{"name":"k","scopes":["tasks:read"]}`, auth...), 201, "").str("id")
	one := func(path, body string) string { return s.want(s.call("POST", path, body, auth...), 201, "").str("id") }
	final := one("/v1/tasks", `{"type":"demo.echo"}`)
	s.want(s.call("POST", "/v1/tasks/"+final+"/cancel", `{}`, auth...), 200, "")
	flow := one("/v1/workflows", `{"name":"w","tasks":[{"key":"a","type":"demo.echo"}]}`)
	schedule := one("/v1/schedules", `{"name":"s","kind":"cron","expression":"0 8 * * *","task":{"type":"demo.echo"}}`)
	return map[string]made{
		"/v1/tenants":                {body: `{"name":"One","slug":"once-one"}`, other: `{"name":"Two","slug":"once-two"}`},
		"/v1/api-keys":               {body: `{"name":"a","scopes":["tasks:read"]}`, other: `{"name":"b","scopes":["tasks:read"]}`},
		"/v1/api-keys/:id/rotate":    {path: "/v1/api-keys/" + key + "/rotate", body: `{"overlap_seconds":60}`, other: `{"overlap_seconds":61}`, status: 200},
		"/v1/environments":           {body: `{"name":"once-a"}`, other: `{"name":"once-b"}`},
		"/v1/budgets":                {body: `{"scope":"tenant","period":"day","limit_usd":1}`, other: `{"scope":"tenant","period":"day","limit_usd":2}`},
		"/v1/lanes":                  {body: `{"name":"once-a","kind":"io"}`, other: `{"name":"once-b","kind":"io"}`},
		"/v1/tasks":                  {body: `{"type":"a"}`, other: `{"type":"b"}`},
		"/v1/tasks/batch":            {body: `{"tasks":[{"type":"a"}]}`, other: `{"tasks":[{"type":"b"}]}`},
		"/v1/tasks/:id/retry":        {path: "/v1/tasks/" + final + "/retry", body: `{"reason":"a"}`, other: `{"reason":"b"}`},
		"/v1/workflows":              {body: `{"name":"a","tasks":[{"key":"a","type":"a"}]}`, other: `{"name":"b","tasks":[{"key":"a","type":"a"}]}`},
		"/v1/workflows/:id/tasks":    {path: "/v1/workflows/" + flow + "/tasks", body: `{"tasks":[{"key":"x","type":"a"}]}`, other: `{"tasks":[{"key":"y","type":"a"}]}`},
		"/v1/workflows/:id/rerun":    {path: "/v1/workflows/" + flow + "/rerun", body: `{"from":"a","reason":"a"}`, other: `{"from":"a","reason":"b"}`},
		"/v1/batches":                {body: `{"name":"a","task":{"type":"a"},"items":[1],"batch_size":1}`, other: `{"name":"b","task":{"type":"a"},"items":[1],"batch_size":1}`},
		"/v1/schedules":              {body: `{"name":"a","kind":"cron","expression":"0 8 * * *","task":{"type":"a"}}`, other: `{"name":"b","kind":"cron","expression":"0 8 * * *","task":{"type":"a"}}`},
		"/v1/schedules/:id/trigger":  {path: "/v1/schedules/" + schedule + "/trigger", body: `{"reason":"a"}`, other: `{"reason":"b"}`},
		"/v1/schedules/:id/backfill": {path: "/v1/schedules/" + schedule + "/backfill", body: `{"from":"2026-01-01T00:00:00Z","to":"2026-01-02T00:00:00Z"}`, other: `{"from":"2026-01-01T00:00:00Z","to":"2026-01-03T00:00:00Z"}`, status: 202},
		"/v1/dead-letters/redrive":   {body: `{"filter":{},"reason":"a"}`, other: `{"filter":{},"reason":"b"}`, status: 202},
		"/v1/dead-letters/discard":   {body: `{"filter":{},"reason":"a"}`, other: `{"filter":{},"reason":"b"}`, status: 202},
		"/v1/triggers":               {body: `{"name":"a"}`, other: `{"name":"b"}`, status: 202},
		"/v1/queues/:name/items":     {path: "/v1/queues/once/items", body: `{"items":[{"data":1}]}`, other: `{"items":[{"data":2}]}`, status: 202},
		"/v1/bulk-actions":           {body: `{"action":"cancel","filter":{"type":"none"},"reason":"a"}`, other: `{"action":"cancel","filter":{"type":"none"},"reason":"b"}`, status: 202},
	}
}

// Every creating POST of the route table says that it takes an Idempotency-Key, and does: asked again it answers as the
// first time and makes nothing, and the key with another body is refused.
func TestEveryCreatingCallIsDoneOnce(t *testing.T) {
	s := newStage(t)
	root := s.root()
	_, _, token := s.tenant(root, "northwind", scopesOf()...)
	calls := s.creating(token)
	routes := allRoutes(s.deps.DB)
	for _, r := range routes {
		_, creates := r.Doc.Replies[201]
		working := slices.Contains(r.Scopes, handlers.WorkersRegister)
		if r.Method == "POST" && creates && !working && !r.Doc.Once {
			t.Errorf("POST %s creates and says nothing of an Idempotency-Key", r.Path)
		}
		if r.Doc.Once && (working || r.Method != "POST") {
			t.Errorf("%s %s says that it takes an Idempotency-Key", r.Method, r.Path)
		}
		if !r.Doc.Once {
			continue
		}
		call, known := calls[r.Path]
		if !known {
			t.Errorf("POST %s takes an Idempotency-Key and is not tried here: say how it is called", r.Path)
			continue
		}
		delete(calls, r.Path)
		s.once(r, call, root, token)
	}
	if len(calls) > 0 {
		t.Errorf("no routes that take an Idempotency-Key: %v", slices.Sorted(maps.Keys(calls)))
	}
	document := s.call("GET", "/openapi.json", nil)
	for _, r := range routes {
		if r.Doc.Once {
			paths, _ := document.body["paths"].(map[string]any)
			item, _ := paths[param.ReplaceAllStringFunc(r.Path, func(p string) string { return "{" + p[1:] + "}" })].(map[string]any)
			post, _ := item["post"].(map[string]any)
			if !strings.Contains(fmt.Sprint(post["parameters"]), "Idempotency-Key") {
				t.Errorf("the document of POST %s does not name the header", r.Path)
			}
		}
	}
}

func (s *stage) once(r handlers.Route, call made, root, token string) {
	s.t.Helper()
	if call.path == "" {
		call.path = r.Path
	}
	if call.status == 0 {
		call.status = 201
	}
	if slices.Contains(r.Scopes, handlers.Platform) && len(r.Scopes) == 1 {
		token = root
	}
	ask := func(body, key string) reply {
		return s.call("POST", call.path, body, "Authorization", token, "Idempotency-Key", key)
	}
	if bad := ask(call.body, strings.Repeat("k", 256)); bad.status != 422 || !strings.Contains(bad.text, "header.Idempotency-Key") {
		s.t.Errorf("POST %s with a key that is too long: %d %s", r.Path, bad.status, bad.text)
	}
	first := ask(call.body, "once")
	if first.status != call.status || first.header.Get("Idempotent-Replayed") != "" {
		s.t.Errorf("POST %s: %d %s", r.Path, first.status, first.text)
		return
	}
	again := ask(call.body, "once")
	if again.status != first.status || again.text != first.text || again.header.Get("Idempotent-Replayed") != "true" || again.header.Get("Location") != first.header.Get("Location") {
		s.t.Errorf("POST %s again: %d %v %s, not %s", r.Path, again.status, again.header, again.text, first.text)
	}
	if other := ask(call.other, "once"); other.status != 422 || other.code() != "idempotency_key_reused" {
		s.t.Errorf("POST %s with the key of another: %d %s", r.Path, other.status, other.text)
	}
}
