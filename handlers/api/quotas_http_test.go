package api_test

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"
)

// scoped is a token of a tenant's key with these scopes, and perhaps these permissions.
func (s *stage) scoped(token string, permissions []string, scopes ...string) string {
	s.t.Helper()
	key := map[string]any{"name": "narrow", "scopes": scopes}
	if permissions != nil {
		key["permissions"] = permissions
	}
	made := s.want(s.call("POST", "/v1/api-keys", token, key), 201, "")
	return s.token(made.str("client_id"), made.str("client_secret"))
}

func TestQuotasOverHTTP(t *testing.T) {
	s := newStage(t)
	first := s.want(s.call("GET", "/v1/quotas", s.acme, nil), 200, "")
	if tag := first.header.Get("ETag"); tag != `"1"` || first.num("weight") != 1 || first.body["max_concurrent"] != nil {
		t.Fatalf("at first: %s %s", tag, first.text)
	}
	for _, name := range []string{"max_queued", "max_gpus", "max_vram_mb", "tokens_per_minute", "requests_per_minute", "max_schedules", "min_schedule_interval_seconds", "updated_at"} {
		if _, there := first.body[name]; !there {
			t.Errorf("%s is not answered: %s", name, first.text)
		}
	}
	set := s.want(s.call("PUT", "/v1/quotas", s.acme, `{"max_concurrent":3,"max_queued":5,"weight":1}`, "If-Match", `"1"`), 200, "")
	if set.num("max_concurrent") != 3 || set.num("max_queued") != 5 || set.header.Get("ETag") != `"2"` {
		t.Errorf("set: %s", set.text)
	}
	s.want(s.call("PUT", "/v1/quotas", s.acme, `{"max_concurrent":9}`, "If-Match", `"1"`), 412, "stale")
	s.want(s.call("PUT", "/v1/quotas", s.acme, `{"weight":2}`), 403, "forbidden")
	if r := s.want(s.call("PUT", "/v1/quotas", s.root, `{"weight":2,"max_gpus":4}`, "Nightshift-Tenant", "acme"), 200, ""); r.num("weight") != 2 || r.body["max_concurrent"] != nil {
		t.Errorf("by the platform: %s", r.text)
	}
	if r := s.want(s.call("GET", "/v1/tenants/acme", s.root, nil), 200, ""); r.num("weight") != 2 {
		t.Errorf("the tenant weighs %s", r.text)
	}
	if r := s.want(s.call("GET", "/v1/quotas", s.blue, nil), 200, ""); r.body["max_gpus"] != nil {
		t.Errorf("another tenant's: %s", r.text)
	}
	for location, bad := range map[string]string{
		"body.max_concurrent": `{"max_concurrent":-1}`, "body.max_gpus": `{"max_gpus":"four"}`, "body.tokens_per_minute": `{"tokens_per_minute":0}`,
		"body.requests_per_minute": `{"requests_per_minute":0}`, "body.max_cpus": `{"max_cpus":1}`,
		"body.min_schedule_interval_seconds": `{"min_schedule_interval_seconds":0}`,
	} {
		s.refused(s.call("PUT", "/v1/quotas", s.acme, bad), location)
	}
	s.refused(s.call("PUT", "/v1/quotas", s.root, `{"weight":0}`, "Nightshift-Tenant", "acme"), "body.weight")
	s.want(s.call("GET", "/v1/quotas", s.root, nil), 400, "tenant_required")
	s.want(s.call("GET", "/v1/quotas?limit=1", s.acme, nil), 400, "invalid_query")
	reader := s.scoped(s.acme, nil, "admin:read")
	s.want(s.call("GET", "/v1/quotas", reader, nil), 200, "")
	s.want(s.call("PUT", "/v1/quotas", reader, `{}`), 403, "scope_required")
	s.want(s.call("GET", "/v1/quotas", s.scoped(s.acme, nil, "tasks:read"), nil), 403, "scope_required")
	audit := s.want(s.call("GET", "/v1/audit?action=quotas.edit", s.acme, nil), 200, "").rows("data")
	if len(audit) != 2 || audit[0].at("after").num("max_gpus") != 4 || audit[1].at("before").body["max_concurrent"] != nil {
		t.Errorf("the audit has %v", audit)
	}
}

