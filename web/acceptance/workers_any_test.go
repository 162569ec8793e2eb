package acceptance

import "testing"

// Lists that a worker leaves out mean all, an empty one none, and a key narrows both.
func TestListsThatWorkersLeaveOutMeanAll(t *testing.T) {
	d := open(t)
	_, a := d.tenant("northwind")
	d.want(d.call("PUT", "/v1/permissions", d.root, map[string]any{"granted": []string{"mail", "shell"}}, "Nightshift-Tenant", "northwind"), 200, "")
	needy := func() string {
		return d.submit(a, map[string]any{"type": "a", "permissions": []string{"mail"}, "model": "small"})
	}
	view := func(h *hand) reply { return d.want(d.call("GET", "/v1/workers/"+h.id, a, nil), 200, "") }

	none := d.hand(a, map[string]any{"models": []string{}, "permissions": []string{}})
	task := needy()
	if ids, _, _ := none.claim(1, 0); len(ids) != 0 {
		t.Errorf("a worker of nothing got %v", ids)
	}
	if why := d.want(d.call("GET", "/v1/tasks/"+task+"/explain", a, nil), 200, ""); why.str("blocked_by.0.reason") != "no_capable_worker" {
		t.Errorf("explained %s", why.text)
	}
	if v := view(none); len(v.list("models")) != 0 || v.at("models") == nil || v.at("permissions") == nil {
		t.Errorf("none reads %s", v.text)
	}

	all := d.hand(a, nil)
	if v := view(all); v.at("models") != nil || v.at("permissions") != nil {
		t.Errorf("all reads %s", v.text)
	}
	id, token, r := all.one()
	if id != task || r.str("tasks.0.model") != "small" || r.str("tasks.0.permissions.0") != "mail" {
		t.Errorf("a worker of all got %s", r.text)
	}
	all.report(token, "succeeded", nil)
	all.want(all.ask("/heartbeat", map[string]any{"leases": []any{}, "models": []string{}}), 200, "")
	again := needy()
	if ids, _, _ := all.claim(1, 0); len(ids) != 0 {
		t.Errorf("a worker that has unloaded its models got %v", ids)
	}
	d.want(d.call("POST", "/v1/tasks/"+again+"/cancel", a, nil), 200, "")

	key := d.want(d.call("POST", "/v1/api-keys", a, map[string]any{"name": "narrow", "scopes": []string{"workers:register"}, "permissions": []string{"mail"}}), 201, "")
	narrow := d.token(key.str("client_id"), key.str("client_secret"))
	held := d.hand(narrow, nil)
	if v := view(held); v.at("models") != nil || len(v.list("permissions")) != 1 || v.str("permissions.0") != "mail" {
		t.Errorf("a worker of a narrow key reads %s", v.text)
	}
	d.want(d.call("POST", "/v1/workers", narrow, map[string]any{"name": "w", "instance_id": "wide", "permissions": []string{"shell"}}), 403, "permission_not_allowed")
	d.want(d.call("POST", "/v1/workers", narrow, map[string]any{"name": "w", "instance_id": "less", "permissions": []string{}}), 201, "")
}
