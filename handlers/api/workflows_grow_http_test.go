package api_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

func many(n int, prefix string, more func(i int, task map[string]any)) map[string]any {
	tasks := make([]any, n)
	for i := range tasks {
		task := map[string]any{"key": fmt.Sprint(prefix, i), "type": "t"}
		if more != nil {
			more(i, task)
		}
		tasks[i] = task
	}
	return map[string]any{"tasks": tasks}
}

// A workflow grows by thousands of tasks in one call: they wait for each other, for what had ended and for what runs, and all
// are done once.
func TestAWorkflowGrowsByThousands(t *testing.T) {
	s := newStage(t)
	w := s.register(s.acme, map[string]any{"slots": 500})
	made := s.want(s.call("POST", "/v1/workflows", s.acme, chain("a", "b")), 201, "")
	id := made.str("id")
	path := "/v1/workflows/" + id + "/tasks"
	w.report(done(w.claim(1, 5)[0], nil)) // a
	lease := w.claim(1, 5)[0]             // b runs
	body := many(2500, "x", func(i int, task map[string]any) {
		switch {
		case i == 2000:
			task["depends_on"] = []any{"x2400", "x0"}
		case i%3 == 1:
			task["depends_on"] = []any{"a"}
		case i%3 == 2:
			task["depends_on"] = []any{"b", map[string]any{"task": made.at("tasks").str("a"), "on": "finished"}}
		}
	})
	dry := s.want(s.call("POST", path+"?dry_run=true", s.acme, body), 200, "")
	if dry.num("tasks") != 2500 || dry.str("lane") != "batch" || len(dry.rows("refusals")) != 0 {
		t.Errorf("dry %s", dry.text)
	}
	if row := s.call("GET", "/v1/workflows/"+id, s.acme, nil); row.at("budget").at("used").num("tasks") != 2 {
		t.Errorf("a dry run has grown it: %s", row.text)
	}
	grown := s.want(s.call("POST", path, s.acme, body, "Idempotency-Key", "g"), 201, "")
	if len(grown.at("tasks").body) != 2500 || grown.str("id") != id || grown.at("counts").num("pending") < 2400 {
		t.Errorf("grown: %d tasks, counts %v", len(grown.at("tasks").body), grown.at("counts").body)
	}
	if again := s.want(s.call("POST", path, s.acme, body, "Idempotency-Key", "g"), 201, ""); again.header.Get("Idempotent-Replayed") != "true" {
		t.Error("it is not known again")
	}
	s.await("their entry", func() bool {
		c := s.call("GET", "/v1/workflows/"+id, s.acme, nil).at("counts")
		return c.num("ready")+c.num("pending") == 2500 && c.num("pending") == 833
	})
	w.report(done(lease, nil))
	s.await("what waited for b", func() bool { return s.call("GET", "/v1/workflows/"+id, s.acme, nil).at("counts").num("pending") == 1 })
	for left := w.claim(500, 5); len(left) > 0; left = w.claim(500, 1) {
		results := make([]map[string]any, len(left))
		for i := range left {
			results[i] = done(left[i], nil)
		}
		w.report(results...)
	}
	s.await("the end", func() bool { return s.call("GET", "/v1/workflows/"+id, s.acme, nil).str("state") == "succeeded" })
	if c := s.call("GET", "/v1/workflows/"+id, s.acme, nil).at("counts"); c.num("succeeded") != 2502 {
		t.Errorf("counts %v", c.body)
	}
	s.want(s.call("POST", path, s.acme, many(1200, "late", nil)), 409, "state_conflict")
	late := s.want(s.call("POST", path+"?dry_run=true", s.acme, many(1200, "late", nil)), 200, "")
	if r := late.rows("refusals"); len(r) != 1 || r[0].str("code") != "state_conflict" {
		t.Errorf("dry when it has ended: %s", late.text)
	}
	if again := s.want(s.call("POST", path, s.acme, body, "Idempotency-Key", "g"), 201, ""); again.header.Get("Idempotent-Replayed") != "true" {
		t.Error("it is not known again once the workflow has ended")
	}
}

