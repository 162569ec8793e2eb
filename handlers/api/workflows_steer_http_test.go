package api_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// chain is a workflow in which each task waits for the one before it.
func chain(keys ...string) map[string]any {
	tasks := []any{}
	for i, key := range keys {
		task := map[string]any{"key": key, "type": "t", "retry_policy": map[string]any{"max_attempts": 1}}
		if i > 0 {
			task["depends_on"] = []string{keys[i-1]}
		}
		tasks = append(tasks, task)
	}
	return map[string]any{"name": "chain", "tasks": tasks}
}

func with(body map[string]any, name string, value any) map[string]any {
	body[name] = value
	return body
}

func broken(lease reply) map[string]any {
	return map[string]any{"lease_token": lease.str("lease_token"), "status": "failed", "error": map[string]any{"class": "invalid_input", "message": "no"}}
}

func TestAConditionSkipsATask(t *testing.T) {
	s := newStage(t)
	w := s.register(s.acme, nil)
	made := s.want(s.call("POST", "/v1/workflows", s.acme, map[string]any{"name": "n", "tasks": []any{
		map[string]any{"key": "a", "type": "t"},
		map[string]any{"key": "yes", "type": "t", "depends_on": []string{"a"}, "run_if": `deps.all(d, d.result.score > 0.5)`},
		map[string]any{"key": "no", "type": "t", "depends_on": []string{"a"}, "run_if": `deps.all(d, d.result.score > payload.least)`, "payload": map[string]any{"least": 0.95}},
	}}), 201, "")
	ids := made.at("tasks")
	yes := s.task(s.acme, ids.str("yes"))
	if yes.str("run_if") == "" || yes.rows("depends_on")[0].str("on") != "finished" {
		t.Errorf("a task with a condition: %s", yes.text)
	}
	w.report(done(w.claim(1, 5)[0], map[string]any{"score": 0.9}))
	if leases := w.claim(5, 5); len(leases) != 1 || leases[0].str("task_id") != ids.str("yes") {
		t.Errorf("%d tasks go on", len(leases))
	}
	if no := s.task(s.acme, ids.str("no")); no.str("state") != "skipped" {
		t.Errorf("the other one: %s", no.text)
	}
	s.refused(s.call("POST", "/v1/tasks", s.acme, `{"type":"t","run_if":"deps.all("}`), "body.run_if")
}

func TestPauseAndResumeAWorkflow(t *testing.T) {
	s := newStage(t)
	w := s.register(s.acme, nil)
	id := s.want(s.call("POST", "/v1/workflows", s.acme, chain("a", "b")), 201, "").str("id")
	if paused := s.want(s.call("POST", "/v1/workflows/"+id+"/pause", s.acme, map[string]any{"reason": "look"}), 200, ""); paused.str("state") != "paused" {
		t.Errorf("paused %s", paused.text)
	}
	if leases := w.claim(1, 0); len(leases) != 0 {
		t.Error("a paused workflow starts something")
	}
	rows := s.want(s.call("GET", "/v1/workflows?state=paused", s.acme, nil), 200, "").rows("data")
	if len(rows) != 1 {
		t.Errorf("%d are paused", len(rows))
	}
	if resumed := s.want(s.call("POST", "/v1/workflows/"+id+"/resume", s.acme, nil), 200, ""); resumed.str("state") != "running" {
		t.Errorf("resumed %s", resumed.text)
	}
	for range 2 {
		w.report(done(w.claim(1, 5)[0], nil))
	}
	s.await("the end", func() bool { return s.call("GET", "/v1/workflows/"+id, s.acme, nil).str("state") == "succeeded" })
	s.want(s.call("POST", "/v1/workflows/"+id+"/pause", s.acme, nil), 409, "state_conflict")
	s.want(s.call("POST", "/v1/workflows/"+id+"/pause", s.blue, nil), 404, "not_found")
	s.want(s.call("POST", "/v1/workflows/"+id+"/pause?x=1", s.acme, nil), 400, "invalid_query")
}

