package api_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
)

// paid reports a task done, with what it cost.
func paid(lease reply, usd float64) map[string]any {
	report := done(lease, nil)
	report["usage"] = map[string]any{"cost_usd": usd, "tokens_in": 10}
	return report
}

func TestBudgetsOverHTTP(t *testing.T) {
	s := newStage(t)
	made := s.want(s.call("POST", "/v1/budgets", s.acme, `{"scope":"tenant","period":"day","timezone":"Africa/Lusaka","limit_usd":1.5,"on_exhausted":"reject"}`), 201, "")
	id := made.str("id")
	if !strings.HasPrefix(id, "bud_") || made.header.Get("Location") != "/v1/budgets/"+id || made.num("limit_usd") != 1.5 || made.num("spent_usd") != 0 ||
		made.num("reserved_usd") != 0 || made.num("remaining_usd") != 1.5 || !strings.HasSuffix(made.str("resets_at"), "T22:00:00Z") || made.body["limit_tokens"] != nil || made.body["name"] != nil {
		t.Fatalf("made: %s", made.text)
	}
	for _, name := range []string{"scope", "name", "period", "timezone", "limit_usd", "limit_tokens", "on_exhausted", "alert_at", "spent_tokens", "reserved_tokens", "remaining_tokens", "created_at", "updated_at", "version"} {
		if _, there := made.body[name]; !there {
			t.Errorf("%s is not answered: %s", name, made.text)
		}
	}
	again := s.want(s.call("POST", "/v1/budgets", s.acme, `{"scope":"tenant","period":"day","limit_usd":1}`), 200, "")
	if again.str("id") != id || again.num("limit_usd") != 1 || again.str("on_exhausted") != "hold" || again.num("version") != 2 || again.str("timezone") != "UTC" {
		t.Errorf("replaced: %s", again.text)
	}
	if r := s.want(s.call("POST", "/v1/budgets?dry_run=true", s.acme, `{"scope":"type","name":"llm.generate","period":"total","limit_tokens":100}`), 200, ""); r.body["resets_at"] != nil || r.num("remaining_tokens") != 100 || len(r.rows("refusals")) != 0 {
		t.Errorf("a dry run: %s", r.text)
	} else if id, there := r.body["id"]; !there || id != nil || r.body["created_at"] != nil || r.num("version") != 1 {
		t.Errorf("a dry run of a new one has no id: %s", r.text)
	}
	if r := s.want(s.call("POST", "/v1/budgets?dry_run=true", s.acme, `{"scope":"tenant","period":"day","limit_usd":9}`), 200, ""); r.str("id") != id || r.num("limit_usd") != 9 || r.num("version") != 3 {
		t.Errorf("a dry run of one that is replaced: %s", r.text)
	}
	environment := s.want(s.call("POST", "/v1/budgets", s.acme, `{"scope":"environment","period":"month","limit_usd":10}`), 201, "")
	if environment.str("name") != "production" {
		t.Errorf("of an environment: %s", environment.text)
	}
	list := s.want(s.call("GET", "/v1/budgets?count=true&limit=1", s.acme, nil), 200, "")
	if rows := list.rows("data"); len(rows) != 1 || rows[0].str("id") != environment.str("id") || list.at("total").num("value") != 2 {
		t.Errorf("the list: %s", list.text)
	}
	if rows := s.want(s.call("GET", "/v1/budgets?limit=1&cursor="+list.str("next_cursor"), s.acme, nil), 200, "").rows("data"); len(rows) != 1 || rows[0].str("id") != id {
		t.Errorf("the next page: %v", rows)
	}
	one := s.want(s.call("GET", "/v1/budgets/"+id, s.acme, nil), 200, "")
	if one.header.Get("ETag") != `"2"` {
		t.Errorf("ETag %s", one.header.Get("ETag"))
	}
	s.want(s.call("PUT", "/v1/budgets/"+id, s.acme, `{"limit_usd":3}`, "If-Match", `"1"`), 412, "stale")
	put := s.want(s.call("PUT", "/v1/budgets/"+id, s.acme, `{"scope":"tenant","period":"day","limit_usd":3,"limit_tokens":5000,"alert_at":[1,0.5,0.5]}`, "If-Match", `"2"`), 200, "")
	if put.num("limit_usd") != 3 || put.num("limit_tokens") != 5000 || put.header.Get("ETag") != `"3"` || len(put.body["alert_at"].([]any)) != 2 {
		t.Errorf("put: %s", put.text)
	}
	for _, path := range []string{"/v1/budgets/" + id, "/v1/budgets/bud_00000000000000000000000000", "/v1/budgets/tenant"} {
		s.want(s.call("GET", path, s.blue, nil), 404, "not_found")
		s.want(s.call("PUT", path, s.blue, `{"limit_usd":1}`), 404, "not_found")
		s.want(s.call("DELETE", path, s.blue, nil), 404, "not_found")
	}
	if rows := s.want(s.call("GET", "/v1/budgets", s.blue, nil), 200, "").rows("data"); len(rows) != 0 {
		t.Errorf("another tenant's: %v", rows)
	}
	audit := s.want(s.call("GET", "/v1/audit?action=budget.put", s.acme, nil), 200, "").rows("data")
	if len(audit) != 4 || audit[0].at("after").num("limit_micro_usd") != 3_000_000 {
		t.Errorf("the audit has %v", audit)
	}
	s.want(s.call("DELETE", "/v1/budgets/"+id, s.acme, nil), 204, "")
	s.want(s.call("GET", "/v1/budgets/"+id, s.acme, nil), 404, "not_found")
}

