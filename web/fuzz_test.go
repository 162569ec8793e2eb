package web_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// fuzzer makes requests out of the served OpenAPI document: now as it says, now as it forbids.
type fuzzer struct {
	rng     *rand.Rand
	schemas map[string]any
	ids     []string
	known   map[string]string // what there is of each noun, and of each header of the worker protocol
}

var hostileTexts = []string{
	"", " ", "a", "batch", "production", "..", "../../etc/passwd", "%00", "a\x00b", "\u202e", "ñ", "\xff\xfe", "'; DROP TABLE tasks; --", "<script>alert(1)</script>",
	"{{7*7}}", "$(id)", "null", "true", "-1", "1e999", "9223372036854775808", "2026-09-17T21:00:00Z", "2026-13-45T99:99:99Z", "0000-01-01T00:00:00Z",
	"9999-12-31T23:59:59Z", "ten_7zzzzzzzzzzzzzzzzzzzzzzzzz", "task_00000000000000000000000000", "task_", "\U0001F4A9", "llm.*", "*", "UTC", "Mars/Olympus",
}

func (f *fuzzer) text() string {
	switch f.rng.IntN(12) {
	case 0:
		return strings.Repeat("x", 1<<f.rng.IntN(12))
	case 1, 2:
		return f.ids[f.rng.IntN(len(f.ids))]
	case 3, 4, 5:
		return "n" + strconv.Itoa(f.rng.IntN(1000))
	}
	return hostileTexts[f.rng.IntN(len(hostileTexts))]
}

func (f *fuzzer) number() any {
	if f.rng.IntN(2) == 0 {
		return f.rng.IntN(20)
	}
	return []any{0, 1, -1, 7, 100, 101, 1 << 31, -(1 << 31), 1 << 53, 1e300, -1e300, 0.1, 5e-324, json.Number("1e999"), json.Number("99999999999999999999")}[f.rng.IntN(15)]
}

// wild is any JSON at all.
func (f *fuzzer) wild(depth int) any {
	switch f.rng.IntN(8) {
	case 0:
		return nil
	case 1:
		return f.rng.IntN(2) == 0
	case 2, 3:
		return f.number()
	case 4:
		if depth > 3 {
			return []any{}
		}
		return []any{f.wild(depth + 1), f.wild(depth + 1)}
	case 5:
		if depth > 3 {
			return map[string]any{}
		}
		return map[string]any{f.text(): f.wild(depth + 1)}
	}
	return f.text()
}

// value follows a schema, most of the time.
func (f *fuzzer) value(schema any, depth int) any {
	s, _ := schema.(map[string]any)
	if ref, ok := s["$ref"].(string); ok {
		return f.value(f.schemas[strings.TrimPrefix(ref, "#/components/schemas/")], depth)
	}
	if f.rng.IntN(25) == 0 || depth > 5 {
		return f.wild(depth)
	}
	if words, ok := s["enum"].([]any); ok && f.rng.IntN(4) > 0 {
		return words[f.rng.IntN(len(words))]
	}
	for _, word := range []string{"anyOf", "oneOf"} {
		if list, ok := s[word].([]any); ok {
			return f.value(list[f.rng.IntN(len(list))], depth)
		}
	}
	kind, _ := s["type"].(string)
	if list, ok := s["type"].([]any); ok {
		kind, _ = list[f.rng.IntN(len(list))].(string)
	}
	switch kind {
	case "object":
		return f.object(s, depth)
	case "array":
		out := []any{}
		for range f.rng.IntN(4) {
			out = append(out, f.value(s["items"], depth+1))
		}
		return out
	case "integer", "number":
		return f.number()
	case "boolean":
		return f.rng.IntN(2) == 0
	case "null":
		return nil
	case "string":
		return f.text()
	}
	return f.wild(depth)
}