func TestAWorkflowThatStopsIsRetried(t *testing.T) {
	s := newStage(t)
	w := s.register(s.acme, nil)
	made := s.want(s.call("POST", "/v1/workflows", s.acme, with(chain("a", "b"), "on_failure", "stop")), 201, "")
	id := made.str("id")
	more := s.want(s.call("POST", "/v1/workflows/"+id+"/tasks", s.acme, map[string]any{"tasks": []any{map[string]any{"key": "c", "type": "t"}}}), 201, "")
	w.report(broken(w.claim(1, 5)[0]))
	s.await("the stop", func() bool { return s.call("GET", "/v1/workflows/"+id, s.acme, nil).str("state") == "failed" })
	if leases := w.claim(1, 0); len(leases) != 0 {
		t.Error("a stopped workflow starts something")
	}
	why := s.want(s.call("GET", "/v1/tasks/"+more.at("tasks").str("c")+"/explain", s.acme, nil), 200, "")
	if why.rows("blocked_by")[0].str("reason") != "workflow_stopped" {
		t.Errorf("c is blocked: %s", why.text)
	}
	again := s.want(s.call("POST", "/v1/workflows/"+id+"/retry", s.acme, nil), 200, "")
	if again.str("on_failure") != "stop" || again.str("state") != "running" || again.at("counts").num("dead_letter") != 0 || again.at("counts").num("ready") != 2 {
		t.Errorf("retried %s", again.text)
	}
	for range 3 {
		w.report(done(w.claim(1, 5)[0], nil))
	}
	s.await("the end", func() bool { return s.call("GET", "/v1/workflows/"+id, s.acme, nil).str("state") == "succeeded" })
	s.want(s.call("POST", "/v1/workflows/"+id+"/retry", s.acme, nil), 409, "state_conflict")
}

func TestSkipATaskOfAWorkflow(t *testing.T) {
	s := newStage(t)
	w := s.register(s.acme, nil)
	made := s.want(s.call("POST", "/v1/workflows", s.acme, chain("first one", "b")), 201, "")
	path := "/v1/workflows/" + made.str("id") + "/tasks/"
	s.refused(s.call("POST", path+"first%20one/skip", s.acme, map[string]any{"reason": 1}), "body.reason")
	s.want(s.call("POST", path+"nothing/skip", s.acme, map[string]any{"reason": "r"}), 404, "not_found")
	s.want(s.call("POST", path+"first%20one/skip", s.blue, map[string]any{"reason": "r"}), 404, "not_found")
	if skipped := s.want(s.call("POST", path+"first%20one/skip", s.acme, map[string]any{"reason": "not tonight"}), 200, ""); skipped.str("state") != "skipped" || skipped.body["result"] != nil {
		t.Errorf("skipped %s", skipped.text)
	}
	lease := w.claim(1, 5)[0]
	deps := lease.rows("dependencies")
	if lease.str("task_id") != made.at("tasks").str("b") || len(deps) != 1 || deps[0].str("state") != "skipped" || deps[0].body["result"] != nil {
		t.Errorf("the next one: %v", lease.body)
	}
	s.want(s.call("POST", path+"b/skip", s.acme, map[string]any{"reason": "r"}), 409, "state_conflict")

	other := s.want(s.call("POST", "/v1/workflows", s.acme, chain("a", "b")), 201, "").str("id") // a reason may be left out
	if skipped := s.want(s.call("POST", "/v1/workflows/"+other+"/tasks/a/skip", s.acme, nil), 200, ""); skipped.str("state") != "skipped" {
		t.Errorf("without a reason: %s", skipped.text)
	}
}

