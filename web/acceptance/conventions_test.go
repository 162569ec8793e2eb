package acceptance

import (
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// route is an operation of the served document.
type route struct {
	method, path string
	query        []string
	once         bool
	statuses     []string
}

// routes reads the served document: every operation under /v1, in order.
func (d *door) routes() (out []route) {
	d.t.Helper()
	paths := d.want(d.call("GET", "/openapi.json", "", nil), 200, "").at("paths").(map[string]any)
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		operations := paths[path].(map[string]any)
		for _, method := range slices.Sorted(maps.Keys(operations)) {
			operation, ok := operations[method].(map[string]any)
			if !ok || !strings.HasPrefix(path, "/v1/") || path == "/v1/auth/token" {
				continue
			}
			r := route{method: strings.ToUpper(method), path: path}
			parameters, _ := operation["parameters"].([]any)
			for _, p := range parameters {
				switch p := p.(map[string]any); {
				case p["in"] == "query":
					r.query = append(r.query, p["name"].(string))
				case p["name"] == "Idempotency-Key":
					r.once = true
				}
			}
			responses, _ := operation["responses"].(map[string]any)
			r.statuses = slices.Sorted(maps.Keys(responses))
			out = append(out, r)
		}
	}
	return out
}

var placeholder = regexp.MustCompile(`\{[^}]*\}`)

// Every endpoint needs a token, says so alike, and refuses methods that it does not take with what it takes.
func TestEveryEndpointKeepsToTheConventions(t *testing.T) {
	d := open(t)
	takes := map[string][]string{}
	for _, r := range d.routes() {
		takes[r.path] = append(takes[r.path], r.method)
		path := placeholder.ReplaceAllString(r.path, "x")
		got := d.want(d.call(r.method, path, "", nil), 401, "unauthenticated")
		if got.header.Get("WWW-Authenticate") == "" {
			t.Errorf("%s %s: 401 without WWW-Authenticate", r.method, r.path)
		}
		got = d.call(r.method, path, d.root, nil)
		for _, name := range []string{"RateLimit", "RateLimit-Policy", "X-Request-Id"} {
			if got.header.Get(name) == "" && got.str("code") != "tenant_required" && got.status != 403 {
				t.Errorf("%s %s: %d without %s", r.method, r.path, got.status, name)
			}
		}
	}
	for path, methods := range takes {
		for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
			asked := placeholder.ReplaceAllString(path, "x")
			if slices.Contains(methods, method) || slices.ContainsFunc(slices.Collect(maps.Keys(takes)), func(other string) bool {
				return other != path && slices.Contains(takes[other], method) && matches(other, asked)
			}) {
				continue
			}
			got := d.want(d.call(method, asked, d.root, nil), 405, "method_not_allowed")
			allow := strings.Split(strings.ReplaceAll(got.header.Get("Allow"), " ", ""), ",")
			for _, m := range methods {
				if !slices.Contains(allow, m) {
					t.Errorf("%s %s: Allow says %v, not %s", method, path, allow, m)
				}
			}
		}
	}
}

func matches(pattern, path string) bool {
	a, b := strings.Split(pattern, "/"), strings.Split(path, "/")
	return len(a) == len(b) && !slices.ContainsFunc(slices.Collect(zip(a, b)), func(p [2]string) bool { return p[0] != p[1] && !strings.HasPrefix(p[0], "{") })
}

func zip(a, b []string) func(func([2]string) bool) {
	return func(yield func([2]string) bool) {
		for i := range a {
			if !yield([2]string{a[i], b[i]}) {
				return
			}
		}
	}
}