func TestBadBudgetsAreRefusedByName(t *testing.T) {
	s := newStage(t)
	for bad, location := range map[string]string{
		`{"period":"day","limit_usd":1}`:                                            "body.scope",
		`{"scope":"planet","period":"day","limit_usd":1}`:                           "body.scope",
		`{"scope":"tenant","limit_usd":1}`:                                          "body.period",
		`{"scope":"tenant","period":"week","limit_usd":1}`:                          "body.period",
		`{"scope":"tenant","name":"acme","period":"day","limit_usd":1}`:             "body.name",
		`{"scope":"type","period":"day","limit_usd":1}`:                             "body.name",
		`{"scope":"model","name":"No Name","period":"day","limit_usd":1}`:           "body.name",
		`{"scope":"environment","name":"nowhere","period":"day","limit_usd":1}`:     "body.name",
		`{"scope":"tenant","period":"day"}`:                                         "body.limit_usd",
		`{"scope":"tenant","period":"day","limit_usd":null,"limit_tokens":null}`:    "body.limit_usd",
		`{"scope":"tenant","period":"day","limit_usd":-1}`:                          "body.limit_usd",
		`{"scope":"tenant","period":"day","limit_usd":"1"}`:                         "body.limit_usd",
		`{"scope":"tenant","period":"day","limit_tokens":-1}`:                       "body.limit_tokens",
		`{"scope":"tenant","period":"day","limit_usd":1,"timezone":"Mars/Olympus"}`: "body.timezone",
		`{"scope":"tenant","period":"day","limit_usd":1,"timezone":""}`:             "body.timezone",
		`{"scope":"tenant","period":"day","limit_usd":1e-9}`:                        "body.limit_usd",
		`{"scope":"tenant","period":"day","limit_usd":1000000001}`:                  "body.limit_usd",
		`{"scope":"tenant","period":"day","limit_usd":1,"on_exhausted":"shout"}`:    "body.on_exhausted",
		`{"scope":"tenant","period":"day","limit_usd":1,"alert_at":[0.5,0]}`:        "body.alert_at[1]",
		`{"scope":"tenant","period":"day","limit_usd":1,"alert_at":"all"}`:          "body.alert_at",
		`{"scope":"tenant","period":"day","limit_usd":1,"alerts_at":[0.5]}`:         "body.alerts_at",
		`{"scope":"tenant","period":"day","limit_usd":1,"spent_usd":0}`:             "body.spent_usd",
	} {
		s.refused(s.call("POST", "/v1/budgets", s.acme, bad), location)
	}
	for limit, want := range map[string]float64{"0": 0, "0.000001": 0.000001, "1000000000": 1_000_000_000} {
		if r := s.want(s.call("POST", "/v1/budgets?dry_run=true", s.acme, `{"scope":"type","name":"b","period":"day","limit_usd":`+limit+`}`), 200, ""); r.num("limit_usd") != want {
			t.Errorf("a limit of %s reads %v", limit, r.num("limit_usd"))
		}
	}
	id := s.want(s.call("POST", "/v1/budgets", s.acme, `{"scope":"type","name":"a","period":"day","limit_usd":1}`), 201, "").str("id")
	for bad, location := range map[string]string{
		`{"scope":"tenant","limit_usd":1}`: "body.scope", `{"name":"b","limit_usd":1}`: "body.name", `{"period":"month","limit_usd":1}`: "body.period", `{}`: "body.limit_usd",
	} {
		s.refused(s.call("PUT", "/v1/budgets/"+id, s.acme, bad), location)
	}
	s.want(s.call("PUT", "/v1/budgets/"+id, s.acme, nil), 400, "invalid_json")
	s.want(s.call("GET", "/v1/budgets?scope=tenant", s.acme, nil), 400, "invalid_query")
	s.want(s.call("GET", "/v1/budgets", s.root, nil), 400, "tenant_required")
	reader := s.scoped(s.acme, nil, "admin:read")
	s.want(s.call("GET", "/v1/budgets/"+id, reader, nil), 200, "")
	s.want(s.call("PUT", "/v1/budgets/"+id, reader, `{"limit_usd":2}`), 403, "scope_required")
	s.want(s.call("POST", "/v1/budgets", reader, `{"scope":"tenant","period":"day","limit_usd":1}`), 403, "scope_required")
	s.want(s.call("DELETE", "/v1/budgets/"+id, reader, nil), 403, "scope_required")
	s.want(s.call("GET", "/v1/budgets", s.scoped(s.acme, nil, "tasks:read"), nil), 403, "scope_required")
	if r := s.want(s.call("GET", "/v1/budgets/"+id, s.acme, nil), 200, ""); r.num("limit_usd") != 1 || r.num("version") != 1 {
		t.Errorf("after what was refused: %s", r.text)
	}
}

