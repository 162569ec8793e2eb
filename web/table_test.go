package web_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"nightshift/handlers"
)

var param = regexp.MustCompile(`:[a-z_]+`)

// scopesOf are the scopes that some keys hold: one key a scope.
func scopesOf() []string {
	return slices.DeleteFunc(handlers.Scopes(), func(s string) bool { return s == handlers.Platform })
}

// Every route is asked without a token, and with a key of each scope alone: it opens for those it names and no other.
func TestEveryRouteByEveryScope(t *testing.T) {
	s := newStage(t)
	root := s.root()
	s.tenant(root, "northwind", "tasks:read")
	keys := map[string]string{}
	for _, scope := range scopesOf() {
		key := s.want(s.call("POST", "/v1/api-keys", map[string]any{"name": scope, "scopes": []string{scope}}, "Authorization", root, "Nightshift-Tenant", "northwind"), 201, "")
		keys[scope] = s.token(key.str("client_id"), key.str("client_secret"))
	}
	asked := 0
	for _, r := range allRoutes(s.deps.DB) {
		if slices.Contains(r.Scopes, handlers.Public) || r.Path == "/v1/events/stream" {
			continue
		}
		path := param.ReplaceAllString(r.Path, "nothing")
		if got := s.call(r.Method, path, nil); got.status != 401 || got.code() != "unauthenticated" {
			t.Errorf("%s %s without a token: %d %s", r.Method, path, got.status, got.code())
		}
		for scope, token := range keys {
			got := s.call(r.Method, path, nil, "Authorization", token)
			opens := slices.Contains(r.Scopes, handlers.AnyToken) || slices.Contains(r.Scopes, scope)
			if opens == (got.status == 403 && got.code() == "scope_required") {
				t.Errorf("%s %s (needs %v) with %s: %d %s", r.Method, path, r.Scopes, scope, got.status, got.code())
			}
			if got.status >= 500 {
				t.Errorf("%s %s: %d %s", r.Method, path, got.status, got.text)
			}
			asked++
		}
		if r.TenantNeeded {
			if got := s.call(r.Method, path, nil, "Authorization", root); got.status != 400 || got.code() != "tenant_required" {
				t.Errorf("%s %s of the platform without a tenant: %d %s", r.Method, path, got.status, got.code())
			}
		}
	}
	t.Logf("%d calls", asked)
}

// What is another tenant's looks like what never was: the same 404, whatever is asked.
func TestForeignIsLikeUnknown(t *testing.T) {
	s := newStage(t)
	root := s.root()
	_, keyA, a := s.tenant(root, "northwind", scopesOf()...)
	_, _, b := s.tenant(root, "southwind", scopesOf()...)
	s.want(s.call("POST", "/v1/lanes", `{"name":"mine","kind":"io"}`, "Authorization", a), 201, "")
	s.want(s.call("POST", "/v1/environments", `{"name":"mine"}`, "Authorization", a), 201, "")
	task := s.want(s.call("POST", "/v1/tasks", `{"type":"demo.echo"}`, "Authorization", a), 201, "").str("id")
	workflow := s.want(s.call("POST", "/v1/workflows", `{"name":"w","tasks":[{"key":"a","type":"demo.echo"}]}`, "Authorization", a), 201, "").str("id")
	own := map[string]string{"tasks": task, "workflows": workflow, "lanes": "mine", "environments": "mine", "api-keys": keyA.str("id")}
	unknown := map[string]string{"tasks": "task_01arz3ndektsv4rrffq69g5fav", "workflows": "wf_01arz3ndektsv4rrffq69g5fav", "lanes": "other", "environments": "other", "api-keys": "key_01arz3ndektsv4rrffq69g5fav"}
	body := map[string]any{"reason": "a test"}
	asked := 0
	for _, r := range allRoutes(s.deps.DB) {
		parts := strings.Split(r.Path, "/")
		if len(parts) < 4 || !strings.HasPrefix(parts[3], ":") || own[parts[2]] == "" || slices.Contains([]string{"complete", "fail", "heartbeat", "checkpoint", "logs", "spans", "children"}, parts[len(parts)-1]) {
			continue
		}
		ask := func(id, token string) reply {
			path := "/v1/" + parts[2] + "/" + id + strings.TrimPrefix(r.Path, "/v1/"+parts[2]+"/"+parts[3])
			var sent any
			switch r.Method {
			case "POST":
				switch sent = body; parts[len(parts)-1] {
				case "rotate":
					sent = nil
				case "signal":
					sent = map[string]any{"name": "stop"}
				case "quality":
					sent = map[string]any{"score": 0.5, "source": "a test"}
				}
			case "PATCH":
				sent = map[string]any{}
			}
			got := s.call(r.Method, path, sent, "Authorization", token, "X-Request-Id", "one-and-the-same")
			got.text = strings.ReplaceAll(got.text, id, "ID")
			return got
		}
		foreign, never := ask(own[parts[2]], b), ask(unknown[parts[2]], b)
		if foreign.status != 404 || foreign.text != never.text {
			t.Errorf("%s %s: foreign %d %s, unknown %d %s", r.Method, r.Path, foreign.status, foreign.text, never.status, never.text)
		}
		asked++
	}
	if asked < 15 {
		t.Errorf("only %d routes were asked", asked)
	}
	if r := s.want(s.call("GET", "/v1/tasks/"+task, nil, "Authorization", a), 200, ""); r.str("state") != "ready" {
		t.Errorf("the task after all that: %s", r.text)
	}
}
