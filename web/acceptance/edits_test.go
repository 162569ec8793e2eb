package acceptance

import (
	"slices"
	"strings"
	"testing"
)

// What can be edited says which version it is, and an edit or removal of another version is refused before anything else.
func TestEveryEditHonoursIfMatch(t *testing.T) {
	d := open(t)
	_, tenant := d.tenant("northwind")
	a := d.key("northwind", append(slices.Clone(everyScope), "schedules:read", "schedules:write")...)
	task := d.submit(tenant, map[string]any{"type": "a"})
	flow := d.want(d.call("POST", "/v1/workflows", a, map[string]any{"name": "w", "tasks": []any{map[string]any{"key": "a", "type": "a"}}}), 201, "").str("id")
	schedule := d.want(d.call("POST", "/v1/schedules", a, map[string]any{"name": "s", "kind": "interval", "every_seconds": 3600, "task": map[string]any{"type": "a"}}), 201, "").str("id")
	key := d.want(d.call("POST", "/v1/api-keys", a, map[string]any{"name": "k", "scopes": []string{"tasks:read"}}), 201, "").str("id")
	worker := d.hand(a, nil).id
	d.want(d.call("PUT", "/v1/models/m", a, map[string]any{"provider": "worker"}), 201, "")
	d.want(d.call("PUT", "/v1/rate-limits/r", a, map[string]any{"limit": 1, "per_seconds": 1}), 201, "")
	d.want(d.call("PUT", "/v1/watermarks/m", a, map[string]any{"value": 1}), 201, "")
	d.want(d.call("PATCH", "/v1/task-types/a", a, map[string]any{"max_concurrent": 3}), 200, "")
	for _, c := range []struct {
		path, token string
		bodies      map[string]any // by method
	}{
		{"/v1/tenants/northwind", d.root, map[string]any{"PATCH": map[string]any{"weight": 2}}},
		{"/v1/kinds/io", d.root, map[string]any{"PATCH": map[string]any{"weight": 2}}},
		{"/v1/environments/production", a, map[string]any{"PATCH": map[string]any{"kind": "production"}, "DELETE": nil}},
		{"/v1/lanes/io", a, map[string]any{"PATCH": map[string]any{"weight": 2}, "DELETE": nil}},
		{"/v1/tasks/" + task, a, map[string]any{"PATCH": map[string]any{"priority": 60}}},
		{"/v1/workflows/" + flow, a, map[string]any{"PATCH": map[string]any{"priority": 60}}},
		{"/v1/schedules/" + schedule, a, map[string]any{"PATCH": map[string]any{"description": "d"}, "DELETE": nil}},
		{"/v1/quotas", a, map[string]any{"PUT": map[string]any{"max_queued": 100}}},
		{"/v1/permissions", a, map[string]any{"PUT": map[string]any{"granted": []string{"mail"}}}},
		{"/v1/variables", a, map[string]any{"PUT": map[string]any{"variables": map[string]any{"A": "b"}}}},
		{"/v1/task-types/a", a, map[string]any{"PATCH": map[string]any{"max_concurrent": 4}}},
		{"/v1/rate-limits/r", a, map[string]any{"PUT": map[string]any{"limit": 2, "per_seconds": 1}, "DELETE": nil}},
		{"/v1/watermarks/m", a, map[string]any{"PUT": map[string]any{"value": 2}}},
		{"/v1/models/m", a, map[string]any{"PUT": map[string]any{"provider": "worker", "latency_ms": 5}, "DELETE": nil}},
		{"/v1/workers/" + worker, a, map[string]any{"DELETE": nil}},
		{"/v1/api-keys/" + key, a, map[string]any{"DELETE": nil}},
	} {
		tag := d.want(d.call("GET", c.path, c.token, nil), 200, "").header.Get("ETag")
		if !strings.HasPrefix(tag, `"`) || len(tag) < 3 {
			t.Errorf("GET %s has the ETag %q, which is not strong", c.path, tag)
		}
		for _, method := range []string{"PATCH", "PUT", "DELETE"} {
			body, can := c.bodies[method]
			if !can {
				continue
			}
			for _, other := range []string{`"999999"`, `W/` + tag, `nonsense`} {
				if r := d.call(method, c.path, c.token, body, "If-Match", other); r.status != 412 || r.str("code") != "stale" {
					t.Errorf("%s %s with If-Match %s: %d %s", method, c.path, other, r.status, r.text)
				}
			}
			if again := d.want(d.call("GET", c.path, c.token, nil), 200, "").header.Get("ETag"); again != tag {
				t.Errorf("%s %s: refused, and the tag went from %s to %s", method, c.path, tag, again)
			}
			if method == "DELETE" {
				d.want(d.call(method, c.path, c.token, nil, "If-Match", `"1234567", `+tag), map[bool]int{true: 409, false: 204}[strings.HasPrefix(c.path, "/v1/environments/") || strings.HasPrefix(c.path, "/v1/lanes/")], "")
				continue
			}
			if r := d.call(method, c.path, c.token, body, "If-Match", tag); r.status != 200 || r.header.Get("ETag") == "" {
				t.Errorf("%s %s of the version that stands: %d, ETag %q, %s", method, c.path, r.status, r.header.Get("ETag"), r.text)
			}
			tag = d.want(d.call("GET", c.path, c.token, nil), 200, "").header.Get("ETag")
		}
	}
}