// midday is a time zone in which it is about noon: no day and no month ends while a test runs.
func midday() string { return fmt.Sprintf("Etc/GMT%+d", time.Now().UTC().Hour()-12) }

func TestABudgetHoldsAndRefusesOverHTTP(t *testing.T) {
	s := newStage(t)
	w := s.register(s.acme, nil)
	id := s.want(s.call("POST", "/v1/budgets", s.acme, `{"scope":"tenant","period":"month","timezone":"`+midday()+`","limit_usd":1,"alert_at":[0.5]}`), 201, "").str("id")
	figures := func(spent, reserved, remaining float64) {
		t.Helper()
		if r := s.want(s.call("GET", "/v1/budgets/"+id, s.acme, nil), 200, ""); r.num("spent_usd") != spent || r.num("reserved_usd") != reserved || r.num("remaining_usd") != remaining {
			t.Fatalf("not %v, %v and %v: %s", spent, reserved, remaining, r.text)
		}
	}
	s.submit(s.acme, map[string]any{"type": "a", "estimated_cost_usd": 0.6})
	held := s.submit(s.acme, map[string]any{"type": "a", "estimated_cost_usd": 0.9}).str("id")
	first := w.claim(10, 0)
	if len(first) != 1 {
		t.Fatalf("%d start", len(first))
	}
	figures(0, 0.6, 0.4)
	cheap := s.submit(s.acme, map[string]any{"type": "a", "estimated_cost_usd": 0.4}).str("id")
	if second := w.claim(10, 0); len(second) != 1 || second[0].str("task_id") != cheap {
		t.Fatalf("cheap work does not pass: %v", second)
	}
	why := s.want(s.call("GET", "/v1/tasks/"+held+"/explain", s.acme, nil), 200, "").rows("blocked_by")
	if len(why) != 1 || why[0].str("reason") != "tenant_budget" || !strings.Contains(why[0].str("detail"), id) || !strings.Contains(why[0].str("detail"), "to cost $0.90") {
		t.Errorf("it is blocked by %v", why)
	}
	if got := s.want(s.call("GET", "/v1/tasks/"+held, s.acme, nil), 200, "").rows("blocked_by"); len(got) != 1 || got[0].str("reason") != "tenant_budget" {
		t.Errorf("the task says %v", got)
	}
	w.report(paid(first[0], 0.55))
	figures(0.55, 0.4, 0.05)
	if alerts := s.want(s.call("GET", "/v1/events?name=budget.alert", s.acme, nil), 200, "").rows("data"); len(alerts) != 1 || alerts[0].str("budget_id") != id || alerts[0].num("threshold") != 0.5 {
		t.Errorf("the alerts are %v", alerts)
	}
	s.want(s.call("PUT", "/v1/budgets/"+id, s.acme, `{"limit_usd":1,"on_exhausted":"reject"}`), 200, "")
	for _, path := range []string{"/v1/tasks", "/v1/tasks/batch", "/v1/workflows"} {
		body := map[string]string{
			"/v1/tasks": `{"type":"a","estimated_cost_usd":0.06}`, "/v1/tasks/batch": `{"tasks":[{"type":"a","estimated_cost_usd":0.01},{"type":"a","estimated_cost_usd":0.06}]}`,
			"/v1/workflows": `{"name":"w","tasks":[{"key":"a","type":"a","estimated_cost_usd":0.06}]}`,
		}[path]
		r := s.want(s.call("POST", path, s.acme, body), 429, "budget_exhausted")
		if wait, err := strconv.Atoi(r.header.Get("Retry-After")); err != nil || wait < 1 || wait > 31*86_400 {
			t.Errorf("%s: Retry-After %q", path, r.header.Get("Retry-After"))
		}
	}
	large := strings.Repeat(`{"type":"a","estimated_cost_usd":0.01},`, 1200) // it is staged
	s.want(s.call("POST", "/v1/tasks/batch", s.acme, `{"tasks":[`+large+`{"type":"a","estimated_cost_usd":0.06}]}`), 429, "budget_exhausted")
	if r := s.want(s.call("POST", "/v1/tasks?dry_run=true", s.acme, `{"type":"a","estimated_cost_usd":0.06}`), 200, ""); len(r.rows("refusals")) != 1 || r.rows("refusals")[0].str("code") != "budget_exhausted" {
		t.Errorf("a dry run: %s", r.text)
	}
	s.submit(s.acme, map[string]any{"type": "a", "estimated_cost_usd": 0.05})
	s.submit(s.blue, map[string]any{"type": "a", "estimated_cost_usd": 500})
	s.want(s.call("PUT", "/v1/budgets/"+id, s.acme, `{"limit_usd":2}`), 200, "")
	if rest := w.claim(10, 0); len(rest) != 2 {
		t.Fatalf("the limit is raised: %d start", len(rest))
	}
	figures(0.55, 1.35, 0.1)
}