// Every list has the same parameters and the same form.
func TestEveryListIsAsked(t *testing.T) {
	d := open(t)
	_, tenant := d.tenant("northwind")
	all := d.key("northwind", append(slices.Clone(everyScope), "schedules:read", "schedules:write")...)
	task := d.submit(tenant, map[string]any{"type": "a"})
	flow := d.want(d.call("POST", "/v1/workflows", tenant, map[string]any{"name": "w", "tasks": []any{map[string]any{"key": "a", "type": "a"}}}), 201, "").str("id")
	schedule := d.want(d.call("POST", "/v1/schedules", all, map[string]any{"name": "s", "kind": "interval", "every_seconds": 3600, "task": map[string]any{"type": "a"}}), 201, "").str("id")
	lists := 0
	for _, r := range d.routes() {
		if r.method != "GET" || !slices.Contains(r.query, "cursor") {
			continue
		}
		path := strings.NewReplacer("/tasks/{id}", "/tasks/"+task, "/workflows/{id}", "/workflows/"+flow, "/schedules/{id}", "/schedules/"+schedule).Replace(r.path)
		token := all
		if strings.HasPrefix(path, "/v1/tenants") || path == "/v1/scheduler/events" {
			token = d.root
		}
		if strings.Contains(path, "{") {
			continue
		}
		if len(r.query) < 4 || !slices.Contains(r.query, "limit") || !slices.Contains(r.query, "order") || !slices.Contains(r.query, "count") {
			t.Errorf("%s is a list that takes %v", r.path, r.query)
			continue
		}
		lists++
		got := d.want(d.call("GET", path+"?limit=9999&order=asc&count=true", token, nil), 200, "")
		if _, has := got.body["next_cursor"]; !has || got.at("data") == nil || got.at("total.value") == nil || got.str("total.relation") == "" {
			t.Errorf("%s: %.300s", path, got.text)
		}
		if plain := d.want(d.call("GET", path, token, nil), 200, ""); plain.at("total") != nil {
			t.Errorf("%s counts unasked: %.300s", path, plain.text)
		}
		for query, code := range map[string]string{
			"limit=0": "invalid_query", "limit=x": "invalid_query", "order=up": "invalid_query", "count=maybe": "invalid_query",
			"colour=red": "invalid_query", "cursor=forged": "invalid_cursor",
		} {
			name, _, _ := strings.Cut(query, "=")
			d.want(d.call("GET", path+"?"+query, token, nil), 400, code, "query."+name)
		}
		head := d.call("HEAD", path, token, nil)
		if head.status != http.StatusOK || head.text != "" {
			t.Errorf("HEAD %s: %d %q", path, head.status, head.text)
		}
	}
	if lists < 15 {
		t.Errorf("only %d lists were asked", lists)
	}
}

// What hangs on one task is listed in both orders, page by page, and counted.
func TestListsOfOneTask(t *testing.T) {
	d := open(t)
	_, a := d.tenant("northwind")
	var before []any
	for range 3 {
		before = append(before, d.submit(a, map[string]any{"type": "a"}))
	}
	waiting := d.submit(a, map[string]any{"type": "b", "depends_on": before})
	h := d.hand(a, nil)
	parent, lease, _ := h.one()
	h.want(h.call("POST", "/v1/tasks/"+parent+"/logs", a, map[string]any{"lines": []any{
		map[string]any{"message": "one"}, map[string]any{"message": "two"}, map[string]any{"message": "three"},
	}}, "Nightshift-Lease", lease), 204, "")
	var children []any
	for _, key := range []string{"x", "y", "z"} {
		children = append(children, map[string]any{"key": key, "type": "c"})
	}
	h.want(h.call("POST", "/v1/tasks/"+parent+"/children", a, map[string]any{"tasks": children}, "Nightshift-Lease", lease), 201, "")
	for path, name := range map[string]string{"/v1/tasks/" + waiting + "/dependencies": "task_id", "/v1/tasks/" + parent + "/logs": "message", "/v1/tasks/" + parent + "/children": "id"} {
		var both [2][]string
		for i, order := range []string{"asc", "desc"} {
			cursor := ""
			for {
				r := d.want(d.call("GET", path+"?limit=2&count=true&order="+order+cursor, a, nil), 200, "")
				if r.at("total.value") != 3.0 || r.str("total.relation") != "eq" {
					t.Errorf("%s counts %v", path, r.at("total"))
				}
				for _, row := range r.list("data") {
					both[i] = append(both[i], row.(map[string]any)[name].(string))
				}
				if r.at("next_cursor") == nil {
					break
				}
				cursor = "&cursor=" + r.str("next_cursor")
			}
		}
		slices.Reverse(both[1])
		if len(both[0]) != 3 || !slices.Equal(both[0], both[1]) {
			t.Errorf("%s: %v", path, both)
		}
	}
}

// Every creating POST can be replayed and tried.
func TestEveryCreatingCallCanBeReplayedAndTried(t *testing.T) {
	d := open(t)
	d.tenant("northwind")
	apart := []string{"/v1/workers", "/v1/tasks/{id}/children"} // the worker protocol
	for _, r := range d.routes() {
		if r.method != "POST" || !slices.Contains(r.statuses, "201") {
			continue
		}
		if slices.Contains(apart, r.path) {
			if !slices.Contains(r.query, "dry_run") { // one that would run wet is refused
				d.want(d.call("POST", placeholder.ReplaceAllString(r.path, "x")+"?dry_run=true", d.root, map[string]any{}, "Nightshift-Tenant", "northwind"), 400, "invalid_query")
			}
			continue
		}
		if !r.once {
			t.Errorf("POST %s takes no Idempotency-Key", r.path)
		}
		if !slices.Contains(r.query, "dry_run") {
			t.Errorf("POST %s takes no dry_run", r.path)
		}
	}
}
