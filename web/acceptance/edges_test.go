package acceptance

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Bodies that are no JSON, too large, of another kind or nested beyond reason are told apart.
func TestBodies(t *testing.T) {
	d := open(t)
	_, a := d.tenant("northwind")
	deep := `{"type":"a","payload":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + "}"
	for _, c := range []struct {
		name, body, media string
		status            int
		code              string
	}{
		{"none", "", "application/json", 400, "invalid_json"},
		{"cut short", "{", "application/json", 400, "invalid_json"},
		{"two values", `{"type":"a"}{}`, "application/json", 400, "invalid_json"},
		{"bad UTF-8", "{\"type\":\"a\",\"description\":\"\xff\"}", "application/json", 400, "invalid_json"},
		{"too deep", deep, "application/json", 400, "invalid_json"},
		{"null", "null", "application/json", 422, "validation_failed"},
		{"a list", "[]", "application/json", 422, "validation_failed"},
		{"a name twice", `{"type":"a","type":"b"}`, "application/json", 422, "validation_failed"},
		{"NUL", `{"type":"a","description":"\u0000"}`, "application/json", 422, "validation_failed"},
		{"NUL in the payload", `{"type":"a","payload":["\u0000"]}`, "application/json", 422, "validation_failed"},
		{"a number beyond numbers", `{"type":"a","priority":1e999}`, "application/json", 422, "validation_failed"},
		{"text", `{"type":"a"}`, "text/plain", 415, "unsupported_media_type"},
		{"no media type", `{"type":"a"}`, "", 415, "unsupported_media_type"},
		{"beyond a megabyte", `{"type":"a","payload":"` + strings.Repeat("x", 1<<20) + `"}`, "application/json", 413, "body_too_large"},
		{"a payload above 256 kB", `{"type":"a","payload":"` + strings.Repeat("x", 256<<10-1) + `"}`, "application/json", 422, "validation_failed"},
		{"a payload of 256 kB", `{"type":"a","payload":"` + strings.Repeat("x", 256<<10-2) + `"}`, "application/json", 201, ""},
		{"with a charset", `{"type":"a"}`, "application/json; charset=utf-8", 201, ""},
	} {
		if r := d.call("POST", "/v1/tasks", a, c.body, "Content-Type", c.media); r.status != c.status || r.str("code") != c.code {
			t.Errorf("%s: %d %.300s", c.name, r.status, r.text)
		}
	}
}

func TestMethodsAndPaths(t *testing.T) {
	d := open(t)
	_, a := d.tenant("northwind")
	for path, allow := range map[string]string{"/v1/tasks": "GET, HEAD, POST", "/v1/limits": "GET, HEAD", "/v1/auth/token": "POST"} {
		for _, method := range []string{"PUT", "TRACE", "BREW"} {
			r := d.want(d.call(method, path, a, nil), 405, "method_not_allowed")
			d.same(method+" "+path, r.header.Get("Allow"), allow)
		}
	}
	for _, path := range []string{"/v1/nothing", "/v1/tasks/", "/v1/", "/v1/tasks/task_01arz3ndektsv4rrffq69g5fav", "/v1/tasks/task_00000000000000000000000000", "/v1/tasks/%00", "/v1/tasks/%ff", "/v1/lanes/no%2Fsuch"} {
		d.want(d.call("GET", path, a, nil), 404, "not_found")
	}
	get, head := d.call("GET", "/v1/tasks", a, nil), d.call("HEAD", "/v1/tasks", a, nil)
	if head.status != 200 || head.text != "" || head.header.Get("Content-Length") != get.header.Get("Content-Length") || head.header.Get("Content-Type") != get.header.Get("Content-Type") {
		t.Errorf("HEAD: %d %v", head.status, head.header)
	}
	if r := d.call("GET", "/v1/limits", a, nil, "X-Request-Id", "a-request-of-mine"); r.header.Get("X-Request-Id") != "a-request-of-mine" || r.header.Get("RateLimit") == "" || r.header.Get("RateLimit-Policy") == "" {
		t.Errorf("headers of every answer: %v", r.header)
	}
	d.want(d.call("GET", "/v1/tasks", d.root, nil), 400, "tenant_required")
	d.want(d.call("GET", "/v1/tasks", d.root, nil, "Nightshift-Tenant", "nobody"), 404, "not_found")
	d.want(d.call("POST", "/v1/lanes", a, map[string]any{"name": "llm:fast", "kind": "io"}), 201, "")
	d.want(d.call("GET", "/v1/lanes/llm%3Afast", a, nil), 200, "")
}

// Every field of a task is kept and answered, or refused by its name: never taken and forgotten.
func TestAFieldIsKeptOrRefused(t *testing.T) {
	d := open(t)
	_, a := d.tenant("northwind")
	var fields map[string]any
	if err := json.Unmarshal([]byte(`{"payload": {"n": 1}, "lane": "io", "priority": 60, "run_at": "2087-09-17T21:00:00Z", "deadline": "2087-09-17T21:00:00Z",
		"expires_in_seconds": 3600, "resources": {"cpu": 2, "memory_mb": 4096, "gpu": 1, "vram_mb": 24576, "disk_mb": 100}, "estimated_cost_usd": 0.5,
		"estimated_seconds": 30, "timeout": {"soft_seconds": 60, "hard_seconds": 120, "total_seconds": 3600}, "permissions": ["internet.search"],
		"secrets": {"KEY": "secret://openai"}, "concurrency": [{"key": "account:42", "limit": 1}], "ordered": true, "rate_keys": ["bank:x"],
		"idempotency_key": "invoice-7", "dedupe": {"key": "sync:42", "while": "queued", "ttl_seconds": 3600}, "worker_selector": {"region": "eu"},
		"labels": {"customer": "a"}, "watermark": "docs", "budget": {"max_tasks": 500}, "run_if": "true", "needs_approval": true,
		"on_attempts_exhausted": "fail", "description": "what for"}`), &fields); err != nil {
		t.Fatal(err)
	}
	for name, value := range fields {
		r := d.call("POST", "/v1/tasks", a, map[string]any{"type": "a", name: value})
		if r.status == 422 {
			if !slices.ContainsFunc(r.places(), func(p string) bool { return strings.HasPrefix(p, "body."+name) }) {
				t.Errorf("%s is refused by the name of %v", name, r.places())
			}
			continue
		}
		if r.status == 403 && name == "permissions" {
			continue // none are granted
		}
		read := d.task(a, d.want(r, 201, "").str("id"))
		if got := read.body[name]; !covers(got, value) {
			t.Errorf("%s was %v and reads back as %v", name, value, got)
		}
		d.same("Location of "+name, r.header.Get("Location"), "/v1/tasks/"+r.str("id"))
	}
	auto := d.want(d.call("POST", "/v1/tasks", a, map[string]any{"type": "a", "model": map[string]any{"auto": true}}), 201, "")
	if model := d.task(a, auto.str("id")).body["model"]; !covers(model, map[string]any{"requested": map[string]any{"auto": true}, "chosen": nil}) {
		t.Errorf("where there is no model, a task that asks for one reads back as %v", model)
	}
	for name, value := range map[string]any{"concurrency_limit": 2, "id": "task_x", "state": "ready", "colour": "red"} {
		d.want(d.call("POST", "/v1/tasks", a, map[string]any{"type": "a", name: value}), 422, "validation_failed", "body."+name)
	}
}

// covers says whether what was answered holds all that was given.
func covers(got, given any) bool {
	switch want := given.(type) {
	case map[string]any:
		in, ok := got.(map[string]any)
		for name, value := range want {
			ok = ok && covers(in[name], value)
		}
		return ok
	default:
		return fmt.Sprint(got) == fmt.Sprint(given)
	}
}

// Values out of bounds are refused where they stand.
func TestBoundsOfATask(t *testing.T) {
	d := open(t)
	_, a := d.tenant("northwind")
	many := map[string]any{}
	for i := range 33 {
		many[fmt.Sprint("l", i)] = "x"
	}
	for place, value := range map[string]any{
		"type": "A b", "priority": 101, "lane": "nowhere", "run_at": "2027-13-01T00:00:00Z", "delay_seconds": -1, "expires_in_seconds": 0,
		"resources.cpu": map[string]any{"cpu": "2"}, "resources.gpu": map[string]any{"gpu": 1.5}, "resources.colour": map[string]any{"colour": 1},
		"timeout.hard_seconds": map[string]any{"hard_seconds": 0}, "timeout_seconds": 0, "retry_policy.backoff": map[string]any{"backoff": "never"},
		"retry_policy.max_attempts": map[string]any{"max_attempts": 0}, "retry_policy.classes.sorrow": map[string]any{"classes": map[string]any{"sorrow": map[string]any{}}},
		"concurrency[0].limit": []any{map[string]any{"key": "a", "limit": 0}}, "idempotency_key": strings.Repeat("k", 256), "labels": many, "labels.a": map[string]any{"a": 5},
		"depends_on[0]": []any{"task_01arz3ndektsv4rrffq69g5fav"}, "depends_on": "a", "on_attempts_exhausted": "sigh", "description": 5,
	} {
		name, _, _ := strings.Cut(strings.Split(place, "[")[0], ".")
		d.want(d.call("POST", "/v1/tasks", a, map[string]any{"type": "a", name: value}), 422, "validation_failed", "body."+place)
		d.want(d.call("POST", "/v1/tasks/batch", a, map[string]any{"tasks": []any{map[string]any{"type": "a"}, map[string]any{"type": "a", name: value}}}), 422, "validation_failed", "body.tasks[1]."+place)
	}
	d.want(d.call("POST", "/v1/tasks", a, map[string]any{"type": "a", "run_at": "2087-01-01T00:00:00Z", "delay_seconds": 5}), 422, "validation_failed")
	if r := d.call("GET", "/v1/tasks?count=true", a, nil); r.at("total.value") != 0.0 {
		t.Errorf("refused bodies left %v tasks", r.at("total.value"))
	}
}
