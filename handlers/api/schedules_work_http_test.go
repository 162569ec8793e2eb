package api_test

import (
	"fmt"
	"strings"
	"testing"
)

// admin is a token of a tenant with every scope that a tenant's key may have.
func (s *stage) admin(slug string) string {
	s.t.Helper()
	key := s.want(s.call("POST", "/v1/api-keys", s.root, map[string]any{
		"name": "admin", "scopes": []string{"schedules:read", "schedules:write", "tasks:read", "tasks:write", "admin:read", "admin:write"},
	}, "Nightshift-Tenant", slug), 201, "")
	return s.token(key.str("client_id"), key.str("client_secret"))
}

func nightlyFlow(more map[string]any) map[string]any {
	body := daily(map[string]any{"workflow": map[string]any{"name": "etl", "tasks": []any{
		map[string]any{"key": "load", "type": "load", "payload": map[string]any{"part": "{{partition.index}}/{{partition.count}}"}},
		map[string]any{"key": "sum", "type": "sum", "depends_on": []string{"load"}},
	}}})
	delete(body, "task")
	for name, value := range more {
		body[name] = value
	}
	return body
}

func TestAScheduleMakesWorkflowsInPartitions(t *testing.T) {
	s := newStage(t)
	token := s.scheduler("acme")
	made := s.want(s.call("POST", "/v1/schedules", token, nightlyFlow(map[string]any{"partitions": 2})), 201, "")
	if made.at("workflow").str("name") != "etl" || made.body["task"] != nil || made.num("partitions") != 2 {
		t.Errorf("made: %s", made.text)
	}
	path := "/v1/schedules/" + made.str("id")
	run := s.want(s.call("POST", path+"/trigger", token, nil), 201, "")
	if run.str("workflow_id") == "" || run.body["task_id"] != nil || run.str("result_state") != "running" {
		t.Errorf("the run: %s", run.text)
	}
	flow := s.want(s.call("GET", "/v1/workflows/"+run.str("workflow_id"), token, nil), 200, "")
	if flow.str("name") != "etl" || flow.at("counts").num("ready") != 2 || flow.at("counts").num("pending") != 2 {
		t.Errorf("its workflow: %s", flow.text)
	}
	if rows := s.want(s.call("GET", "/v1/tasks?schedule_id="+made.str("id"), token, nil), 200, "").rows("data"); len(rows) != 4 || rows[0].str("run_id") != run.str("id") || rows[0].str("schedule_id") != made.str("id") {
		t.Errorf("its tasks: %v", rows)
	}
	if rows := s.want(s.call("GET", "/v1/tasks?schedule_id="+made.str("id"), s.scheduler("blue"), nil), 200, "").rows("data"); len(rows) != 0 {
		t.Errorf("another tenant sees %v", rows)
	}
	s.want(s.call("GET", "/v1/tasks?schedule_id=nightly", token, nil), 422, "validation_failed")
	w := s.register(s.acme, nil)
	seen := map[string]bool{}
	for range 4 {
		lease := w.claim(1, 0)[0]
		part := lease.at("partition")
		if run := lease.at("run"); run.str("schedule") != "nightly" || run.str("scheduled_for") == "" || part.num("count") != 2 {
			t.Errorf("the claim: %s", lease.text)
		}
		if lease.str("type") == "load" {
			seen[fmt.Sprint(part.num("index"), lease.at("payload").str("part"))] = true
		}
		w.report(done(lease, "fine"))
	}
	if !seen["00/2"] || !seen["11/2"] {
		t.Errorf("the partitions are %v", seen)
	}
	rows := s.want(s.call("GET", path+"/runs", token, nil), 200, "").rows("data")
	if len(rows) != 1 || rows[0].str("result_state") != "succeeded" || rows[0].str("finished_at") == "" {
		t.Errorf("the runs: %v", rows)
	}
	one := s.want(s.call("PATCH", path, token, `{"task":{"type":"x"},"workflow":null,"partitions":1}`), 200, "")
	if one.at("task").str("type") != "x" || one.body["workflow"] != nil || one.num("partitions") != 1 {
		t.Errorf("edited: %s", one.text)
	}
	if run := s.want(s.call("POST", path+"/trigger", token, nil), 201, ""); run.str("task_id") == "" || run.body["workflow_id"] != nil {
		t.Errorf("one partition: %s", run.text)
	}
	plain := s.submit(s.acme, map[string]any{"type": "x"})
	if lease := w.claim(2, 0)[1]; lease.str("task_id") != plain.str("id") || lease.body["run"] != nil || lease.body["partition"] != nil {
		t.Errorf("a task of no schedule: %s", lease.text)
	}
}