func TestAFullQueueOverHTTP(t *testing.T) {
	s := newStage(t)
	s.want(s.call("PUT", "/v1/quotas", s.acme, `{"max_queued":3}`), 200, "")
	s.submit(s.acme, map[string]any{"type": "a"})
	batch := func(n int) reply {
		return s.call("POST", "/v1/tasks/batch", s.acme, `{"tasks":[`+strings.TrimSuffix(strings.Repeat(`{"type":"a"},`, n), ",")+`]}`)
	}
	if r := s.want(batch(3), 429, "queue_full"); r.header.Get("Retry-After") == "" {
		t.Errorf("headers %v", r.header)
	}
	s.want(s.call("POST", "/v1/workflows", s.acme, `{"name":"w","tasks":[{"key":"a","type":"a"},{"key":"b","type":"a","depends_on":["a"]},{"key":"c","type":"a"}]}`), 429, "queue_full")
	s.want(batch(1200), 429, "queue_full") // staged
	s.want(batch(2), 201, "")
	s.want(s.call("POST", "/v1/tasks", s.acme, `{"type":"a"}`), 429, "queue_full")
	dry := s.want(s.call("POST", "/v1/tasks?dry_run=true", s.acme, `{"type":"a"}`), 200, "")
	if r := dry.rows("refusals"); len(r) != 1 || r[0].str("code") != "queue_full" {
		t.Errorf("a dry run: %s", dry.text)
	}
	s.submit(s.blue, map[string]any{"type": "a"}) // another tenant's queue is its own
	s.want(s.call("PUT", "/v1/quotas", s.acme, `{}`), 200, "")
	s.want(batch(1200), 201, "")
}

func TestRequestsAMinuteOverHTTP(t *testing.T) {
	s := newStage(t)
	s.want(s.call("PUT", "/v1/quotas", s.acme, `{"requests_per_minute":5}`), 200, "")
	w := s.register(s.acme, nil)
	var refused reply
	began := time.Now()
	for i := range 20 {
		r := s.call("GET", "/v1/whoami", s.acme, nil)
		if policy := r.header.Get("RateLimit-Policy"); policy != `"requests";q=5;w=60` {
			t.Fatalf("policy %s", policy)
		}
		if r.status != 200 {
			refused = r
			if more := int(time.Since(began) / (12 * time.Second)); i > 5+more { // where the machine is slow, one comes back each 12 s
				t.Errorf("%d went through at once", i)
			}
			break
		}
	}
	s.want(refused, 429, "rate_limited")
	if wait, err := strconv.Atoi(refused.header.Get("Retry-After")); err != nil || wait < 1 || wait > 12 {
		t.Errorf("Retry-After %q", refused.header.Get("Retry-After"))
	}
	if left := refused.header.Get("RateLimit"); !strings.HasPrefix(left, `"requests";r=0;t=`) {
		t.Errorf("RateLimit %s", left)
	}
	s.want(s.call("GET", "/v1/whoami", s.blue, nil), 200, "") // others have their own
	for range 10 {
		w.claim(1, 0) // workers may always report
	}
}

