package web_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

func TestTenantsEnvironmentsLanes(t *testing.T) {
	s := newStage(t)
	root := s.root()
	tenant, _, admin := s.tenant(root, "northwind", "admin:read", "admin:write", "tasks:read")
	if tenant.header.Get("Location") != "/v1/tenants/"+tenant.str("id") || tenant.body["weight"] != 1.0 || tenant.str("timezone") != "UTC" {
		t.Errorf("a new tenant: %v %v", tenant.header.Get("Location"), tenant.body)
	}
	s.want(s.call("POST", "/v1/tenants", `{"name":"again","slug":"northwind"}`, "Authorization", root), 409, "state_conflict")
	s.want(s.call("GET", "/v1/tenants/northwind", nil, "Authorization", root), 200, "")
	s.want(s.call("GET", "/v1/tenants/"+tenant.str("id"), nil, "Authorization", root), 200, "")
	s.want(s.call("GET", "/v1/tenants/ten_00000000000000000000000000", nil, "Authorization", root), 404, "not_found")
	s.want(s.call("GET", "/v1/tenants/northwind", nil, "Authorization", admin), 403, "scope_required")

	lanes := s.want(s.call("GET", "/v1/lanes?order=asc&count=true", nil, "Authorization", admin), 200, "")
	var names []string
	for _, l := range lanes.rows() {
		names = append(names, l["name"].(string))
	}
	if len(names) != 4 || names[0] != "realtime" || names[3] != "batch" || lanes.body["total"].(map[string]any)["value"] != 4.0 {
		t.Errorf("the first lanes: %v", lanes.text)
	}
	s.want(s.call("DELETE", "/v1/lanes/batch", nil, "Authorization", admin), 409, "state_conflict")
	made := s.want(s.call("POST", "/v1/lanes", `{"name":"llm","kind":"io","task_types":["llm.*"],"max_concurrent":5}`, "Authorization", admin), 201, "")
	if made.header.Get("Location") != "/v1/lanes/llm" || made.body["max_concurrent"] != 5.0 || made.body["reason"] != nil || made.body["high_water"] != 1000.0 {
		t.Errorf("a new lane: %s", made.text)
	}
	for body, field := range map[string]string{
		`{"name":"x","kind":"io","alert_depth":5}`:              "body.alert_depth",
		`{"name":"x","kind":"io","colour":"red"}`:               "body.colour",
		`{"name":"x","kind":"nope"}`:                            "body.kind",
		`{"name":"X!","kind":"io"}`:                             "body.name",
		`{"name":"x","kind":"io","weight":0}`:                   "body.weight",
		`{"name":"x","kind":"io","task_types":["ok","no way"]}`: "body.task_types[1]",
		`{"name":"x","kind":"io","weight":"heavy"}`:             "body.weight",
		`{"name":"a\u0000b","kind":"io"}`:                       "body.name",
	} {
		r := s.want(s.call("POST", "/v1/lanes", body, "Authorization", admin), 422, "validation_failed")
		if errors := r.body["errors"].([]any); errors[0].(map[string]any)["location"] != field {
			t.Errorf("%s: got %v, want %s", body, errors, field)
		}
	}
	paused := s.want(s.call("POST", "/v1/lanes/llm/pause", `{"reason":"too hot"}`, "Authorization", admin), 200, "")
	if paused.body["paused"] != true || paused.str("reason") != "too hot" {
		t.Errorf("a paused lane: %s", paused.text)
	}
	if resumed := s.want(s.call("POST", "/v1/lanes/llm/resume", nil, "Authorization", admin), 200, ""); resumed.body["paused"] != false || resumed.body["reason"] != nil {
		t.Errorf("a resumed lane: %s", resumed.text)
	}
	stats := s.want(s.call("GET", "/v1/lanes/llm/stats", nil, "Authorization", admin), 200, "")
	if stats.body["depth"] != 0.0 || stats.body["oldest_age_seconds"] != nil {
		t.Errorf("stats of an empty lane: %s", stats.text)
	}
	s.want(s.call("DELETE", "/v1/lanes/llm", nil, "Authorization", admin), 204, "")
	s.want(s.call("GET", "/v1/lanes/llm", nil, "Authorization", admin), 404, "not_found")

	env := s.want(s.call("POST", "/v1/environments", `{"name":"staging","kind":"staging"}`, "Authorization", admin), 201, "")
	if env.header.Get("Location") != "/v1/environments/staging" {
		t.Errorf("a new environment: %v", env.header)
	}
	s.want(s.call("POST", "/v1/environments", `{"name":"staging"}`, "Authorization", admin), 409, "state_conflict")
	if r := s.want(s.call("GET", "/v1/lanes", nil, "Authorization", admin, "Nightshift-Environment", "staging"), 200, ""); len(r.rows()) != 4 || r.rows()[0]["environment"] != "staging" {
		t.Errorf("lanes of staging: %s", r.text)
	}
	s.want(s.call("GET", "/v1/lanes", nil, "Authorization", admin, "Nightshift-Environment", "nowhere"), 404, "not_found")
	if r := s.want(s.call("POST", "/v1/environments/staging/pause", `{"reason":"night"}`, "Authorization", admin), 200, ""); r.body["paused"] != true {
		t.Errorf("a paused environment: %s", r.text)
	}
}

