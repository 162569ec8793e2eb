package api_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func diamond() map[string]any {
	task := func(key string, deps ...any) map[string]any {
		return map[string]any{"key": key, "type": "t", "depends_on": deps}
	}
	return map[string]any{
		"name": "nightly", "priority": 70, "lane": "io", "labels": map[string]string{"night": "1"},
		"tasks": []any{task("last", "b", map[string]any{"key": "c", "on": "finished"}), task("a"), task("b", "a"), task("c", "a")},
	}
}

func TestAWorkflowRunsInOrder(t *testing.T) {
	s := newStage(t)
	made := s.want(s.call("POST", "/v1/workflows", s.acme, diamond(), "Idempotency-Key", "w"), 201, "")
	id := made.str("id")
	ids := made.at("tasks")
	if made.str("state") != "running" || made.header.Get("Location") != "/v1/workflows/"+id || len(ids.body) != 4 || made.at("counts").num("ready") != 1 ||
		made.at("counts").num("pending") != 3 || len(made.at("counts").body) != 12 {
		t.Errorf("made %s", made.text)
	}
	again := s.want(s.call("POST", "/v1/workflows", s.acme, diamond(), "Idempotency-Key", "w"), 201, "")
	if again.str("id") != id || again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("replayed %s", again.text)
	}
	a := s.task(s.acme, ids.str("a"))
	if a.num("priority") != 70 || a.str("lane") != "io" || a.str("workflow_id") != id || a.str("key") != "a" {
		t.Errorf("a task of it: %s", a.text)
	}
	w := s.register(s.acme, nil)
	var order []string
	for range 4 {
		leases := w.claim(1, 5)
		if len(leases) != 1 {
			t.Fatalf("after %v nothing comes", order)
		}
		key := s.task(s.acme, leases[0].str("task_id")).str("key")
		order = append(order, key)
		if key == "last" {
			deps := leases[0].rows("dependencies")
			keys := []string{deps[0].str("key"), deps[1].str("key")}
			slices.Sort(keys)
			if strings.Join(keys, "") != "bc" || deps[0].at("result").str("of") == "" || deps[0].str("state") != "succeeded" {
				t.Errorf("dependencies %v", deps)
			}
			page := s.want(s.call("GET", "/v1/tasks/"+leases[0].str("task_id")+"/dependencies?limit=1", s.acme, nil, "Nightshift-Lease", leases[0].str("lease_token")), 200, "")
			if len(page.rows("data")) != 1 || page.body["next_cursor"] == nil {
				t.Errorf("dependencies page %s", page.text)
			}
		}
		if leases[0].str("idempotency_key") != id+":"+leases[0].str("task_id") {
			t.Errorf("idempotency key %v", leases[0].body)
		}
		w.report(done(leases[0], map[string]any{"of": key}))
	}
	if order[0] != "a" || order[3] != "last" {
		t.Errorf("ran in the order %v", order)
	}
	s.await("the workflow's end", func() bool {
		return s.call("GET", "/v1/workflows/"+id, s.acme, nil).str("state") == "succeeded"
	})
	end := s.want(s.call("GET", "/v1/workflows/"+id, s.acme, nil), 200, "")
	path, _ := end.body["critical_path"].([]any)
	if end.at("counts").num("succeeded") != 4 || end.str("finished_at") == "" || len(path) != 3 || path[0] != "a" || path[2] != "last" {
		t.Errorf("ended %s", end.text)
	}
	graph := s.want(s.call("GET", "/v1/workflows/"+id+"/graph", s.acme, nil), 200, "")
	if len(graph.rows("nodes")) != 4 || len(graph.rows("edges")) != 4 || graph.rows("edges")[0].str("state") != "fired" {
		t.Errorf("graph %s", graph.text)
	}
	list := s.want(s.call("GET", "/v1/workflows?state=succeeded&count=true", s.acme, nil), 200, "")
	if len(list.rows("data")) != 1 || list.at("total").num("value") != 1 {
		t.Errorf("list %s", list.text)
	}
	s.refused(s.call("GET", "/v1/workflows?state=odd", s.acme, nil), "query.state")
	for _, path := range []string{"", "/graph"} {
		s.want(s.call("GET", "/v1/workflows/"+id+path, s.blue, nil), 404, "not_found")
	}
	s.want(s.call("POST", "/v1/workflows/"+id+"/cancel", s.blue, nil), 404, "not_found")
}

