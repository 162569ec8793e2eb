package acceptance

import (
	"cmp"
	"slices"
	"strings"
	"testing"
)

// What a creating call would do is told and not done: no row, no event, no audit, and a second dry run reads the same.
func TestDryRunsOfThePlatformsThings(t *testing.T) {
	d := open(t)
	_, a := d.tenant("northwind")
	narrow := d.want(d.call("POST", "/v1/api-keys", a, map[string]any{"name": "narrow", "scopes": []string{"admin:read", "admin:write"}, "environments": []string{"production"}}), 201, "")
	held := d.token(narrow.str("client_id"), narrow.str("client_secret"))
	lists := map[string]string{"/v1/lanes": a, "/v1/environments": a, "/v1/api-keys": a, "/v1/budgets": a, "/v1/tenants": d.root, "/v1/audit": a}
	counts := func() map[string]any {
		out := map[string]any{}
		for path, token := range lists {
			out[path] = d.want(d.call("GET", path+"?count=true", token, nil), 200, "").at("total.value")
		}
		return out
	}
	before := counts()
	for _, c := range []struct {
		path, token, body, refused string
		has                        map[string]any
	}{
		{"/v1/lanes", a, `{"name":"sync","kind":"io"}`, "", map[string]any{"name": "sync", "kind": "io", "high_water": 1000.0, "created_at": nil}},
		{"/v1/lanes", a, `{"name":"batch","kind":"io"}`, "state_conflict", map[string]any{"name": "batch"}},
		{"/v1/environments", a, `{"name":"staging","kind":"staging"}`, "", map[string]any{"id": nil, "kind": "staging", "created_at": nil}},
		{"/v1/environments", a, `{"name":"production"}`, "state_conflict", nil},
		{"/v1/environments", held, `{"name":"staging"}`, "forbidden", nil},
		{"/v1/api-keys", a, `{"name":"k","scopes":["tasks:read"]}`, "", map[string]any{"id": nil, "client_id": nil, "client_secret": nil, "name": "k"}},
		{"/v1/api-keys", a, `{"name":"k","scopes":["secrets:use"]}`, "forbidden", nil},
		{"/v1/api-keys", held, `{"name":"k","scopes":["admin:read"],"environments":[]}`, "forbidden", nil},
		{"/v1/budgets", a, `{"scope":"tenant","period":"day","limit_usd":1}`, "", map[string]any{"id": nil, "scope": "tenant", "created_at": nil, "version": 1.0}},
		{"/v1/tenants", d.root, `{"name":"S","slug":"southwind"}`, "", map[string]any{"id": nil, "slug": "southwind", "timezone": "UTC"}},
		{"/v1/tenants", d.root, `{"name":"N","slug":"northwind"}`, "state_conflict", nil},
	} {
		for range 2 { // under one key: a dry run uses none up
			r := d.want(d.call("POST", c.path+"?dry_run=true", c.token, c.body, "Idempotency-Key", "k"), 200, "")
			refusals := r.list("refusals")
			if c.refused == "" && len(refusals) != 0 || c.refused != "" && (len(refusals) != 1 || r.str("refusals.0.code") != c.refused || r.str("refusals.0.detail") == "") {
				t.Errorf("%s %s: %s", c.path, c.body, r.text)
			}
			for name, want := range c.has {
				d.same(c.path+" "+name, r.at(name), want)
			}
			if r.header.Get("Location") != "" || strings.Contains(r.text, "client_secret") {
				t.Errorf("%s %s: %v %s", c.path, c.body, r.header, r.text)
			}
		}
	}
	d.same("what stands", counts(), before)
	for path, body := range map[string]string{
		"/v1/lanes": `{"name":"Not a name","kind":"io"}`, "/v1/environments": `{"name":"x","kind":"moon"}`,
		"/v1/api-keys": `{"name":"k","scopes":["moon"]}`, "/v1/tenants": `{"name":"N","slug":"x","weight":0}`,
	} {
		token := lists[path]
		d.want(d.call("POST", path+"?dry_run=true", token, body), 422, "validation_failed")
		d.want(d.call("POST", path+"?dry_run=perhaps", token, body), 400, "invalid_query", "query.dry_run")
		d.want(d.call("POST", path+"?dry=true", token, body), 400, "invalid_query", "query.dry")
	}
	// Under a key that a dry run was sent with, the real call is the first.
	d.want(d.call("POST", "/v1/lanes", a, `{"name":"sync","kind":"io"}`, "Idempotency-Key", "k"), 201, "")
}

