package api_test

import (
	"strings"
	"testing"
)

// A dry run of many tasks says of each what one task is told, and writes nothing.
func TestDryRunsOfMany(t *testing.T) {
	s := newStage(t)
	before := len(s.want(s.call("GET", "/v1/tasks", s.acme, nil), 200, "").rows("data"))
	batch := s.want(s.call("POST", "/v1/tasks/batch?dry_run=true", s.acme, `{"tasks":[{"type":"a","lane":"io"},{"type":"b","lane":"nowhere"}]}`), 200, "").rows("data")
	if len(batch) != 2 || batch[0].str("lane") != "io" || len(batch[0].rows("refusals")) != 0 || len(batch[1].rows("refusals")) != 1 {
		t.Errorf("a batch: %v", batch)
	}
	s.want(s.call("POST", "/v1/tasks/batch?dry_run=maybe", s.acme, `{"tasks":[{"type":"a"}]}`), 400, "invalid_query")
	flow := s.want(s.call("POST", "/v1/workflows?dry_run=true", s.acme,
		`{"name":"n","tasks":[{"key":"a","type":"a","estimated_cost_usd":0.25},{"key":"b","type":"a","estimated_cost_usd":0.5,"depends_on":["a"]}],"budget":{"max_tasks":1}}`), 200, "")
	if flow.num("tasks") != 2 || flow.num("estimated_cost_usd") != 0.75 || flow.str("lane") != "batch" || len(flow.rows("refusals")) != 1 ||
		flow.rows("refusals")[0].str("code") != "workflow_budget_exceeded" {
		t.Errorf("a workflow: %s", flow.text)
	}
	s.want(s.call("POST", "/v1/workflows?dry_run=true", s.acme, `{"name":"n","tasks":[{"key":"a","type":"a","depends_on":["a"]}]}`), 422, "invalid_dag")
	nobody := `"task_01hzzzzzzzzzzzzzzzzzzzzzzz"`
	for path, body := range map[string]string{
		"/v1/tasks":       `{"type":"a","depends_on":[` + nobody + `]}`,
		"/v1/tasks/batch": `{"tasks":[{"type":"a"},{"type":"a","depends_on":[` + nobody + `]}]}`,
		"/v1/workflows":   `{"name":"n","tasks":[{"key":"a","type":"a"},{"key":"b","type":"a","depends_on":["a",{"task":` + nobody + `}]}]}`,
	} {
		s.want(s.call("POST", path, s.acme, body), 422, "validation_failed")
		r := s.want(s.call("POST", path+"?dry_run=true", s.acme, body), 200, "")
		if rows := r.rows("data"); len(rows) > 0 {
			r = rows[len(rows)-1]
		}
		if why := r.rows("refusals"); len(why) != 1 || why[0].str("code") != "validation_failed" || !strings.Contains(why[0].rows("errors")[0].str("location"), "depends_on") {
			t.Errorf("%s of a task that waits for one that is not there: %v", path, why)
		}
	}
	if after := len(s.want(s.call("GET", "/v1/tasks", s.acme, nil), 200, "").rows("data")); after != before {
		t.Errorf("dry runs made %d tasks", after-before)
	}
	if flows := s.want(s.call("GET", "/v1/workflows", s.acme, nil), 200, "").rows("data"); len(flows) != 0 {
		t.Errorf("dry runs made %v", flows)
	}
}
