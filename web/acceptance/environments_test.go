package acceptance

import "testing"

// An environment with anything left to do stays; an empty one is closed, seen by nobody, and its name is free again.
func TestEnvironmentsAreDeletedWhenNothingIsLeftToDo(t *testing.T) {
	d := open(t)
	_, a := d.tenant("northwind")
	_, b := d.tenant("southwind")
	path := "/v1/environments/staging"
	made := d.want(d.call("POST", "/v1/environments", a, map[string]any{"name": "staging", "kind": "staging"}), 201, "")
	there := []string{"Nightshift-Environment", "staging"}
	refused := func(why string) {
		t.Helper()
		if r := d.want(d.call("DELETE", path, a, nil), 409, "state_conflict"); r.str("detail") == "" {
			t.Errorf("%s: %s", why, r.text)
		}
		d.want(d.call("POST", "/v1/tasks?dry_run=true", a, map[string]any{"type": "a"}, there...), 200, "")
	}
	d.want(d.call("DELETE", "/v1/environments/production", a, nil), 409, "state_conflict")
	d.want(d.call("DELETE", "/v1/environments/production", b, nil), 409, "state_conflict") // its only one
	d.want(d.call("DELETE", path, b, nil), 404, "not_found")
	d.want(d.call("DELETE", "/v1/environments/nowhere", a, nil), 404, "not_found")
	d.want(d.call("DELETE", path, a, nil, "If-Match", `"77"`), 412, "stale")

	task := d.want(d.call("POST", "/v1/tasks", a, map[string]any{"type": "a", "delay_seconds": 3600}, there...), 201, "").str("id")
	refused("a task that waits for its time")
	d.want(d.call("POST", "/v1/tasks/"+task+"/cancel", a, nil, there...), 200, "")
	ready := d.want(d.call("POST", "/v1/tasks", a, map[string]any{"type": "a"}, there...), 201, "").str("id")
	refused("a task that is ready")
	h := d.hand(a, nil)
	_, token, _ := h.one()
	refused("a task that runs")
	h.report(token, "failed", failure("invalid_input"))
	refused("a dead letter")
	d.want(d.call("POST", "/v1/tasks/"+ready+"/discard", a, map[string]any{"reason": "a test"}, there...), 200, "")
	d.want(d.call("POST", "/v1/queues/inbox/items", a, map[string]any{"items": []any{map[string]any{"data": 1}}}, there...), 202, "")
	refused("an item that waits")
	clock := d.key("northwind", "schedules:read", "schedules:write", "tasks:write")
	schedule := d.want(d.call("POST", "/v1/schedules", clock, map[string]any{
		"name": "drain", "kind": "drain", "drain": map[string]any{"queue": "inbox"}, "task": map[string]any{"type": "b"},
	}, there...), 201, "").str("id")
	refused("a schedule")
	id, token, _ := h.one()
	h.report(token, "succeeded", nil)
	d.want(d.call("DELETE", "/v1/schedules/"+schedule, clock, nil, there...), 204, "")

	tag := d.want(d.call("GET", path, a, nil), 200, "").header.Get("ETag")
	d.want(d.call("DELETE", path, a, nil, "If-Match", tag), 204, "")
	d.want(d.call("GET", path, a, nil), 404, "not_found")
	d.want(d.call("GET", "/v1/environments/"+made.str("id"), a, nil), 404, "not_found")
	d.want(d.call("PATCH", path, a, map[string]any{"kind": "development"}), 404, "not_found")
	d.want(d.call("DELETE", path, a, nil), 404, "not_found")
	d.want(d.call("GET", "/v1/tasks/"+id, a, nil, there...), 404, "not_found")
	d.want(d.call("POST", "/v1/tasks", a, map[string]any{"type": "a"}, there...), 404, "not_found")
	if r := d.want(d.call("GET", "/v1/environments?count=true", a, nil), 200, ""); len(r.list("data")) != 1 || r.at("total.value") != 1.0 {
		t.Errorf("listed: %s", r.text)
	}
	if r := d.want(d.call("GET", "/v1/audit?action=environment.delete", a, nil), 200, ""); len(r.list("data")) != 1 || r.at("data.0.after") != nil || r.str("data.0.before.name") != "staging" {
		t.Errorf("the audit: %s", r.text)
	}
	again := d.want(d.call("POST", "/v1/environments", a, map[string]any{"name": "staging"}), 201, "")
	if again.str("id") == made.str("id") || len(d.want(d.call("GET", "/v1/tasks", a, nil, there...), 200, "").list("data")) != 0 {
		t.Errorf("made again: %s", again.text)
	}
}

// A key belongs to the environments that stood when it was made: one made again under the name of a deleted one is another,
// and a key of deleted ones alone is dead.
func TestKeysOfADeletedEnvironment(t *testing.T) {
	d := open(t)
	_, a := d.tenant("northwind")
	d.want(d.call("POST", "/v1/environments", a, map[string]any{"name": "staging"}), 201, "")
	key := func(environments ...string) (id, secret string) {
		r := d.want(d.call("POST", "/v1/api-keys", a, map[string]any{"name": "k", "scopes": []string{"tasks:read", "tasks:write"}, "environments": environments}), 201, "")
		return r.str("id"), r.str("client_secret")
	}
	alone, aloneSecret := key("staging")
	both, bothSecret := key("staging", "production")
	held, wide := d.token(alone, aloneSecret), d.token(both, bothSecret)
	d.want(d.call("GET", "/v1/tasks", held, nil), 200, "")
	d.want(d.call("DELETE", "/v1/environments/staging", a, nil), 204, "")
	dead := func() {
		t.Helper()
		d.want(d.call("GET", "/v1/tasks", held, nil), 401, "unauthenticated")
		body := map[string]any{"grant_type": "client_credentials", "client_id": alone, "client_secret": aloneSecret}
		d.want(d.call("POST", "/v1/auth/token", "", body), 401, "invalid_client")
		d.same("where the other acts", d.want(d.call("GET", "/v1/whoami", wide, nil), 200, "").str("environment"), "production")
		d.same("listed", d.want(d.call("GET", "/v1/api-keys/"+alone, a, nil), 200, "").at("closed_environments"), []any{"staging"})
	}
	dead()
	d.want(d.call("POST", "/v1/environments", a, map[string]any{"name": "staging"}), 201, "")
	dead()
	d.want(d.call("GET", "/v1/tasks", wide, nil, "Nightshift-Environment", "staging"), 403, "forbidden")
	fresh := d.token(key("staging"))
	d.same("a key made since", d.want(d.call("GET", "/v1/whoami", fresh, nil), 200, "").str("environment"), "staging")
	d.submit(fresh, map[string]any{"type": "a"})
}
