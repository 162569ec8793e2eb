package api_test

import (
	"fmt"
	"strings"
	"testing"
)

func TestChildrenOverHTTP(t *testing.T) {
	s := newStage(t)
	w := s.register(s.acme, nil)
	parent := s.submit(s.acme, map[string]any{"type": "a", "priority": 70}).str("id")
	at := "/v1/tasks/" + parent
	token := w.claim(1, 5)[0].str("lease_token")
	body := `{"tasks":[{"key":"x","type":"b","payload":{"n":1}},{"key":"y","type":"b","depends_on":["x"]},{"key":"z","type":"c","detach":true,"priority":80}]}`
	spawn := func(text, token string) reply {
		return s.call("POST", at+"/children", s.acme, text, "Nightshift-Lease", token)
	}
	made := s.want(spawn(body, token), 201, "").rows("data")
	if len(made) != 3 || made[0].str("key") != "x" || made[0].str("state") != "ready" || made[1].str("state") != "pending" {
		t.Fatalf("spawned %v", made)
	}
	if x, z := s.task(s.acme, made[0].str("id")), s.task(s.acme, made[2].str("id")); x.num("priority") != 70 || z.num("priority") != 80 {
		t.Errorf("below a parent of 70 the priorities are %v and %v", x.num("priority"), z.num("priority"))
	}
	again := s.want(spawn(body, token), 200, "").rows("data")
	if again[0].str("id") != made[0].str("id") || again[2].str("id") != made[2].str("id") {
		t.Errorf("spawned again %v", again)
	}
	s.want(spawn(body, token+"x"), 409, "lease_lost")
	s.want(s.call("POST", at+"/children", s.blue, body, "Nightshift-Lease", token), 404, "not_found")
	s.refused(spawn(`{"tasks":[{"type":"b"}]}`, token), "body.tasks[0].key")
	s.refused(spawn(`{"tasks":[]}`, token), "body.tasks")
	s.want(spawn(`{"tasks":[{"key":"p","type":"b","permissions":["net"]}]}`, token), 403, "permission_not_allowed")
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

// Children may wait for those that were spawned before, by key or id, and for any task; not for one that waits for their parent.
func TestChildrenWaitForWhatIsThereOverHTTP(t *testing.T) {
	s := newStage(t)
	w := s.register(s.acme, nil)
	over := s.submit(s.acme, map[string]any{"type": "over"}).str("id")
	w.report(map[string]any{"lease_token": w.claim(1, 5)[0].str("lease_token"), "status": "succeeded"})
	far := s.submit(s.acme, map[string]any{"type": "far", "delay_seconds": 3600}).str("id")
	flow := s.want(s.call("POST", "/v1/workflows", s.acme, `{"name":"agent","tasks":[{"key":"root","type":"a"},{"key":"last","type":"z","depends_on":["root"]}]}`), 201, "")
	lease := w.claim(1, 5)[0]
	root, last := lease.str("task_id"), flow.at("tasks").str("last")
	spawn := func(tasks ...map[string]any) reply {
		for i := range tasks {
			tasks[i]["type"] = "b"
		}
		return s.call("POST", "/v1/tasks/"+root+"/children", s.acme, map[string]any{"tasks": tasks}, "Nightshift-Lease", lease.str("lease_token"))
	}
	child := func(key string, on ...any) map[string]any { return map[string]any{"key": key, "depends_on": on} }
	detached := func(key string, on ...any) map[string]any { c := child(key, on...); c["detach"] = true; return c }
	plan := s.want(spawn(child("plan")), 201, "").rows("data")[0].str("id")
	for key, on := range map[string]any{"by-key": "plan", "by-object": map[string]any{"key": "plan", "on": "finished"}, "by-id": plan} {
		row := s.want(spawn(child(key, on)), 201, "").rows("data")[0]
		if task := s.task(s.acme, row.str("id")); row.str("state") != "pending" || task.num("remaining_dependencies") != 1 || task.rows("depends_on")[0].str("task") != plan {
			t.Errorf("%s waits for %v", key, task.body["depends_on"])
		}
	}
	if row := s.want(spawn(child("ended", over)), 201, "").rows("data")[0]; row.str("state") != "ready" {
		t.Errorf("waiting for what has succeeded it is %s", row.str("state"))
	}
	s.want(spawn(child("later", map[string]any{"task": far})), 201, "")
	s.want(spawn(child("x", "nobody")), 422, "invalid_dag")
	s.refused(spawn(child("x", "task_01jc0000000000000000000000")), "body.tasks[0].depends_on[0]")
	s.want(spawn(detached("cleanup", root)), 201, "")
	for name, tasks := range map[string][]map[string]any{
		"its parent":                          {child("x", root)},
		"what waits for its parent":           {child("w"), child("x", last)},
		"one on its own that waits for it":    {child("x", "cleanup")},
		"one of its body that waits for that": {detached("d", last), child("x", "d")},
	} {
		if r := s.want(spawn(tasks...), 422, "invalid_dag"); !strings.Contains(r.text, "neither would ever end") {
			t.Errorf("waiting for %s: %s", name, r.text)
		}
	}
	if rows := s.want(s.call("GET", "/v1/tasks/"+root+"/children?count=true", s.acme, nil), 200, ""); rows.at("total").num("value") != 7 {
		t.Errorf("children: %s", rows.text)
	}
}

func TestAWorkflowsBudgetStopsChildrenOverHTTP(t *testing.T) {
	s := newStage(t)
	w := s.register(s.acme, nil)
	flow := s.want(s.call("POST", "/v1/workflows", s.acme, `{"name":"agent","budget":{"max_tasks":3,"max_depth":1},"tasks":[{"key":"root","type":"a"}]}`), 201, "")
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
	raised := s.want(s.call("PATCH", "/v1/workflows/"+flow.str("id"), s.acme, `{"budget":{"max_tasks":4,"max_depth":2}}`), 200, "")
	if used := raised.at("budget").at("used"); used.num("depth") != 1 || used.num("tasks") != 3 {
		t.Errorf("used: %v", used.body)
	}
	s.want(spawn(child.str("task_id"), child.str("lease_token"), "deep"), 201, "")
	b := s.want(s.call("GET", "/v1/workflows/"+flow.str("id"), s.acme, nil), 200, "").at("budget")
	if b.at("used").num("depth") != 2 || b.at("left").num("depth") != 0 || b.at("left").num("tasks") != 0 {
		t.Errorf("a grandchild deep: %v", b.body)
	}
}

func TestATasksOwnBudgetStopsWhatItSpawns(t *testing.T) {
	s := newStage(t)
	w := s.register(s.acme, nil)
	made := s.submit(s.acme, map[string]any{"type": "agent", "budget": map[string]any{"max_tasks": 3, "max_depth": 1}, "depends_on": []any{}})
	if b := made.at("budget"); b.num("max_tasks") != 3 || b.num("max_depth") != 1 || b.body["max_cost_usd"] != nil || len(b.body) != 6 || made.str("workflow_id") == "" {
		t.Errorf("submitted %s", made.text)
	}
	lease := w.claim(1, 5)[0]
	spawn := func(at, token string, keys ...string) reply {
		list := []any{}
		for _, key := range keys {
			list = append(list, map[string]any{"key": key, "type": "b"})
		}
		return s.call("POST", "/v1/tasks/"+at+"/children", s.acme, map[string]any{"tasks": list}, "Nightshift-Lease", token)
	}
	root, token := lease.str("task_id"), lease.str("lease_token")
	if r := s.want(spawn(root, token, "one", "two", "three"), 409, "workflow_budget_exceeded"); !strings.Contains(r.str("detail"), "max_tasks is 3") {
		t.Errorf("refused with %s", r.text)
	}
	s.want(spawn(root, token, "one", "two"), 201, "")
	s.want(spawn(root, token, "three"), 409, "workflow_budget_exceeded")
	child := w.claim(1, 5)[0]
	if r := s.want(spawn(child.str("task_id"), child.str("lease_token"), "deep"), 409, "workflow_budget_exceeded"); !strings.Contains(r.str("detail"), "max_") {
		t.Errorf("refused with %s", r.text)
	}
	flow := s.want(s.call("GET", "/v1/workflows/"+made.str("workflow_id"), s.acme, nil), 200, "")
	if flow.at("budget").at("limit").num("tasks") != 3 || flow.at("budget").at("left").num("tasks") != 0 || flow.str("name") != "agent" {
		t.Errorf("its workflow %s", flow.text)
	}
	if plain := s.submit(s.acme, map[string]any{"type": "a", "budget": map[string]any{}}); plain.body["budget"] != nil || plain.body["workflow_id"] != nil {
		t.Errorf("an empty budget made %s", plain.text)
	}
	s.refused(s.call("POST", "/v1/tasks", s.acme, `{"type":"a","budget":{"max_fun":1}}`), "body.budget.max_fun")
	s.refused(s.call("POST", "/v1/workflows", s.acme, `{"name":"n","tasks":[{"key":"a","type":"a","budget":{"max_tasks":1}}]}`), "body.tasks[0].budget")
	both := s.want(s.call("POST", "/v1/tasks/batch", s.acme, `{"tasks":[{"type":"x","budget":{"max_tasks":5}},{"type":"x","budget":{"max_tasks":6}},{"type":"x"}]}`), 201, "").rows("data")
	one, two := s.task(s.acme, both[0].str("id")), s.task(s.acme, both[1].str("id"))
	if one.str("workflow_id") == two.str("workflow_id") || one.str("workflow_id") == "" || s.task(s.acme, both[2].str("id")).body["workflow_id"] != nil {
		t.Errorf("each has its own: %s, %s", one.text, two.text)
	}
}