// Whatever makes something can be tried: the answer says what would be, and nothing is there afterwards, no row, no event, no
// line of the audit. A creating call that the table does not name fails the test.
func TestDryRunsChangeNothing(t *testing.T) {
	d := open(t)
	d.tenant("northwind")
	a := d.key("northwind", append(slices.Clone(everyScope), "schedules:read", "schedules:write")...)
	h := d.hand(a, nil)
	once := map[string]any{"type": "a", "retry_policy": map[string]any{"max_attempts": 1}}
	ended := func(status string) string {
		id := d.submit(a, once)
		_, token, _ := h.one()
		h.report(token, status, nil)
		return id
	}
	won, dead := ended("succeeded"), ended("failed")
	graph := map[string]any{"name": "w", "tasks": []any{map[string]any{"key": "a", "type": "a"}, map[string]any{"key": "b", "type": "b", "depends_on": []string{"a"}}}}
	flow := d.want(d.call("POST", "/v1/workflows", a, graph), 201, "").str("id")
	_, token, _ := h.one()
	h.report(token, "succeeded", nil)
	waits := d.submit(a, map[string]any{"type": "a", "delay_seconds": 3600})
	rule := map[string]any{"name": "s", "kind": "interval", "every_seconds": 3600, "task": map[string]any{"type": "a"}}
	schedule := d.want(d.call("POST", "/v1/schedules", a, rule), 201, "").str("id")
	key := d.want(d.call("POST", "/v1/api-keys", a, map[string]any{"name": "k", "scopes": []string{"tasks:read"}}), 201, "").str("id")
	hour := map[string]any{"from": "2026-01-01T00:00:00Z", "to": "2026-01-01T03:00:00Z"}
	type try struct {
		path, at string // at: empty for the path itself
		body     map[string]any
		has      []string
		refused  string // the code; "-": it says how many alone
	}
	cases := []try{
		{"/v1/tasks", "", once, []string{"lane", "class", "model", "estimated_cost_usd", "estimated_start_at"}, ""},
		{"/v1/tasks/batch", "", map[string]any{"tasks": []any{once}}, []string{"data.0.lane", "data.0.refusals"}, "-"},
		{"/v1/tasks/{id}/retry", "/v1/tasks/" + won + "/retry", nil, []string{"lane", "estimated_start_at"}, ""},
		{"/v1/tasks/{id}/retry", "/v1/tasks/" + dead + "/retry", map[string]any{"reason": "r", "payload": map[string]any{"n": 1}}, []string{"lane", "estimated_start_at"}, ""},
		{"/v1/tasks/{id}/retry", "/v1/tasks/" + waits + "/retry", nil, []string{"lane"}, "state_conflict"},
		{"/v1/workflows", "", graph, []string{"lane", "tasks"}, ""},
		{"/v1/workflows/{id}/rerun", "/v1/workflows/" + flow + "/rerun", map[string]any{"from": "a"}, []string{"lane", "tasks"}, ""},
		{"/v1/workflows/{id}/tasks", "/v1/workflows/" + flow + "/tasks", map[string]any{"tasks": []any{map[string]any{"key": "c", "type": "a", "depends_on": []string{"b"}}}}, []string{"lane"}, ""},
		{"/v1/batches", "", map[string]any{"name": "n", "items": []any{1, 2}, "task": once}, []string{"lane", "total"}, ""},
		{"/v1/schedules", "", map[string]any{"name": "other", "kind": "interval", "every_seconds": 3600, "task": once}, []string{"lane", "next"}, ""},
		{"/v1/schedules", "", rule, []string{"lane"}, "state_conflict"},
		{"/v1/schedules/{id}/trigger", "/v1/schedules/" + schedule + "/trigger", nil, []string{"lane", "outcome"}, ""},
		{"/v1/schedules/{id}/backfill", "/v1/schedules/" + schedule + "/backfill", hour, []string{"matched"}, "-"},
		{"/v1/triggers", "", map[string]any{"name": "e", "data": 1}, []string{"lane", "matched", "id"}, ""},
		{"/v1/queues/{name}/items", "/v1/queues/q/items", map[string]any{"items": []any{map[string]any{"data": 1}}}, []string{"lane", "accepted"}, ""},
		{"/v1/lanes", "", map[string]any{"name": "sync", "kind": "io"}, []string{"high_water"}, ""},
		{"/v1/environments", "", map[string]any{"name": "staging"}, []string{"kind"}, ""},
		{"/v1/api-keys", "", map[string]any{"name": "k", "scopes": []string{"tasks:read"}}, []string{"id"}, ""},
		{"/v1/budgets", "", map[string]any{"scope": "tenant", "period": "day", "limit_usd": 5}, []string{"limit_usd"}, ""},
		{"/v1/tenants", "", map[string]any{"name": "S", "slug": "southwind"}, []string{"id"}, ""},
	}
	lists := []string{
		"/v1/audit", "/v1/events", "/v1/tasks", "/v1/workflows", "/v1/batches", "/v1/schedules", "/v1/schedules/" + schedule + "/runs", "/v1/queues", "/v1/lanes",
		"/v1/environments", "/v1/api-keys", "/v1/budgets", "/v1/bulk-actions", "/v1/workflows/" + flow + "/tasks",
	}
	counts := func() map[string]any {
		out := map[string]any{"tenants": d.want(d.call("GET", "/v1/tenants?count=true", d.root, nil), 200, "").at("total.value")}
		for _, path := range lists {
			if r := d.call("GET", path+"?count=true", a, nil); r.status == 200 {
				out[path] = r.at("total.value")
			}
		}
		out["dead"], out["won"] = d.task(a, dead).str("state"), d.task(a, won).str("updated_at")
		stands := d.want(d.call("GET", "/v1/workflows/"+flow, a, nil), 200, "") // all but how long it has been running
		out["flow"] = []any{stands.header.Get("ETag"), stands.at("counts"), stands.at("budget.used.tasks"), stands.at("labels"), stands.at("priority")}
		out["key"] = d.want(d.call("GET", "/v1/api-keys/"+key, a, nil), 200, "").header.Get("ETag")
		return out
	}
	before := counts()
	for _, r := range d.routes() {
		if r.method == "POST" && slices.Contains(r.statuses, "201") && r.path != "/v1/workers" && r.path != "/v1/tasks/{id}/children" &&
			!slices.ContainsFunc(cases, func(c try) bool { return c.path == r.path }) {
			t.Errorf("POST %s makes something and is not tried here", r.path)
		}
	}
	for _, c := range cases {
		at, by := cmp.Or(c.at, c.path), a
		if c.path == "/v1/tenants" {
			by = d.root
		}
		var body any
		if c.body != nil {
			body = c.body
		}
		for range 2 {
			r := d.want(d.call("POST", at+"?dry_run=true", by, body), 200, "")
			for _, name := range c.has {
				head, last := r.body, name
				if i := strings.LastIndex(name, "."); i >= 0 {
					head, _ = r.at(name[:i]).(map[string]any)
					last = name[i+1:]
				}
				if _, has := head[last]; !has {
					t.Errorf("%s has no %s: %s", at, name, r.text)
				}
			}
			refusals, has := r.body["refusals"].([]any)
			switch {
			case c.refused == "-":
			case !has, c.refused == "" && len(refusals) > 0, c.refused != "" && r.str("refusals.0.code") != c.refused:
				t.Errorf("%s is refused with %v: %s", at, refusals, r.text)
			case r.header.Get("Location") != "":
				t.Errorf("%s says where it is", at)
			}
		}
	}
	for path, body := range map[string]map[string]any{
		"/v1/dead-letters/redrive": {"task_ids": []string{dead}, "reason": "r"}, "/v1/dead-letters/discard": {"task_ids": []string{dead}, "reason": "r"},
		"/v1/bulk-actions": {"action": "cancel", "filter": map[string]any{"state": []string{"scheduled"}}, "reason": "r"},
	} {
		body["dry_run"] = true
		d.same(path, d.want(d.call("POST", path, a, body), 200, "").body, map[string]any{"matched": 1.0})
	}
	d.same("what stands", counts(), before)
}