func TestEditsKeepToTheVersion(t *testing.T) {
	s := newStage(t)
	root := s.root()
	s.tenant(root, "northwind", "admin:write")
	got := s.want(s.call("GET", "/v1/tenants/northwind", nil, "Authorization", root), 200, "")
	tag := got.header.Get("ETag")
	if tag != `"1"` {
		t.Fatalf("ETag %q", tag)
	}
	edited := s.want(s.call("PATCH", "/v1/tenants/northwind", `{"weight":5}`, "Authorization", root, "If-Match", tag), 200, "")
	if edited.body["weight"] != 5.0 || edited.header.Get("ETag") != `"2"` || edited.str("name") != "Tenant northwind" {
		t.Errorf("after the edit: %s %s", edited.header.Get("ETag"), edited.text)
	}
	s.want(s.call("PATCH", "/v1/tenants/northwind", `{"weight":6}`, "Authorization", root, "If-Match", tag), 412, "stale")
	s.want(s.call("PATCH", "/v1/tenants/northwind", `{"weight":6}`, "Authorization", root, "If-Match", "W/x"), 412, "stale")
	s.want(s.call("PATCH", "/v1/tenants/northwind", `{"weight":-1}`, "Authorization", root), 422, "validation_failed")
	s.want(s.call("PATCH", "/v1/tenants/northwind", `{"slug":"other"}`, "Authorization", root), 422, "validation_failed")
	s.want(s.call("PATCH", "/v1/tenants/northwind", `{"timezone":"Mars/Olympus"}`, "Authorization", root), 422, "validation_failed")
	kinds := s.want(s.call("PATCH", "/v1/kinds/batch", `{"weight":3}`, "Authorization", root), 200, "")
	if kinds.body["weight"] != 3.0 {
		t.Errorf("a kind: %s", kinds.text)
	}
	s.want(s.call("PATCH", "/v1/kinds/nope", `{"weight":3}`, "Authorization", root), 404, "not_found")
	if r := s.want(s.call("POST", "/v1/tenants/northwind/suspend", `{"reason":"unpaid"}`, "Authorization", root), 200, ""); r.body["suspended"] != true {
		t.Errorf("suspended: %s", r.text)
	}
	audit := s.want(s.call("GET", "/v1/audit?action=tenant.suspend", nil, "Authorization", root), 200, "")
	if rows := audit.rows(); len(rows) != 1 || rows[0]["reason"] != "unpaid" || rows[0]["actor"].(map[string]any)["id"] != rootID {
		t.Errorf("the audit: %s", audit.text)
	}
}

func TestStateOfThePlatform(t *testing.T) {
	s := newStage(t)
	root := s.root()
	s.await("the replica's row", func() bool {
		r := s.call("GET", "/v1/scheduler", nil, "Authorization", root)
		list, _ := r.body["replicas"].([]any)
		return r.status == 200 && len(list) == 1 && list[0].(map[string]any)["brain"] == true && r.body["depth"] == 0.0
	})
	for path, want := range map[string]int{"/livez": 200, "/readyz": 200, "/healthz": 200, "/metrics": 200, "/docs": 200, "/openapi.json": 200, "/openapi.yaml": 200} {
		if r := s.call("GET", path, nil); r.status != want {
			t.Errorf("%s: %d %s", path, r.status, r.text)
		}
		if r := s.call("HEAD", path, nil); r.status != want || r.text != "" {
			t.Errorf("HEAD %s: %d %q", path, r.status, r.text)
		}
	}
	s.must(s.deps.DB.Platform().Write(t.Context(), func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `UPDATE brain SET schema = schema + 1`) // as a version to come leaves it
		return err
	}))
	s.want(s.call("GET", "/readyz", nil, "Accept", "application/json"), 503, "unavailable")
	if r := s.call("GET", "/readyz", nil, "Accept", "text/html"); r.status != 503 || r.header.Get("Retry-After") != "1" || !strings.Contains(r.header.Get("Content-Type"), "html") {
		t.Errorf("as a page: %d %v", r.status, r.header)
	}
	if r := s.call("GET", "/healthz", nil); r.status != 503 || r.str("brain") != "newer" || r.header.Get("Retry-After") == "" {
		t.Errorf("beside a newer version: %d %s", r.status, r.text)
	}
	s.want(s.call("GET", "/v1/limits", nil), 401, "unauthenticated")
	r := s.want(s.call("GET", "/v1/limits", nil, "Authorization", root), 200, "")
	if r.body["payload_bytes"] != 262144.0 || r.header.Get("RateLimit") == "" || r.header.Get("RateLimit-Policy") == "" {
		t.Errorf("limits: %s %v", r.text, r.header)
	}
	who := s.want(s.call("GET", "/v1/whoami", nil, "Authorization", root), 200, "")
	if who.body["tenant"] != nil || who.body["environment"] != nil || who.str("kind") != "key" || who.str("sub") != rootID {
		t.Errorf("whoami: %s", who.text)
	}
}