func TestWorkflowsOfSchedulesAreRefusedByTheFieldAtFault(t *testing.T) {
	s := newStage(t)
	token := s.scheduler("acme")
	flow := func(tasks ...any) map[string]any {
		return map[string]any{"workflow": map[string]any{"name": "w", "tasks": tasks}}
	}
	task := func(key string, more ...any) map[string]any {
		body := map[string]any{"key": key, "type": "x"}
		for i := 0; i < len(more); i += 2 {
			body[more[i].(string)] = more[i+1]
		}
		return body
	}
	many := make([]any, 1001)
	for i := range many {
		many[i] = task(fmt.Sprint(i))
	}
	for i, c := range []struct {
		change map[string]any
		field  string
	}{
		{map[string]any{"task": map[string]any{"type": "x"}}, "body."},
		{map[string]any{"workflow": nil}, "body.task"},
		{map[string]any{"workflow": map[string]any{"name": "w"}}, "body.workflow.tasks"},
		{flow(), "body.workflow.tasks"},
		{flow(map[string]any{"key": "a"}), "body.workflow.tasks[0].type"},
		{flow(task("a", "depends_on", []string{"b"})), "body.workflow.tasks[0].depends_on"},
		{flow(task("a"), task("a")), "body.workflow.tasks[1].key"},
		{flow(task("a", "depends_on", []string{"b"}), task("b", "depends_on", []string{"a"})), "body.workflow.tasks"},
		{flow(task("a", "run_at", "2030-01-01T00:00:00Z")), "body.workflow.tasks[0].run_at"},
		{flow(task("a", "lane", "nowhere")), "body.workflow.tasks[0].lane"},
		{flow(task("a", "payload", "{{schedule_for}}")), "body.workflow.tasks[0].payload"},
		{flow(task("a", "payload", "{{vars.city}}")), "body.workflow.tasks[0].payload"},
		{flow(many...), "body.workflow.tasks"},
		{map[string]any{"workflow": map[string]any{"name": "w", "colour": "red", "tasks": []any{task("a")}}}, "body.workflow.colour"},
		{map[string]any{"partitions": 501}, "body.partitions"},
		{map[string]any{"partitions": 0}, "body.partitions"},
	} {
		r := s.call("POST", "/v1/schedules", token, nightlyFlow(c.change))
		if r.status != 422 || !strings.Contains(r.text, `"location":"`+c.field) {
			t.Errorf("%d: %d %.400s, want %s", i, r.status, r.text, c.field)
		}
	}
	ring := s.call("POST", "/v1/schedules", token, nightlyFlow(flow(task("a", "depends_on", []string{"b"}), task("b", "depends_on", []string{"a"}))))
	s.want(ring, 422, "invalid_dag")
	big := strings.Repeat("x", 200_000)
	r := s.call("POST", "/v1/schedules", token, daily(map[string]any{"task": map[string]any{"type": "x", "payload": big}, "partitions": 100}))
	s.refused(s.want(r, 422, "validation_failed"), "body.task")
}

func TestVariablesAreSetTogether(t *testing.T) {
	s := newStage(t)
	admin, token := s.admin("acme"), s.scheduler("acme")
	const path = "/v1/variables"
	none := s.want(s.call("GET", path, admin, nil), 200, "")
	if len(none.at("variables").body) != 0 || none.body["updated_at"] != nil || none.header.Get("ETag") != `"1"` {
		t.Errorf("before any: %s", none.text)
	}
	set := s.want(s.call("PUT", path, admin, `{"variables":{"city":"Lus\"aka","N.1":""}}`, "If-Match", `"1"`), 200, "")
	if set.at("variables").str("city") != `Lus"aka` || set.num("version") != 2 || set.header.Get("ETag") != `"2"` {
		t.Errorf("set: %s", set.text)
	}
	if got := s.want(s.call("GET", path, admin, nil), 200, ""); got.text != set.text {
		t.Errorf("read: %s", got.text)
	}
	s.want(s.call("PUT", path, admin, `{"variables":{}}`, "If-Match", `"1"`), 412, "stale")
	made := s.want(s.call("POST", "/v1/schedules", token, daily(map[string]any{"task": map[string]any{"type": "x", "payload": "in {{vars.city}} at {{ scheduled_for }}, {{watermark.docs}}{{#if}}"}})), 201, "")
	run := s.want(s.call("POST", "/v1/schedules/"+made.str("id")+"/trigger", token, nil), 201, "")
	if got, want := s.task(token, run.str("task_id")).str("payload"), `in Lus"aka at `+run.str("scheduled_for")+`, {{#if}}`; got != want {
		t.Errorf("the payload is %q, want %q", got, want)
	}
	if other := s.want(s.call("GET", path, s.admin("blue"), nil), 200, ""); len(other.at("variables").body) != 0 {
		t.Errorf("another tenant sees %s", other.text)
	}
	for body, field := range map[string]string{
		`{}`:                          "body.variables",
		`{"variables":null}`:          "body.variables",
		`{"variables":{"a b":"x"}}`:   "body.variables.a b",
		`{"variables":{"a":1}}`:       "body.variables.a",
		`{"variables":{},"colour":1}`: "body.colour",
		`{"variables":{"a":"` + strings.Repeat("x", 4097) + `"}}`: "body.variables.a",
	} {
		s.refused(s.want(s.call("PUT", path, admin, body), 422, "validation_failed"), field)
	}
	s.want(s.call("GET", path, token, nil), 403, "scope_required")
	s.want(s.call("PUT", path, token, `{"variables":{}}`), 403, "scope_required")
}

// What a workflow gives all its tasks is given by a schedule's workflow too.
func TestAScheduledWorkflowSharesItsLaneAndPriority(t *testing.T) {
	s := newStage(t)
	token := s.scheduler("acme")
	made := s.want(s.call("POST", "/v1/schedules", token, map[string]any{
		"name": "shared", "kind": "cron", "expression": dailyRule,
		"workflow": map[string]any{"name": "etl", "lane": "io", "priority": 70, "labels": map[string]any{"a": "b"}, "tasks": []any{map[string]any{"key": "a", "type": "x"}}},
	}), 201, "")
	run := s.want(s.call("POST", "/v1/schedules/"+made.str("id")+"/trigger", token, map[string]any{}), 201, "")
	flow := run.str("workflow_id")
	list := s.want(s.call("GET", "/v1/tasks?workflow_id="+flow, token, nil), 200, "")
	if !strings.Contains(list.text, `"lane":"io","priority":70`) {
		t.Errorf("the task stands elsewhere: %s", list.text)
	}
}