func TestAWorkflowGrows(t *testing.T) {
	s := newStage(t)
	made := s.want(s.call("POST", "/v1/workflows", s.acme, with(chain("a", "b"), "budget", map[string]any{"max_tasks": 4})), 201, "")
	path := "/v1/workflows/" + made.str("id") + "/tasks"
	grown := s.want(s.call("POST", path, s.acme, map[string]any{"tasks": []any{
		map[string]any{"key": "c", "type": "t", "depends_on": []any{"b", "d"}}, map[string]any{"key": "d", "type": "t"},
	}}, "Idempotency-Key", "g"), 201, "")
	if len(grown.at("tasks").body) != 2 || grown.at("budget").at("used").num("tasks") != 4 || grown.at("budget").at("left").num("tasks") != 0 {
		t.Errorf("grown %s", grown.text)
	}
	c := s.task(s.acme, grown.at("tasks").str("c"))
	if c.num("remaining_dependencies") != 2 || c.str("workflow_id") != made.str("id") {
		t.Errorf("c is %s", c.text)
	}
	s.want(s.call("POST", path, s.acme, map[string]any{"tasks": []any{map[string]any{"key": "e", "type": "t"}}}), 409, "workflow_budget_exceeded")
	s.refused(s.want(s.call("POST", path, s.acme, map[string]any{"tasks": []any{map[string]any{"key": "a", "type": "t"}}}), 422, "invalid_dag"), "body.tasks[0].key")
	s.refused(s.want(s.call("POST", path, s.acme, map[string]any{"tasks": []any{map[string]any{"key": "f", "type": "t", "depends_on": []any{"x"}}}}), 422, "invalid_dag"), "body.tasks[0].depends_on")
	s.refused(s.want(s.call("POST", path, s.acme, map[string]any{"tasks": []any{}}), 422, "validation_failed"), "body.tasks")
	s.want(s.call("POST", path, s.blue, map[string]any{"tasks": []any{map[string]any{"key": "e", "type": "t"}}}), 404, "not_found")
	refused := s.want(s.call("POST", "/v1/workflows", s.acme, with(chain("a", "b"), "budget", map[string]any{"max_tasks": 1})), 409, "workflow_budget_exceeded")
	if !strings.Contains(refused.str("detail"), "max_tasks") {
		t.Errorf("it does not name the limit: %s", refused.text)
	}
}

func TestRerunFromATask(t *testing.T) {
	s := newStage(t)
	w := s.register(s.acme, nil)
	made := s.want(s.call("POST", "/v1/workflows", s.acme, with(chain("a", "b", "c"), "labels", map[string]string{"night": "1"})), 201, "")
	for _, key := range []string{"a", "b", "c"} {
		w.report(done(w.claim(1, 5)[0], map[string]any{"of": key}))
	}
	s.refused(s.call("POST", "/v1/workflows/"+made.str("id")+"/rerun", s.acme, map[string]any{"from": "x"}), "body.from")
	again := s.want(s.call("POST", "/v1/workflows/"+made.str("id")+"/rerun", s.acme, map[string]any{"from": "b"}), 201, "")
	if again.str("rerun_of") != made.str("id") || again.str("id") == made.str("id") || len(again.at("tasks").body) != 2 || again.at("labels").str("night") != "1" {
		t.Errorf("again %s", again.text)
	}
	lease := w.claim(1, 5)[0]
	deps := lease.rows("dependencies")
	if lease.str("task_id") != again.at("tasks").str("b") || len(deps) != 1 || deps[0].at("result").str("of") != "a" {
		t.Errorf("b comes with %v", lease.body)
	}
	w.report(done(lease, nil))
	w.report(done(w.claim(1, 5)[0], nil))
	s.await("the end", func() bool {
		return s.call("GET", "/v1/workflows/"+again.str("id"), s.acme, nil).str("state") == "succeeded"
	})
	s.want(s.call("POST", "/v1/workflows/"+made.str("id")+"/rerun", s.blue, map[string]any{"from": "b"}), 404, "not_found")
}

