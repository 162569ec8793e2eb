package api_test

import (
	"fmt"
	"testing"
)

func TestChildrenOverHTTP(t *testing.T) {
	s := newStage(t)
	w := s.register(s.acme, nil)
	parent := s.submit(s.acme, map[string]any{"type": "a"}).str("id")
	at := "/v1/tasks/" + parent
	token := w.claim(1, 5)[0].str("lease_token")
	body := `{"tasks":[{"key":"x","type":"b","payload":{"n":1}},{"key":"y","type":"b","depends_on":["x"]},{"key":"z","type":"c","detach":true}]}`
	spawn := func(text, token string) reply {
		return s.call("POST", at+"/children", s.acme, text, "Nightshift-Lease", token)
	}
	made := s.want(spawn(body, token), 201, "").rows("data")
	if len(made) != 3 || made[0].str("key") != "x" || made[0].str("state") != "ready" || made[1].str("state") != "pending" {
		t.Fatalf("spawned %v", made)
	}
	again := s.want(spawn(body, token), 200, "").rows("data")
	if again[0].str("id") != made[0].str("id") || again[2].str("id") != made[2].str("id") {
		t.Errorf("spawned again %v", again)
	}
	s.want(spawn(body, token+"x"), 409, "lease_lost")
	s.want(s.call("POST", at+"/children", s.blue, body, "Nightshift-Lease", token), 404, "not_found")
	s.refused(spawn(`{"tasks":[{"type":"b"}]}`, token), "body.tasks[0].key")
	s.refused(spawn(`{"tasks":[]}`, token), "body.tasks")
	s.refused(spawn(`{"tasks":[{"key":"p","type":"b","permissions":["net"]}]}`, token), "body.tasks[0].permissions")
	s.want(spawn(`{"tasks":[{"key":"p","type":"b","depends_on":["nobody"]}]}`, token), 422, "invalid_dag")
	s.refused(s.call("POST", at+"/children", s.acme, body), "header.Nightshift-Lease")

	if rows := w.report(map[string]any{"lease_token": token, "status": "suspended"}); rows[0].str("state") != "pending" {
		t.Fatalf("suspended: %v", rows)
	}
	for range 3 {
		lease := w.claim(1, 5)[0]
		w.report(map[string]any{"lease_token": lease.str("lease_token"), "status": "succeeded", "result": map[string]any{"of": lease.str("task_id")}})
	}
	back := w.claim(1, 5)
	if len(back) != 1 || back[0].str("task_id") != parent || back[0].num("attempt") != 2 {
		t.Fatalf("came back: %v", back)
	}
	kids := back[0].rows("children")
	if len(kids) != 3 || kids[0].str("key") != "x" || kids[0].str("state") != "succeeded" || kids[0].at("result").str("of") != made[0].str("id") {
		t.Errorf("with its children %v", kids)
	}
	if deps := back[0].rows("dependencies"); len(deps) != 0 {
		t.Errorf("children are no dependencies: %v", deps)
	}
	w.report(map[string]any{"lease_token": back[0].str("lease_token"), "status": "succeeded"})
	rows := s.want(s.call("GET", at+"/attempts", s.acme, nil), 200, "").rows("data")
	if len(rows) != 2 || rows[0].str("outcome") != "suspended" || rows[1].str("outcome") != "succeeded" {
		t.Errorf("attempts %v", rows)
	}
	page := s.want(s.call("GET", at+"/children?limit=2&order=asc", s.acme, nil), 200, "")
	if rows = page.rows("data"); len(rows) != 2 || rows[0].str("id") != made[0].str("id") || rows[0].str("parent_task_id") != parent || page.str("next_cursor") == "" {
		t.Errorf("children %s", page.text)
	}
	kin := s.want(s.call("GET", "/v1/tasks/"+made[1].str("id")+"/lineage", s.acme, nil), 200, "")
	if nodes, edges := kin.rows("nodes"), kin.rows("edges"); len(nodes) != 4 || len(edges) != 4 {
		t.Errorf("lineage %s", kin.text)
	}
	s.want(s.call("GET", at+"/lineage", s.blue, nil), 404, "not_found")
	s.want(s.call("GET", at+"/children", s.blue, nil), 404, "not_found")
	if task := s.task(s.acme, parent); task.num("remaining_dependencies") != 0 || len(task.body["depends_on"].([]any)) != 0 {
		t.Errorf("the parent %s", task.text)
	}
}

func TestAWorkflowsBudgetStopsChildrenOverHTTP(t *testing.T) {
	s := newStage(t)
	w := s.register(s.acme, nil)
	s.want(s.call("POST", "/v1/workflows", s.acme, `{"name":"agent","budget":{"max_tasks":3,"max_depth":1},"tasks":[{"key":"root","type":"a"}]}`), 201, "")
	lease := w.claim(1, 5)[0]
	spawn := func(at, token, key string) reply {
		return s.call("POST", "/v1/tasks/"+at+"/children", s.acme, fmt.Sprintf(`{"tasks":[{"key":%q,"type":"b"}]}`, key), "Nightshift-Lease", token)
	}
	root, token := lease.str("task_id"), lease.str("lease_token")
	s.want(spawn(root, token, "one"), 201, "")
	s.want(spawn(root, token, "two"), 201, "")
	s.want(spawn(root, token, "three"), 409, "workflow_budget_exceeded")
	s.want(spawn(root, token, "one"), 200, "")
	child := w.claim(1, 5)[0]
	s.want(spawn(child.str("task_id"), child.str("lease_token"), "deep"), 409, "workflow_budget_exceeded")
}