func (f *fuzzer) object(s map[string]any, depth int) any {
	out := map[string]any{}
	properties, _ := s["properties"].(map[string]any)
	required, _ := s["required"].([]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if slices.Contains(required, any(name)) && f.rng.IntN(20) > 0 || f.rng.IntN(3) == 0 {
			out[name] = f.value(properties[name], depth+1)
			switch good := f.known[name]; {
			case name == "wait_seconds":
				out[name] = []any{0, -1, 31, "x", nil}[f.rng.IntN(5)] // nobody waits here
			case good != "" && f.rng.IntN(2) == 0:
				out[name] = good
			}
		}
	}
	if f.rng.IntN(25) == 0 {
		out[f.text()] = f.wild(depth)
	}
	return out
}

// body is a text for a schema, sometimes broken.
func (f *fuzzer) body(schema any) string {
	text, err := json.Marshal(f.value(schema, 0))
	if err != nil {
		return "{"
	}
	out := string(text)
	switch f.rng.IntN(30) {
	case 0:
		return out[:len(out)/2]
	case 1:
		return out + out
	case 2:
		return strings.Replace(out, `":`, `\u0000":`, 1)
	case 3:
		return strings.Repeat("[", 20000)
	case 4:
		return strings.Replace(out, "{", `{"x":1,"x":2,`, 1)
	case 5:
		return strings.ReplaceAll(out, "a", "\xff")
	}
	return out
}

// Nothing a client sends gives a 5xx, and every refusal is a problem. FUZZ_REQUESTS and FUZZ_SEED make it longer or
// repeat a run.
func TestNothingAClientSendsBreaksUs(t *testing.T) {
	s := newStage(t)
	root := s.root()
	tenant, _, a := s.tenant(root, "northwind", scopesOf()...)
	victim := s.want(s.call("POST", "/v1/api-keys", `{"name":"v","scopes":["tasks:read"]}`, "Authorization", a), 201, "")
	task := s.want(s.call("POST", "/v1/tasks", `{"type":"demo.echo"}`, "Authorization", a), 201, "")
	spec := s.call("GET", "/openapi.json", nil).body
	requests, seed := number(os.Getenv("FUZZ_REQUESTS"), 1500), number(os.Getenv("FUZZ_SEED"), 1)
	f := &fuzzer{
		rng: rand.New(rand.NewPCG(uint64(seed), 1)), schemas: spec["components"].(map[string]any)["schemas"].(map[string]any),
		ids: []string{tenant.str("id"), victim.str("id"), task.str("id"), "northwind", "batch", "production"},
	}
	f.known = f.work(s, a)
	f.known["tenants"], f.known["api-keys"], f.known["tasks"] = tenant.str("id"), victim.str("id"), task.str("id")
	paths := spec["paths"].(map[string]any)
	names := slices.Sorted(maps.Keys(paths))
	statuses := map[int]int{}
	for i := range requests {
		path := names[f.rng.IntN(len(names))]
		item := paths[path].(map[string]any)
		method := slices.Sorted(maps.Keys(item))[f.rng.IntN(len(item))]
		if strings.HasSuffix(path, "/stream") || strings.HasSuffix(path, "/wait") || strings.HasSuffix(path, "/events") || strings.Contains(path, "/trouble/") || path == "/metrics" || path == "/healthz" || path == "/readyz" {
			continue
		}
		token, platform := a, f.rng.IntN(2) == 0
		if platform {
			token = root
		}
		r := f.ask(s, strings.ToUpper(method), path, item[method].(map[string]any), token, platform)
		statuses[r.status]++
		if r.status == 401 && i%20 == 0 { // tokens end after a quarter of an hour, and keys are revoked
			root = s.root()
			key := s.call("POST", "/v1/api-keys", map[string]any{"name": "again", "scopes": scopesOf()}, "Authorization", root, "Nightshift-Tenant", "northwind")
			if key.status == 201 { // else a later request tries again
				a = s.token(key.str("client_id"), key.str("client_secret"))
			}
		}
		if r.status == 429 || r.code() == "tenant_suspended" { // the fuzzer has shut itself out: nothing behind the door would be asked
			s.call("PUT", "/v1/quotas", `{}`, "Authorization", root, "Nightshift-Tenant", "northwind")
			s.call("POST", "/v1/tenants/northwind/resume", nil, "Authorization", root)
		}
		if r.status >= 500 {
			t.Errorf("seed %d, request %d: %s %s gave %d: %s\n%s", seed, i, method, path, r.status, r.text, s.loggedOf(r.str("request_id")))
		}
	}
	t.Logf("seed %d: %v", seed, statuses)
}

