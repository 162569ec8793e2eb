package api_test

import "testing"

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
	if after := len(s.want(s.call("GET", "/v1/tasks", s.acme, nil), 200, "").rows("data")); after != before {
		t.Errorf("dry runs made %d tasks", after-before)
	}
	if flows := s.want(s.call("GET", "/v1/workflows", s.acme, nil), 200, "").rows("data"); len(flows) != 0 {
		t.Errorf("dry runs made %v", flows)
	}
}
