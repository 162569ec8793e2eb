package api_test

import "testing"

func TestABudgetOfRetriesOverHTTP(t *testing.T) {
	s := newStage(t)
	w := s.register(s.acme, nil)
	for _, bad := range []any{0, -1, 1.5, "3"} {
		s.refused(s.call("POST", "/v1/workflows", s.acme, with(chain("a"), "budget", map[string]any{"max_retries": bad})), "body.budget.max_retries")
	}
	made := s.want(s.call("POST", "/v1/workflows", s.acme, with(with(many(1, "x", nil), "name", "night"), "budget", map[string]any{"max_retries": 1})), 201, "")
	path := "/v1/workflows/" + made.str("id")
	budget := made.at("budget")
	if budget.at("limit").num("retries") != 1 || budget.at("used").num("retries") != 0 || budget.at("left").num("retries") != 1 {
		t.Errorf("the budget %s", made.text)
	}
	flaky := func() {
		t.Helper()
		leases := w.claim(1, 10)
		if len(leases) == 0 {
			t.Fatal("nothing starts")
		}
		result := broken(leases[0])
		result["error"] = map[string]any{"class": "network", "message": "no network"}
		w.report(result)
	}
	flaky()
	if row := s.call("GET", path, s.acme, nil).at("budget"); row.at("used").num("retries") != 1 || row.at("left").num("retries") != 0 {
		t.Errorf("used %v", row.body)
	}
	flaky()
	dead := s.want(s.call("GET", "/v1/dead-letters/tasks", s.acme, nil), 200, "").rows("data")
	if len(dead) != 1 || dead[0].str("reason") != "its workflow's max_retries were used up: it would have been tried again" || dead[0].at("error").str("class") != "network" {
		t.Fatalf("dead letters %v", dead)
	}
	s.refused(s.call("PATCH", path, s.acme, `{"budget":{"max_retries":0}}`), "body.budget.max_retries")
	if edited := s.want(s.call("PATCH", path, s.acme, `{"budget":{"max_retries":3}}`), 200, ""); edited.at("budget").at("left").num("retries") != 2 {
		t.Errorf("raised %s", edited.text)
	}
	s.refused(s.call("PATCH", path, s.acme, `{"budget":{"max_retries":2}}`), "body.budget.max_retries")
	again := s.want(s.call("POST", path+"/retry", s.acme, nil), 200, "")
	if again.str("state") != "running" || again.at("counts").num("dead_letter") != 0 || again.at("counts").num("ready") != 1 {
		t.Errorf("retried %s", again.text)
	}
	flaky()
	if row := s.call("GET", path, s.acme, nil); row.at("counts").num("retry_wait") != 1 || row.at("budget").at("used").num("retries") != 2 {
		t.Errorf("with retries left: %s", row.text)
	}
	own := s.submit(s.acme, map[string]any{"type": "t", "budget": map[string]any{"max_retries": 4}})
	if own.at("budget").num("max_retries") != 4 {
		t.Errorf("a task's own %s", own.text)
	}
}