// work makes what the routes are about: a workflow, a dead letter, and a worker that holds a lease.
func (f *fuzzer) work(s *stage, token string) map[string]string {
	flow := s.want(s.call("POST", "/v1/workflows", `{"name":"w","tasks":[{"key":"a","type":"demo.echo"}]}`, "Authorization", token), 201, "")
	worker := s.want(s.call("POST", "/v1/workers", `{"name":"w","instance_id":"w","version":"1","slots":500,"lease_seconds":300}`, "Authorization", token), 201, "")
	id, session := worker.str("worker_id"), worker.str("session")
	claim := s.want(s.call("POST", "/v1/workers/"+id+"/claim", `{"max_tasks":1}`, "Authorization", token, "Nightshift-Session", session), 200, "")
	lease, _ := claim.body["tasks"].([]any)[0].(map[string]any)
	return map[string]string{
		"workflows": flow.str("id"), "workers": id, "lanes": "batch", "environments": "production", "kinds": "io", "lane": "batch", "type": "demo.echo",
		"worker_id": id, "Nightshift-Session": session, "Nightshift-Lease": lease["lease_token"].(string), "lease_token": lease["lease_token"].(string),
	}
}

// loggedOf are the lines of the log about a request.
func (s *stage) loggedOf(request string) string {
	var lines []string
	for line := range strings.Lines(s.logged()) {
		if request != "" && strings.Contains(line, request) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

func number(text string, preset int) int {
	if n, err := strconv.Atoi(text); err == nil {
		return n
	}
	return preset
}

func (f *fuzzer) ask(s *stage, method, path string, op map[string]any, token string, platform bool) reply {
	headers := []string{"Authorization", token, "Nightshift-Tenant", ""}
	if platform && f.rng.IntN(8) > 0 || f.rng.IntN(40) == 0 {
		headers[3] = "northwind"
	}
	query := url.Values{}
	params, _ := op["parameters"].([]any)
	for _, p := range params {
		param := p.(map[string]any)
		name := param["name"].(string)
		switch param["in"] {
		case "path":
			named := f.text()
			if good := f.known[strings.Split(path, "/")[2]]; good != "" && f.rng.IntN(3) > 0 {
				named = good
			}
			path = strings.Replace(path, "{"+name+"}", url.PathEscape(named), 1)
		case "query":
			if f.rng.IntN(4) == 0 {
				query.Set(name, fmt.Sprint(f.value(param["schema"], 3)))
			}
		case "header":
			if good := f.known[name]; good != "" && f.rng.IntN(4) > 0 {
				headers = append(headers, name, good)
			} else if name != "Nightshift-Tenant" && f.rng.IntN(4) == 0 {
				headers = append(headers, name, url.PathEscape(f.text()))
			}
		}
	}
	query.Del("wait_seconds")
	query.Del("timeout_seconds")
	if f.rng.IntN(20) == 0 {
		query.Set(f.text(), f.text())
	}
	if encoded := query.Encode(); encoded != "" {
		path += "?" + encoded
	}
	var body any
	if request, ok := op["requestBody"].(map[string]any); ok {
		for _, content := range request["content"].(map[string]any) {
			body = f.body(content.(map[string]any)["schema"])
		}
		if f.rng.IntN(30) == 0 {
			headers = append(headers, "Content-Type", f.text())
		}
	}
	for i := range headers {
		if strings.ContainsAny(headers[i], "\x00\r\n") {
			headers[i] = "x"
		}
	}
	return s.call(method, path, body, headers...)
}