func TestPermissionsOverHTTP(t *testing.T) {
	s := newStage(t)
	if r := s.want(s.call("GET", "/v1/permissions", s.acme, nil), 200, ""); len(r.body["granted"].([]any)) != 0 || r.header.Get("ETag") != `"1"` {
		t.Fatalf("at first: %s", r.text)
	}
	task := map[string]any{"type": "a", "permissions": []string{"internet.search"}}
	s.want(s.call("POST", "/v1/tasks", s.acme, task), 403, "permission_not_allowed")
	s.want(s.call("POST", "/v1/tasks/batch", s.acme, map[string]any{"tasks": []any{task}}), 403, "permission_not_allowed")
	s.want(s.call("PUT", "/v1/permissions", s.acme, `{"granted":["mail","internet.search","mail"]}`), 200, "")
	made := s.submit(s.acme, task)
	if fmt.Sprint(made.body["permissions"]) != "[internet.search]" {
		t.Errorf("submitted %s", made.text)
	}
	narrow := s.scoped(s.acme, []string{"mail"}, "tasks:write")
	s.want(s.call("POST", "/v1/tasks", narrow, task), 403, "permission_not_allowed")
	s.want(s.call("POST", "/v1/tasks", narrow, `{"type":"a","permissions":["mail"]}`), 201, "")
	w := s.register(s.acme, map[string]any{"permissions": []string{"internet.search"}})
	if r := s.want(s.call("PUT", "/v1/permissions", s.acme, `{"granted":[]}`, "If-Match", `"2"`), 200, ""); r.header.Get("ETag") != `"3"` {
		t.Errorf("withdrawn: %s", r.text)
	}
	if got := w.claim(5, 0); len(got) != 0 {
		t.Errorf("claimed %v", got)
	}
	why := s.want(s.call("GET", "/v1/tasks/"+made.str("id")+"/explain", s.acme, nil), 200, "").rows("blocked_by")
	if len(why) != 1 || why[0].str("reason") != "permission" || !strings.Contains(why[0].str("detail"), "internet.search") {
		t.Errorf("explained by %v", why)
	}
	s.want(s.call("PUT", "/v1/permissions", s.acme, `{"granted":["internet.search"]}`), 200, "")
	got := w.claim(5, 5)
	if len(got) != 1 || fmt.Sprint(got[0].body["permissions"]) != "[internet.search]" {
		t.Fatalf("granted again: %v", got)
	}
	spawn := func(permission string) reply {
		return s.call("POST", "/v1/tasks/"+got[0].str("task_id")+"/children", s.acme,
			map[string]any{"tasks": []any{map[string]any{"key": permission, "type": "a", "permissions": []string{permission}}}}, "Nightshift-Lease", got[0].str("lease_token"))
	}
	s.want(s.call("PUT", "/v1/permissions", s.acme, `{"granted":["internet.search","mail"]}`), 200, "")
	s.want(spawn("mail"), 403, "permission_not_allowed")
	s.want(spawn("internet.search"), 201, "")
	for location, bad := range map[string]string{"body.granted": `{}`, "body.granted[0]": `{"granted":["No Name"]}`, "body.denied": `{"granted":[],"denied":[]}`} {
		s.refused(s.call("PUT", "/v1/permissions", s.acme, bad), location)
	}
	s.refused(s.call("POST", "/v1/tasks", s.acme, `{"type":"a","permissions":["UPPER"]}`), "body.permissions[0]")
	if r := s.want(s.call("GET", "/v1/permissions", s.blue, nil), 200, ""); len(r.body["granted"].([]any)) != 0 {
		t.Errorf("another tenant's: %s", r.text)
	}
	s.want(s.call("PUT", "/v1/permissions", narrow, `{"granted":[]}`), 403, "scope_required")
}