func TestABudgetOfCost(t *testing.T) {
	s := newStage(t)
	w := s.register(s.acme, nil)
	tasks := []any{}
	for i := range 6 {
		tasks = append(tasks, map[string]any{"key": fmt.Sprint(i), "type": "t"})
	}
	body := map[string]any{"name": "n", "tasks": tasks, "budget": map[string]any{"max_cost_usd": 0.3, "max_tokens": 1000, "max_runtime_seconds": 900, "max_depth": 3}}
	id := s.want(s.call("POST", "/v1/workflows", s.acme, body), 201, "").str("id")
	for range 3 {
		leases := w.claim(1, 5)
		if len(leases) == 0 {
			t.Fatalf("nothing starts: %s", s.call("GET", "/v1/workflows/"+id, s.acme, nil).text)
		}
		result := done(leases[0], nil)
		result["usage"] = map[string]any{"cost_usd": 0.1, "tokens_in": 5, "tokens_out": 5}
		w.report(result)
	}
	if leases := w.claim(1, 0); len(leases) != 0 {
		t.Error("all is used, yet something starts")
	}
	flow := s.want(s.call("GET", "/v1/workflows/"+id, s.acme, nil), 200, "")
	budget := flow.at("budget")
	if flow.str("state") != "running" || budget.at("limit").num("cost_usd") != 0.3 || budget.at("used").num("cost_usd") != 0.3 || budget.at("left").num("cost_usd") != 0 ||
		budget.at("left").num("tokens") != 970 || budget.at("limit").num("runtime_seconds") != 900 || budget.at("limit").body["tasks"] != nil || budget.at("limit").num("depth") != 3 {
		t.Errorf("the budget %s", flow.text)
	}
	path := "/v1/workflows/" + id
	s.refused(s.call("PATCH", path, s.acme, `{"budget":{"max_cost_usd":0.2}}`), "body.budget.max_cost_usd")
	s.refused(s.call("PATCH", path, s.acme, `{"budget":{"max_tasks":9}}`), "body.budget.max_tasks")
	s.refused(s.call("PATCH", path, s.acme, `{"priority":101}`), "body.priority")
	s.refused(s.call("PATCH", path, s.acme, `{"name":"m"}`), "body.name")
	s.want(s.call("PATCH", path, s.blue, `{"priority":10}`), 404, "not_found")
	edited := s.want(s.call("PATCH", path, s.acme, `{"budget":{"max_cost_usd":0.5},"priority":80,"labels":{"a":"1"}}`), 200, "")
	if edited.at("budget").at("limit").num("cost_usd") != 0.5 || edited.num("priority") != 80 || edited.at("labels").str("a") != "1" {
		t.Errorf("edited %s", edited.text)
	}
	tag := edited.header.Get("ETag")
	relabelled := s.want(s.call("PATCH", path, s.acme, `{"labels":{"a":null,"b":"2"}}`, "If-Match", tag), 200, "")
	if labels := relabelled.at("labels").body; len(labels) != 1 || labels["b"] != "2" {
		t.Errorf("labels %v", labels)
	}
	s.want(s.call("PATCH", path, s.acme, `{"labels":{"c":"3"}}`, "If-Match", tag), 412, "stale")
	s.want(s.call("PATCH", path, s.acme, `{"labels":{"c":"3"}}`, "If-Match", `"never"`), 412, "stale")
	if leases := w.claim(5, 5); len(leases) != 2 {
		t.Errorf("two more tasks are covered, %d start", len(leases))
	}
}