// "*" asks that something stands: of what does not nothing is made.
func TestIfMatchOfWhatIsNotThere(t *testing.T) {
	d := open(t)
	_, a := d.tenant("northwind")
	for path, body := range map[string]any{
		"/v1/rate-limits/r": map[string]any{"limit": 1, "per_seconds": 1}, "/v1/watermarks/m": map[string]any{"value": 1}, "/v1/models/m": map[string]any{"provider": "worker"},
	} {
		for _, tag := range []string{"*", `"0"`, `"1"`, `W/"1"`, "nonsense"} {
			d.want(d.call("PUT", path, a, body, "If-Match", tag), 412, "stale")
		}
		d.want(d.call("GET", path, a, nil), 404, "not_found")
		d.same("where it is", d.want(d.call("PUT", path, a, body), 201, "").header.Get("Location"), path)
		d.want(d.call("PUT", path, a, body, "If-Match", "*"), 200, "")
	}
	for path, body := range map[string]any{ // these always stand, though nobody has set them
		"/v1/quotas": map[string]any{"max_queued": 100}, "/v1/permissions": map[string]any{"granted": []string{"mail"}}, "/v1/variables": map[string]any{"variables": map[string]any{"A": "b"}},
	} {
		tag := d.want(d.call("GET", path, a, nil), 200, "").header.Get("ETag")
		d.want(d.call("PUT", path, a, body, "If-Match", "nonsense"), 412, "stale")
		d.want(d.call("PUT", path, a, body, "If-Match", tag), 200, "")
		d.want(d.call("PUT", path, a, body, "If-Match", tag), 412, "stale")
		d.want(d.call("PUT", path, a, body, "If-Match", "*"), 200, "")
	}
}

// Giving a key another secret and draining a worker heed If-Match like edits.
func TestActionsHonourIfMatch(t *testing.T) {
	d := open(t)
	_, a := d.tenant("northwind")
	key := "/v1/api-keys/" + d.want(d.call("POST", "/v1/api-keys", a, map[string]any{"name": "k", "scopes": []string{"tasks:read"}}), 201, "").str("id")
	tag := d.want(d.call("GET", key, a, nil), 200, "").header.Get("ETag")
	d.want(d.call("POST", key+"/rotate", a, nil, "If-Match", `"1"`), 412, "stale")
	first := d.want(d.call("POST", key+"/rotate", a, nil, "If-Match", tag, "Idempotency-Key", "r"), 200, "")
	again := d.want(d.call("POST", key+"/rotate", a, nil, "If-Match", tag, "Idempotency-Key", "r"), 200, "") // a replay
	d.same("the secret", again.str("client_secret"), first.str("client_secret"))
	d.want(d.call("POST", key+"/rotate", a, nil, "If-Match", tag), 412, "stale")
	d.same("its tag", first.header.Get("ETag"), d.want(d.call("GET", key, a, nil), 200, "").header.Get("ETag"))
	d.want(d.call("POST", key+"/rotate", a, nil, "If-Match", first.header.Get("ETag")), 200, "")

	h := d.hand(a, nil)
	worker := "/v1/workers/" + h.id
	tag = d.want(d.call("GET", worker, a, nil), 200, "").header.Get("ETag")
	h.want(h.ask("/heartbeat", map[string]any{"leases": []any{}, "models": []string{"m"}}), 200, "")
	d.same("of a worker that works on", d.call("GET", worker, a, nil).header.Get("ETag"), tag)
	h.register()
	d.want(d.call("POST", worker+"/drain", a, nil, "If-Match", tag), 412, "stale")
	tag = d.want(d.call("GET", worker, a, nil), 200, "").header.Get("ETag")
	drained := d.want(d.call("POST", worker+"/drain", a, nil, "If-Match", tag), 200, "").header.Get("ETag")
	d.want(d.call("DELETE", worker, a, nil, "If-Match", tag), 412, "stale")
	d.want(d.call("DELETE", worker, a, nil, "If-Match", drained), 204, "")
}