func TestTaskTypesOverHTTP(t *testing.T) {
	s := newStage(t)
	if r := s.want(s.call("GET", "/v1/task-types/mail.send", s.acme, nil), 200, ""); r.str("type") != "mail.send" || r.body["input_schema"] != nil || r.body["paused"] != false {
		t.Fatalf("at first: %s", r.text)
	}
	schema := `{"type":"object","required":["to"],"properties":{"to":{"type":"array","items":{"type":"string"}}}}`
	edited := s.want(s.call("PATCH", "/v1/task-types/mail.send", s.acme, `{"input_schema":`+schema+`,"max_concurrent":2}`, "If-Match", `"1"`), 200, "")
	if edited.at("input_schema").str("type") != "object" || edited.num("max_concurrent") != 2 || edited.header.Get("ETag") != `"2"` {
		t.Errorf("edited: %s", edited.text)
	}
	s.want(s.call("PATCH", "/v1/task-types/mail.send", s.acme, `{"paused":true}`, "If-Match", `"1"`), 412, "stale")
	s.refused(s.call("POST", "/v1/tasks", s.acme, `{"type":"mail.send","payload":{"to":["a",7]}}`), "body.payload.to[1]")
	s.refused(s.call("POST", "/v1/tasks", s.acme, `{"type":"mail.send"}`), "body.payload")
	s.refused(s.call("POST", "/v1/tasks/batch", s.acme, `{"tasks":[{"type":"a"},{"type":"mail.send","payload":{}}]}`), "body.tasks[1].payload")
	s.refused(s.call("POST", "/v1/workflows", s.acme, `{"name":"w","tasks":[{"key":"a","type":"mail.send","payload":{"to":1}}]}`), "body.tasks[0].payload.to")
	s.want(s.call("POST", "/v1/tasks", s.blue, `{"type":"mail.send","payload":7}`), 201, "") // another tenant says nothing of it
	id := s.submit(s.acme, map[string]any{"type": "mail.send", "payload": map[string]any{"to": []string{"a"}}}).str("id")
	other := s.submit(s.acme, map[string]any{"type": "mail.send", "payload": map[string]any{"to": []string{}}}).str("id")
	s.want(s.call("POST", "/v1/tasks/"+other+"/cancel", s.acme, `{}`), 200, "")
	s.refused(s.call("POST", "/v1/tasks/"+other+"/retry", s.acme, `{"payload":{"to":7}}`), "body.payload.to")
	again := s.want(s.call("POST", "/v1/tasks/"+other+"/retry", s.acme, `{}`), 201, "").str("id")
	s.want(s.call("POST", "/v1/tasks/"+again+"/cancel", s.acme, `{}`), 200, "")
	s.refused(s.call("POST", "/v1/batches", s.acme, `{"name":"b","task":{"type":"mail.send"},"items":["a"],"batch_size":1}`), "body.task.payload")
	s.want(s.call("PATCH", "/v1/task-types/mail.send", s.acme, `{"paused":true,"reason":"the relay is down"}`), 200, "")
	w := s.register(s.acme, nil)
	if got := w.claim(5, 0); len(got) != 0 {
		t.Errorf("a paused type started: %v", got)
	}
	why := s.want(s.call("GET", "/v1/tasks/"+id+"/explain", s.acme, nil), 200, "").rows("blocked_by")
	if len(why) != 1 || why[0].str("reason") != "type_paused" || !strings.Contains(why[0].str("detail"), "the relay is down") {
		t.Errorf("explained by %v", why)
	}
	if r := s.want(s.call("PATCH", "/v1/task-types/mail.send", s.acme, `{"paused":null,"input_schema":null,"max_concurrent":null}`), 200, ""); r.body["reason"] != nil || r.body["max_concurrent"] != nil {
		t.Errorf("cleared: %s", r.text)
	}
	if got := w.claim(5, 5); len(got) != 1 {
		t.Errorf("resumed: %v", got)
	}
	s.want(s.call("POST", "/v1/tasks", s.acme, `{"type":"mail.send","payload":7}`), 201, "")
	for location, bad := range map[string]string{
		"body.input_schema": `{"input_schema":{"type":"strung"}}`, "body.max_concurrent": `{"max_concurrent":-1}`, "body.paused": `{"paused":"yes"}`, "body.weight": `{"weight":1}`,
	} {
		s.refused(s.call("PATCH", "/v1/task-types/mail.send", s.acme, bad), location)
	}
	s.refused(s.call("PATCH", "/v1/task-types/x", s.acme, `{"input_schema":{"$ref":"http://169.254.169.254/"}}`), "body.input_schema")
	for _, name := range []string{"No%20Name", "%00", url.PathEscape(strings.Repeat("x", 200))} {
		s.want(s.call("GET", "/v1/task-types/"+name, s.acme, nil), 404, "not_found")
		s.want(s.call("PATCH", "/v1/task-types/"+name, s.acme, `{"paused":true}`), 404, "not_found")
	}
	for i := range 3 {
		s.want(s.call("PATCH", fmt.Sprintf("/v1/task-types/type-%d", i), s.acme, `{"paused":true}`), 200, "")
	}
	seen, cursor := []string{}, ""
	for range 5 {
		page := s.want(s.call("GET", "/v1/task-types?limit=2&order=asc&count=true"+cursor, s.acme, nil), 200, "")
		if page.at("total").num("value") != 4 {
			t.Errorf("total: %s", page.text)
		}
		for _, row := range page.rows("data") {
			seen = append(seen, row.str("type"))
		}
		if page.body["next_cursor"] == nil {
			break
		}
		cursor = "&cursor=" + url.QueryEscape(page.str("next_cursor"))
	}
	if got := strings.Join(seen, " "); got != "mail.send type-0 type-1 type-2" {
		t.Errorf("listed %s", got)
	}
	if rows := s.want(s.call("GET", "/v1/task-types", s.blue, nil), 200, "").rows("data"); len(rows) != 0 {
		t.Errorf("another tenant sees %v", rows)
	}
	s.want(s.call("PATCH", "/v1/task-types/a", s.scoped(s.acme, nil, "tasks:read"), `{"paused":true}`), 403, "scope_required")
	s.want(s.call("GET", "/v1/task-types/a", s.scoped(s.acme, nil, "tasks:read"), nil), 200, "")
}