// A budget that downgrades gives tasks whose model is chosen the cheapest that is covered, and whoever looks is told so.
func TestABudgetDowngradesOverHTTP(t *testing.T) {
	s := newStage(t)
	s.threeModels()
	w := s.register(s.acme, map[string]any{"task_types": []string{"llm.*"}})
	made := s.want(s.call("POST", "/v1/budgets", s.acme, `{"scope":"model","name":"small","period":"month","timezone":"`+midday()+`","limit_usd":1,"on_exhausted":"downgrade"}`), 201, "")
	if made.str("on_exhausted") != "downgrade" {
		t.Fatalf("made: %s", made.text)
	}
	ask := map[string]any{"type": "llm.sum", "estimated_cost_usd": 0.6, "model": map[string]any{"auto": true}}
	first, second := s.submit(s.acme, ask), s.submit(s.acme, ask).str("id")
	if m := first.at("model"); m.str("chosen") != "small" || m.body["downgraded_from"] != nil {
		t.Fatalf("covered: %s", first.text)
	}
	if got := w.claim(1, 0); len(got) != 1 || got[0].str("model") != "small" {
		t.Fatalf("claimed: %v", got)
	}
	w.claim(1, 0) // it meets the budget
	s.await("another model", func() bool { return s.task(s.acme, second).at("model").str("chosen") == "middle" })
	m := s.task(s.acme, second).at("model")
	if m.str("downgraded_from") != "small" || !strings.Contains(m.str("reason"), made.str("id")) || m.at("requested").body["auto"] != true {
		t.Errorf("its model: %v", m.body)
	}
	if born := s.submit(s.acme, ask).at("model"); born.str("chosen") != "middle" || born.str("downgraded_from") != "small" {
		t.Errorf("at its submit: %v", born.body)
	}
	if dry := s.want(s.call("POST", "/v1/tasks?dry_run=true", s.acme, ask), 200, ""); dry.str("model") != "middle" {
		t.Errorf("a dry run: %s", dry.text)
	}
	for range 2 {
		for _, lease := range w.claim(5, 0) {
			w.report(paid(lease, 0.1))
		}
	}
	for id, want := range map[string]any{first.str("id"): nil, second: "small"} {
		attempts := s.want(s.call("GET", "/v1/tasks/"+id+"/attempts", s.acme, nil), 200, "").rows("data")
		if from, there := attempts[0].body["downgraded_from"]; !there || from != want {
			t.Errorf("an attempt: %v", attempts[0].body)
		}
	}
	told := s.want(s.call("GET", "/v1/events?name=task.downgraded", s.acme, nil), 200, "").rows("data")
	if len(told) != 2 || told[0].str("task_id") != second || !strings.Contains(told[0].str("reason"), "does not cover small") {
		t.Errorf("told: %v", told)
	}
	held := s.submit(s.acme, map[string]any{"type": "llm.sum", "estimated_cost_usd": 0.6, "model": "small"}).str("id")
	w.claim(1, 0)
	why := s.want(s.call("GET", "/v1/tasks/"+held+"/explain", s.acme, nil), 200, "").rows("blocked_by")
	if len(why) != 1 || why[0].str("reason") != "tenant_budget" || !strings.Contains(why[0].str("detail"), "leaves no choice among models") {
		t.Errorf("by name: %v", why)
	}
}