func TestALargeRerunIsHandedWhatEnded(t *testing.T) {
	s := newStage(t)
	w := s.register(s.acme, nil)
	body := chain("a", "b")
	tasks := body["tasks"].([]any)
	for i := range 1100 {
		tasks = append(tasks, map[string]any{"key": fmt.Sprint("t", i), "type": "t", "depends_on": []string{"b"}})
	}
	body["tasks"] = append(tasks, map[string]any{"key": "never", "type": "t", "depends_on": []any{"b", map[string]any{"key": "a", "on": "failed"}}})
	id := s.want(s.call("POST", "/v1/workflows?return=minimal", s.acme, body), 201, "").str("id")
	dry := s.want(s.call("POST", "/v1/workflows/"+id+"/rerun?dry_run=true", s.acme, map[string]any{"from": "b"}), 200, "")
	if dry.num("tasks") != 1102 || len(dry.rows("refusals")) != 0 || dry.str("lane") != "batch" {
		t.Errorf("dry %s", dry.text)
	}
	s.refused(s.call("POST", "/v1/workflows/"+id+"/rerun?dry_run=true", s.acme, map[string]any{"from": "x"}), "body.from")
	early := s.want(s.call("POST", "/v1/workflows/"+id+"/rerun", s.acme, map[string]any{"from": "b"}), 201, "")
	s.await("its entry", func() bool {
		return s.task(s.acme, early.at("tasks").str("b")).num("remaining_dependencies") == 1
	})
	if n := len(s.call("GET", "/v1/workflows", s.acme, nil).rows("data")); n != 2 {
		t.Errorf("%d workflows: a dry run has made one", n)
	}
	w.report(done(w.claim(1, 5)[0], map[string]any{"of": "a"}))
	s.await("what waited for the first run", func() bool { return s.task(s.acme, early.at("tasks").str("b")).str("state") == "ready" })
	for _, flow := range []string{id, early.str("id")} {
		s.want(s.call("POST", "/v1/workflows/"+flow+"/cancel", s.acme, nil), 202, "")
		s.await("the cancel", func() bool { return s.call("GET", "/v1/workflows/"+flow, s.acme, nil).str("state") == "cancelled" })
	}
	again := s.want(s.call("POST", "/v1/workflows/"+id+"/rerun", s.acme, map[string]any{"from": "b"}), 201, "")
	if len(again.at("tasks").body) != 1102 {
		t.Errorf("%d tasks again", len(again.at("tasks").body))
	}
	lease := w.claim(1, 5)[0]
	if deps := lease.rows("dependencies"); lease.str("task_id") != again.at("tasks").str("b") || len(deps) != 1 || deps[0].at("result").str("of") != "a" {
		t.Errorf("b comes with %v", lease.body)
	}
	w.report(done(lease, nil))
	s.await("what can never run", func() bool { return s.task(s.acme, again.at("tasks").str("never")).str("state") == "skipped" })
	s.await("the others", func() bool {
		return s.call("GET", "/v1/workflows/"+again.str("id"), s.acme, nil).at("counts").num("ready") == 1100
	})
}

func TestADeadDependencyIsNamed(t *testing.T) {
	s := newStage(t)
	w := s.register(s.acme, nil)
	made := s.want(s.call("POST", "/v1/workflows", s.acme, chain("a", "b")), 201, "")
	w.report(broken(w.claim(1, 5)[0]))
	why := s.want(s.call("GET", "/v1/tasks/"+made.at("tasks").str("b")+"/explain", s.acme, nil), 200, "").rows("blocked_by")
	if len(why) != 2 || why[0].str("reason") != "dependencies" || why[1].str("reason") != "dependency_dead" || !strings.HasPrefix(why[1].str("detail"), "a (task_") {
		t.Errorf("b is blocked by %v", why)
	}
}

// Many add tasks at once: each key is taken by one of them, and nobody's tasks get lost.
func TestManyGrowOneWorkflow(t *testing.T) {
	s := newStage(t)
	made := s.want(s.call("POST", "/v1/workflows", s.acme, chain("a", "b")), 201, "")
	path := "/v1/workflows/" + made.str("id") + "/tasks"
	var all sync.WaitGroup
	var taken, double, own atomic.Int32
	for i := range 4 {
		all.Go(func() {
			r := s.call("POST", path, s.acme, map[string]any{"tasks": []any{map[string]any{"key": "same", "type": "t", "depends_on": []string{"a"}}}})
			switch {
			case r.status == 201:
				taken.Add(1)
			case r.status == 422 && r.str("code") == "invalid_dag":
				double.Add(1)
			}
			if r := s.call("POST", path, s.acme, map[string]any{"tasks": []any{map[string]any{"key": fmt.Sprint("own", i), "type": "t"}}}); r.status == 201 {
				own.Add(1)
			}
		})
	}
	all.Wait()
	if taken.Load() != 1 || double.Load() != 3 || own.Load() != 4 {
		t.Errorf("the same key was taken %d times and refused %d times, %d of 4 others were added", taken.Load(), double.Load(), own.Load())
	}
	if n := s.want(s.call("GET", "/v1/workflows/"+made.str("id"), s.acme, nil), 200, "").at("budget").at("used").num("tasks"); n != 7 {
		t.Errorf("%v tasks", n)
	}
}