func TestScheduleQuotasOverHTTP(t *testing.T) {
	s := newStage(t)
	schedule := func(name, rule string) reply {
		return s.call("POST", "/v1/schedules", s.root, `{"name":"`+name+`",`+rule+`,"task":{"type":"a","permissions":[]}}`, "Nightshift-Tenant", "acme")
	}
	often := s.want(schedule("often", `"kind":"interval","every_seconds":5`), 201, "")
	s.want(s.call("PUT", "/v1/quotas", s.root, `{"max_schedules":2,"min_schedule_interval_seconds":60}`, "Nightshift-Tenant", "acme"), 200, "")
	for name, c := range map[string][2]string{
		"fast":   {`"kind":"interval","every_seconds":59`, "the nearest valid form is 60"},
		"faster": {`"kind":"cron","expression":"*/30 * * * * *"`, `the nearest valid form is \"* * * * *\"`},
	} {
		if r := s.want(schedule(name, c[0]), 422, "invalid_schedule"); !strings.Contains(r.text, c[1]) || !strings.Contains(r.text, "min_schedule_interval_seconds is 60") {
			t.Errorf("%s: %s", name, r.text)
		}
	}
	s.want(schedule("fine", `"kind":"cron","expression":"* * * * *"`), 201, "")
	s.want(schedule("third", `"kind":"cron","expression":"0 8 * * *"`), 422, "invalid_schedule")
	s.want(s.call("PATCH", "/v1/schedules/"+often.str("id"), s.root, `{"description":"from before the quota"}`, "Nightshift-Tenant", "acme"), 200, "")
	s.want(s.call("PATCH", "/v1/schedules/"+often.str("id"), s.root, `{"every_seconds":10}`, "Nightshift-Tenant", "acme"), 422, "invalid_schedule")
	s.want(s.call("PATCH", "/v1/schedules/"+often.str("id"), s.root, `{"every_seconds":600}`, "Nightshift-Tenant", "acme"), 200, "")
	s.want(s.call("PATCH", "/v1/schedules/"+often.str("id"), s.root, `{"task":{"type":"a","permissions":["mail"]}}`, "Nightshift-Tenant", "acme"), 403, "permission_not_allowed")
}

func TestTokensOverHTTP(t *testing.T) {
	s := newStage(t)
	s.want(s.call("PUT", "/v1/quotas", s.acme, `{"tokens_per_minute":1000}`), 200, "")
	made := s.submit(s.acme, map[string]any{"type": "a", "resources": map[string]any{"tokens": 1500}})
	if made.at("resources").num("tokens") != 1500 || s.task(s.acme, made.str("id")).at("resources").num("tokens") != 1500 {
		t.Errorf("submitted %s", made.text)
	}
	second := s.submit(s.acme, map[string]any{"type": "a", "resources": map[string]any{"tokens": 1500}}).str("id")
	w := s.register(s.acme, nil)
	if got := w.claim(5, 0); len(got) != 1 {
		t.Fatalf("claimed %d", len(got))
	}
	why := s.want(s.call("GET", "/v1/tasks/"+second+"/explain", s.acme, nil), 200, "").rows("blocked_by")
	if len(why) != 1 || why[0].str("reason") != "rate_limit" {
		t.Errorf("explained by %v", why)
	}
	s.refused(s.call("POST", "/v1/tasks", s.acme, `{"type":"a","resources":{"tokens":-1}}`), "body.resources.tokens")
	s.refused(s.call("POST", "/v1/tasks", s.acme, `{"type":"a","resources":{"tokens":"many"}}`), "body.resources.tokens")
	if r := s.submit(s.acme, map[string]any{"type": "a", "resources": map[string]any{"tokens": nil}}); r.at("resources").body["tokens"] != nil {
		t.Errorf("none: %s", r.text)
	}
}