// What another model used counts in its budget.
func TestABudgetOfAModelCountsWhatRanOnItOverHTTP(t *testing.T) {
	s := newStage(t)
	s.threeModels()
	w := s.register(s.acme, map[string]any{"task_types": []string{"llm.*"}})
	ids := map[string]string{}
	for _, name := range []string{"small", "large"} {
		ids[name] = s.want(s.call("POST", "/v1/budgets", s.acme, `{"scope":"model","name":"`+name+`","period":"month","timezone":"`+midday()+`","limit_usd":1}`), 201, "").str("id")
	}
	task := s.submit(s.acme, map[string]any{"type": "llm.sum", "model": "small"}).str("id")
	report := paid(w.claim(1, 0)[0], 0.25)
	report["usage"].(map[string]any)["model"] = "large"
	w.report(report)
	for name, want := range map[string]float64{"small": 0, "large": 0.25} {
		if r := s.want(s.call("GET", "/v1/budgets/"+ids[name], s.acme, nil), 200, ""); r.num("spent_usd") != want || r.num("reserved_usd") != 0 {
			t.Errorf("%s: %s", name, r.text)
		}
	}
	if rows := s.want(s.call("GET", "/v1/tasks/"+task+"/attempts", s.acme, nil), 200, "").rows("data"); rows[0].str("model") != "large" {
		t.Errorf("the attempt: %v", rows[0].body)
	}
	if rows := s.want(s.call("GET", "/v1/usage?group_by=model", s.acme, nil), 200, "").rows("data"); len(rows) != 1 || rows[0].str("model") != "large" {
		t.Errorf("the usage: %v", rows)
	}
}