func TestWorkflowRefusals(t *testing.T) {
	s := newStage(t)
	for _, c := range []struct{ text, code, location, names string }{
		{`{"tasks":[{"key":"a","type":"t"}]}`, "validation_failed", "body.name", ""},
		{`{"name":"n"}`, "validation_failed", "body.tasks", ""},
		{`{"name":"n","tasks":[{"type":"t"}]}`, "validation_failed", "body.tasks[0].key", ""},
		{`{"name":"n","tasks":[{"key":"a","type":"t","idempotency_key":"k"}]}`, "validation_failed", "body.tasks[0].idempotency_key", ""},
		{`{"name":"n","tasks":[{"key":"a","type":"t"},{"key":"a","type":"t"}]}`, "invalid_dag", "body.tasks[1].key", `"a"`},
		{`{"name":"n","tasks":[{"key":"a","type":"t","depends_on":["x"]}]}`, "invalid_dag", "body.tasks[0].depends_on", `"x"`},
		{`{"name":"n","tasks":[{"key":"a","type":"t","depends_on":["b"]},{"key":"b","type":"t","depends_on":["a"]}]}`, "invalid_dag", "body.tasks[0].depends_on", `"b"`},
		{`{"name":"n","budget":{"max_tasks":0},"tasks":[{"key":"a","type":"t"}]}`, "validation_failed", "body.budget.max_tasks", ""},
		{`{"name":"n","budget":{"most":1},"tasks":[{"key":"a","type":"t"}]}`, "validation_failed", "body.budget.most", ""},
		{`{"name":"n","finish_first":"yes","tasks":[{"key":"a","type":"t"}]}`, "validation_failed", "body.finish_first", ""},
		{`{"name":"n","on_failure":"halt","tasks":[{"key":"a","type":"t"}]}`, "validation_failed", "body.on_failure", ""},
		{`{"name":"n","tasks":[{"key":"a","type":"t","run_if":"deps."}]}`, "validation_failed", "body.tasks[0].run_if", ""},
		{`{"name":"n","tasks":[{"key":"a","type":"t","run_if":"1 + 1"}]}`, "validation_failed", "body.tasks[0].run_if", ""},
		{`{"name":"n","tasks":[{"key":"a","type":"t","lane":"nowhere"}]}`, "validation_failed", "body.tasks[0].lane", ""},
		{`{"name":"n","more":1,"tasks":[{"key":"a","type":"t"}]}`, "validation_failed", "body.more", ""},
	} {
		r := s.call("POST", "/v1/workflows", s.acme, c.text)
		s.refused(s.want(r, 422, c.code), c.location)
		if !strings.Contains(r.rows("errors")[0].str("message"), c.names) {
			t.Errorf("%s does not name %s: %s", c.text, c.names, r.text)
		}
	}
	s.want(s.call("POST", "/v1/workflows", s.acme, `{"name":"n","budget":null,"finish_first":false,"on_failure":"continue","tasks":[{"key":"a","type":"t"}]}`), 201, "")
}

func TestCancelAWorkflow(t *testing.T) {
	s := newStage(t)
	w := s.register(s.acme, nil)
	made := s.want(s.call("POST", "/v1/workflows?return=minimal", s.acme, diamond()), 201, "")
	if _, there := made.body["tasks"]; there {
		t.Errorf("minimal still has tasks: %s", made.text)
	}
	lease := w.claim(1, 5)[0]
	r := s.want(s.call("POST", "/v1/workflows/"+made.str("id")+"/cancel", s.acme, map[string]any{"reason": "enough"}), 202, "")
	if r.str("id") != made.str("id") {
		t.Errorf("cancelled %s", r.text)
	}
	s.await("the running task to be asked to stop", func() bool { return s.task(s.acme, lease.str("task_id")).str("state") == "cancel_requested" })
	w.report(map[string]any{"lease_token": lease.str("lease_token"), "status": "cancelled"})
	s.await("the workflow's end", func() bool {
		return s.call("GET", "/v1/workflows/"+made.str("id"), s.acme, nil).str("state") == "cancelled"
	})
	s.want(s.call("POST", "/v1/workflows/"+made.str("id")+"/cancel", s.acme, nil), 200, "")
}

// A body of more than 1,000 tasks is written in parts and enters the world by one command.
func TestLargeBodies(t *testing.T) {
	s := newStage(t)
	const n = 2_500
	var text strings.Builder
	text.WriteString(`{"name":"large","priority":10,"tasks":[{"key":"end","type":"t","depends_on":["0","2400"]}`)
	for i := range n {
		fmt.Fprintf(&text, `,{"key":"%d","type":"t","payload":%d,"labels":{"n":"%d"}`, i, i, i)
		if i%500 != 0 {
			fmt.Fprintf(&text, `,"depends_on":["%d"]`, i-i%500)
		}
		text.WriteByte('}')
	}
	text.WriteString(`]}`)
	made := s.want(s.call("POST", "/v1/workflows", s.acme, text.String()), 201, "")
	id, keys := made.str("id"), made.at("tasks")
	if len(keys.body) != n+1 || made.at("counts").num("pending") != n+1 {
		t.Errorf("made %.300s", made.text)
	}
	s.await("all tasks to enter", func() bool {
		counts := s.call("GET", "/v1/workflows/"+id, s.acme, nil).at("counts")
		return counts.num("ready") == 5 && counts.num("pending") == n-4
	})
	if task := s.task(s.acme, keys.str("2400")); task.num("payload") != 2400 || task.num("priority") != 10 || task.at("labels").str("n") != "2400" {
		t.Errorf("a task of it: %s", task.text)
	}
	w := s.register(s.acme, nil)
	for left := n + 1; left > 0; {
		leases := w.claim(500, 5)
		if len(leases) == 0 {
			t.Fatalf("%d tasks never came", left)
		}
		results := make([]map[string]any, len(leases))
		for i := range leases {
			results[i] = done(leases[i], nil)
		}
		left -= len(w.report(results...))
	}
	s.await("the workflow's end", func() bool {
		return s.call("GET", "/v1/workflows/"+id, s.acme, nil).str("state") == "succeeded"
	})

	tasks := make([]any, 1_200)
	for i := range tasks {
		tasks[i] = map[string]any{"type": "t", "payload": i}
	}
	rows := s.want(s.call("POST", "/v1/tasks/batch", s.acme, map[string]any{"tasks": tasks}), 201, "").rows("data")
	if len(rows) != 1_200 || rows[1_199].str("state") != "pending" {
		t.Errorf("%d rows", len(rows))
	}
	s.await("the batch to enter", func() bool { return s.task(s.acme, rows[1_199].str("id")).str("state") == "ready" })
	if task := s.task(s.acme, rows[1_199].str("id")); task.num("payload") != 1_199 {
		t.Errorf("the last: %s", task.text)
	}
	tasks[1_100] = map[string]any{"type": "t", "lane": "nowhere"}
	s.refused(s.call("POST", "/v1/tasks/batch", s.acme, map[string]any{"tasks": tasks}), "body.tasks[1100].lane")
}