// Whatever is wrong with a large body refuses it whole, and nothing of it shows.
func TestALargeBodyIsRefusedWhole(t *testing.T) {
	s := newStage(t)
	made := s.want(s.call("POST", "/v1/workflows", s.acme, with(chain("a", "b"), "budget", map[string]any{"max_tasks": 1500})), 201, "")
	path := "/v1/workflows/" + made.str("id") + "/tasks"
	at := func(place int, name string, value any) map[string]any {
		return many(1300, "x", func(i int, task map[string]any) {
			if i == place {
				task[name] = value
			}
		})
	}
	s.refused(s.want(s.call("POST", path, s.acme, at(1200, "key", "a")), 422, "invalid_dag"), "body.tasks[1200].key")
	s.refused(s.want(s.call("POST", path, s.acme, at(100, "depends_on", []any{"nobody"})), 422, "invalid_dag"), "body.tasks[100].depends_on")
	s.refused(s.want(s.call("POST", path, s.acme, at(1250, "depends_on", []any{"x1250"})), 422, "invalid_dag"), "body.tasks[1250].depends_on")
	s.refused(s.want(s.call("POST", path, s.acme, at(1234, "priority", 101)), 422, "validation_failed"), "body.tasks[1234].priority")
	other := s.submit(s.blue, map[string]any{"type": "t"}).str("id")
	s.refused(s.want(s.call("POST", path, s.acme, at(1201, "depends_on", []any{map[string]any{"task": other}})), 422, "validation_failed"), "body.tasks[1201].depends_on[0]")
	if over := s.want(s.call("POST", path, s.acme, many(1499, "x", nil)), 409, "workflow_budget_exceeded"); !strings.Contains(over.str("detail"), "max_tasks is 1500") {
		t.Errorf("over budget: %s", over.text)
	}
	dry := s.want(s.call("POST", path+"?dry_run=true", s.acme, many(1499, "x", nil)), 200, "")
	if r := dry.rows("refusals"); len(r) != 1 || r[0].str("code") != "workflow_budget_exceeded" {
		t.Errorf("dry: %s", dry.text)
	}
	s.want(s.call("POST", path, s.blue, many(1300, "x", nil)), 404, "not_found")
	s.want(s.call("POST", path+"?dry_run=maybe", s.acme, many(1, "x", nil)), 400, "invalid_query")
	row := s.call("GET", "/v1/workflows/"+made.str("id"), s.acme, nil)
	list := s.call("GET", "/v1/tasks?count=true&workflow_id="+made.str("id"), s.acme, nil)
	graph := s.call("GET", "/v1/workflows/"+made.str("id")+"/graph", s.acme, nil)
	if row.at("budget").at("used").num("tasks") != 2 || list.at("total").num("value") != 2 || len(graph.rows("nodes")) != 2 {
		t.Errorf("what was refused shows: %s %s %s", row.at("budget").text, list.at("total").text, graph.text)
	}
	s.want(s.call("POST", path+"/x3/skip", s.acme, map[string]any{"reason": "r"}), 404, "not_found")
	s.want(s.call("POST", path+"?return=minimal", s.acme, many(1498, "x", nil)), 201, "")
}

// Of bodies that come at once each key is taken by one.
func TestLargeBodiesAtOnceShareNoKey(t *testing.T) {
	s := newStage(t)
	id := s.want(s.call("POST", "/v1/workflows", s.acme, chain("a", "b")), 201, "").str("id")
	var wait sync.WaitGroup
	status := make([]int, 3)
	for n := range status {
		wait.Go(func() {
			body := many(1100, fmt.Sprint("of", n, "-"), func(i int, task map[string]any) {
				if i == 1050 {
					task["key"] = "the one"
				}
			})
			status[n] = s.call("POST", "/v1/workflows/"+id+"/tasks?return=minimal", s.acme, body).status
		})
	}
	wait.Wait()
	made := 0
	for _, code := range status {
		switch code {
		case 201:
			made++
		case 422:
		default:
			t.Errorf("answers %v", status)
		}
	}
	if made != 1 {
		t.Errorf("%d of three bodies with one key were taken: %v", made, status)
	}
	if row := s.call("GET", "/v1/workflows/"+id, s.acme, nil); row.at("budget").at("used").num("tasks") != 1102 {
		t.Errorf("it has %v", row.at("budget").body)
	}
}

// A new workflow of thousands may wait for tasks that were submitted before.
func TestALargeWorkflowWaitsForTasksBeforeIt(t *testing.T) {
	s := newStage(t)
	w := s.register(s.acme, nil)
	before := s.submit(s.acme, map[string]any{"type": "t"}).str("id")
	lease := w.claim(1, 5)[0]
	body := with(many(1100, "x", func(i int, task map[string]any) { task["depends_on"] = []any{before} }), "name", "night")
	id := s.want(s.call("POST", "/v1/workflows?return=minimal", s.acme, body), 201, "").str("id")
	counts := func(state string) float64 {
		return s.call("GET", "/v1/workflows/"+id, s.acme, nil).at("counts").num(state)
	}
	s.await("their entry", func() bool {
		return s.call("GET", "/v1/tasks?state=pending&workflow_id="+id, s.acme, nil).status == 200 && counts("pending") == 1100
	})
	w.report(done(lease, nil))
	s.await("their turn", func() bool { return counts("ready") == 1100 })
}
