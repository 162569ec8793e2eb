package api_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// Every field that the API names is there, null when it has no value.
var taskFields = strings.Fields(`type payload lane priority run_at delay_seconds deadline expires_in_seconds resources model estimated_cost_usd
	estimated_seconds timeout retry_policy permissions secrets concurrency ordered rate_keys idempotency_key dedupe worker_selector labels watermark
	budget depends_on run_if needs_approval on_attempts_exhausted description id state attempt max_attempts environment kind lane workflow_id
	parent_task_id schedule_id run_id redrive_of trace_id remaining_dependencies blocked_by created_at ready_at started_at finished_at next_attempt_at
	held_until updated_at worker_id lease_expires_at progress result error cost`)

func TestATaskFromSubmitToSuccess(t *testing.T) {
	s := newStage(t)
	made := s.want(s.call("POST", "/v1/tasks", s.acme, map[string]any{
		"type": "llm.generate", "payload": map[string]any{"prompt": "hello"}, "labels": map[string]string{"customer": "a"}, "priority": 60,
		"timeout": map[string]any{"hard_seconds": 90}, "description": "the first", "estimated_cost_usd": 0.5,
	}, "traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"), 201, "")
	id := made.str("id")
	if made.header.Get("Location") != "/v1/tasks/"+id || made.str("state") != "ready" || made.str("lane") != "batch" || made.str("kind") != "batch" ||
		made.str("environment") != "production" || made.str("trace_id") != "0af7651916cd43dd8448eb211c80319c" {
		t.Errorf("made %s", made.text)
	}
	got := s.task(s.acme, id)
	for _, name := range taskFields {
		if _, ok := got.body[name]; !ok {
			t.Errorf("a task lacks %q", name)
		}
		if _, ok := made.body[name]; !ok {
			t.Errorf("a new task lacks %q", name)
		}
	}
	if got.text != made.text {
		t.Errorf("what was answered is not what is read:\n%s\n%s", made.text, got.text)
	}

	w := s.register(s.acme, nil)
	leases := w.claim(5, 0)
	if len(leases) != 1 || leases[0].str("task_id") != id || leases[0].at("payload").str("prompt") != "hello" || leases[0].at("labels").str("customer") != "a" ||
		leases[0].str("traceparent") == "" || leases[0].at("timeout").num("hard_seconds") != 90 || leases[0].str("idempotency_key") != id {
		t.Fatalf("claimed %v", leases)
	}
	beat := s.want(w.call("heartbeat", map[string]any{"leases": []any{map[string]any{
		"lease_token": leases[0].str("lease_token"),
		"progress":    map[string]any{"done": 0.5}, "checkpoint": map[string]any{"at": 3},
	}}}), 200, "")
	if row := beat.rows("leases")[0]; row.str("state") != "ok" || row.str("lease_expires_at") == "" {
		t.Errorf("beat %s", beat.text)
	}
	running := s.task(s.acme, id)
	if running.str("state") != "running" || running.at("progress").num("done") != 0.5 || running.at("checkpoint").num("at") != 3 ||
		running.str("lease_expires_at") == "" || running.str("worker_id") != w.id || running.num("attempt") != 1 {
		t.Errorf("running %s", running.text)
	}
	attempts := s.want(s.call("GET", "/v1/tasks/"+id+"/attempts", s.acme, nil), 200, "").rows("data")
	if len(attempts) != 1 || attempts[0].str("outcome") != "running" {
		t.Errorf("attempts %v", attempts)
	}

	result := done(leases[0], map[string]any{"text": "hi"})
	result["usage"] = map[string]any{"tokens_in": 10, "tokens_out": 20, "cost_usd": 0.25}
	if rows := w.report(result); rows[0].body["accepted"] != true || rows[0].str("state") != "succeeded" || rows[0].body["code"] != nil {
		t.Errorf("reported %v", rows)
	}
	if rows := w.report(done(leases[0], "another")); rows[0].body["accepted"] != true {
		t.Errorf("reported again %v", rows)
	}
	end := s.task(s.acme, id)
	if end.str("state") != "succeeded" || end.at("result").str("text") != "hi" || end.at("cost").num("actual_usd") != 0.25 || end.at("cost").num("tokens_out") != 20 ||
		end.at("cost").num("estimated_usd") != 0.5 || end.str("finished_at") == "" || end.body["lease_expires_at"] != nil || end.str("worker_id") != w.id || end.body["error"] != nil {
		t.Errorf("ended %s", end.text)
	}
	s.want(s.call("GET", "/v1/tasks/"+id+"/wait", s.acme, nil), 200, "")
	attempts = s.want(s.call("GET", "/v1/tasks/"+id+"/attempts", s.acme, nil), 200, "").rows("data")
	if len(attempts) != 1 || attempts[0].str("outcome") != "succeeded" || attempts[0].at("usage").num("tokens_in") != 10 {
		t.Errorf("attempts %v", attempts)
	}
}

func TestAnotherTenantsTaskIsNotThere(t *testing.T) {
	s := newStage(t)
	id := s.submit(s.acme, map[string]any{"type": "a"}).str("id")
	foreign := s.want(s.call("GET", "/v1/tasks/"+id, s.blue, nil), 404, "not_found")
	missing := s.want(s.call("GET", "/v1/tasks/task_01jzzzzzzzfzzzzzzzzzzzzzzz", s.blue, nil), 404, "not_found")
	if len(foreign.body) != len(missing.body) {
		t.Errorf("%s differs from %s", foreign.text, missing.text)
	}
	for _, path := range []string{"/attempts", "/wait", "/explain"} {
		s.want(s.call("GET", "/v1/tasks/"+id+path, s.blue, nil), 404, "not_found")
		s.want(s.call("GET", "/v1/tasks/nonsense"+path, s.acme, nil), 404, "not_found")
	}
	for _, path := range []string{"/cancel", "/retry"} {
		s.want(s.call("POST", "/v1/tasks/"+id+path, s.blue, nil), 404, "not_found")
	}
	s.want(s.call("POST", "/v1/tasks/"+id+"/discard", s.blue, map[string]any{"reason": "r"}), 404, "not_found")
	s.refused(s.call("POST", "/v1/tasks", s.blue, map[string]any{"type": "a", "depends_on": []string{id}}), "body.depends_on[0]")
	if rows := s.want(s.call("GET", "/v1/tasks", s.blue, nil), 200, "").rows("data"); len(rows) != 0 {
		t.Errorf("another tenant lists %v", rows)
	}
}

func TestSubmitRefusals(t *testing.T) {
	s := newStage(t)
	s.want(s.call("POST", "/v1/tasks", s.acme, `{"type":`), 400, "invalid_json")
	s.want(s.call("POST", "/v1/tasks", s.acme, "{\"type\":\"\xff\"}"), 400, "invalid_json")
	s.want(s.call("POST", "/v1/tasks", s.acme, nil), 400, "invalid_json")
	s.want(s.call("POST", "/v1/tasks", s.acme, `{"type":"a"}`, "Content-Type", "text/plain"), 415, "unsupported_media_type")
	s.want(s.call("POST", "/v1/tasks?surprise=1", s.acme, `{"type":"a"}`), 400, "invalid_query")
	s.want(s.call("POST", "/v1/tasks", s.root, `{"type":"a"}`), 400, "tenant_required")
	s.want(s.call("POST", "/v1/tasks", "", `{"type":"a"}`), 401, "unauthenticated")
	s.want(s.call("POST", "/v1/tasks", s.acme, `{"type":"a","payload":"`+strings.Repeat("x", 1<<20)+`"}`), 413, "body_too_large")
	s.refused(s.call("POST", "/v1/tasks", s.acme, `{"type":"a","payload":"`+strings.Repeat("x", 300_000)+`"}`), "body.payload")
	s.refused(s.call("POST", "/v1/tasks", s.acme, `{"type":"a","lane":"nowhere"}`), "body.lane")
	s.refused(s.call("POST", "/v1/tasks", s.acme, `{"type":"a","deadline":"tomorrow"}`), "body.deadline")
	s.refused(s.call("POST", "/v1/tasks", s.acme, `[]`), "body")
	s.refused(s.call("POST", "/v1/tasks/batch", s.acme, `{"tasks":[{"type":"a"},{"type":"a","priority":101}]}`), "body.tasks[1].priority")
	s.refused(s.call("POST", "/v1/tasks/batch", s.acme, `{"tasks":[{"type":"a"},{"type":"a","lane":"nowhere"}]}`), "body.tasks[1].lane")
	s.refused(s.call("POST", "/v1/tasks/batch", s.acme, `{"tasks":[]}`), "body.tasks")
	s.refused(s.call("POST", "/v1/tasks/batch", s.acme, `{"tasks":[{"type":"a"}],"more":1}`), "body.more")
	s.want(s.call("POST", "/v1/tasks/batch", s.acme, `{"tasks":[{"type":"a"},`), 400, "invalid_json")
	if rows := s.want(s.call("GET", "/v1/tasks", s.acme, nil), 200, "").rows("data"); len(rows) != 0 {
		t.Errorf("a refused body left %v", rows)
	}
}

func TestDryRunAndKeys(t *testing.T) {
	s := newStage(t)
	dry := s.want(s.call("POST", "/v1/tasks?dry_run=true", s.acme, map[string]any{"type": "a", "model": "small", "estimated_cost_usd": 0.1}), 200, "")
	if dry.str("lane") != "batch" || dry.str("model") != "small" || len(dry.rows("refusals")) != 0 {
		t.Errorf("dry run: %s", dry.text)
	}
	for _, name := range []string{"lane", "class", "model", "estimated_cost_usd", "estimated_start_at", "refusals"} {
		if _, ok := dry.body[name]; !ok {
			t.Errorf("a dry run lacks %q", name)
		}
	}
	dry = s.want(s.call("POST", "/v1/tasks?dry_run=true", s.acme, map[string]any{"type": "a", "lane": "nowhere"}), 200, "")
	if len(dry.rows("refusals")) != 1 {
		t.Errorf("dry run into no lane: %s", dry.text)
	}

	first := s.want(s.call("POST", "/v1/tasks", s.acme, `{"type":"a"}`, "Idempotency-Key", "k"), 201, "")
	again := s.want(s.call("POST", "/v1/tasks", s.acme, `{"type":"a"}`, "Idempotency-Key", "k"), 201, "")
	if again.text != first.text || again.header.Get("Idempotent-Replayed") != "true" || again.header.Get("Location") != first.header.Get("Location") {
		t.Errorf("replayed %s of %s", again.text, first.text)
	}
	s.want(s.call("POST", "/v1/tasks", s.acme, `{"type":"b"}`, "Idempotency-Key", "k"), 422, "idempotency_key_reused")
	s.want(s.call("POST", "/v1/tasks", s.blue, `{"type":"b"}`, "Idempotency-Key", "k"), 201, "")

	made := s.submit(s.acme, map[string]any{"type": "a", "idempotency_key": "invoice-7"})
	held := s.want(s.call("POST", "/v1/tasks", s.acme, `{"type":"a","idempotency_key":"invoice-7"}`), 200, "")
	if held.str("id") != made.str("id") || held.body["deduplicated"] != true {
		t.Errorf("held %s", held.text)
	}
	batch := s.want(s.call("POST", "/v1/tasks/batch", s.acme, `{"tasks":[{"type":"a"},{"type":"a","idempotency_key":"invoice-7"}]}`), 201, "").rows("data")
	if len(batch) != 2 || batch[1].str("id") != made.str("id") || batch[1].body["deduplicated"] != true || batch[0].str("state") != "ready" {
		t.Errorf("batch %v", batch)
	}
	s.want(s.call("POST", "/v1/tasks/"+made.str("id")+"/cancel", s.acme, map[string]any{"reason": "free the key"}), 200, "")
	if fresh := s.submit(s.acme, map[string]any{"type": "a", "idempotency_key": "invoice-7"}); fresh.str("id") == made.str("id") {
		t.Error("a cancelled task still holds its key")
	}
}

func TestListsPageFilterAndCount(t *testing.T) {
	s := newStage(t)
	var tasks []any
	for i := range 7 {
		tasks = append(tasks, map[string]any{"type": fmt.Sprintf("t.%d", i%2), "payload": i, "labels": map[string]string{"n": fmt.Sprint(i), "even": fmt.Sprint(i%2 == 0)}})
	}
	rows := s.want(s.call("POST", "/v1/tasks/batch", s.acme, map[string]any{"tasks": tasks}), 201, "").rows("data")
	var got []string
	cursor, pages := "", 0
	for {
		page := s.want(s.call("GET", "/v1/tasks?limit=3&count=true&cursor="+cursor, s.acme, nil), 200, "")
		if page.at("total").num("value") != 7 || page.at("total").str("relation") != "eq" {
			t.Errorf("total %s", page.text)
		}
		for _, row := range page.rows("data") {
			got = append(got, row.str("id"))
			if _, there := row.body["payload"]; there {
				t.Error("a list's row has its payload")
			}
		}
		if pages++; page.body["next_cursor"] == nil {
			break
		}
		cursor = page.str("next_cursor")
		s.want(s.call("GET", "/v1/tasks?limit=3&state=ready&cursor="+cursor, s.acme, nil), 400, "invalid_cursor")
		s.want(s.call("GET", "/v1/tasks?limit=3&cursor="+cursor, s.blue, nil), 400, "invalid_cursor")
	}
	for i := range rows {
		if got[len(got)-1-i] != rows[i].str("id") {
			t.Fatalf("newest first gives %v of %v", got, rows)
		}
	}
	if pages != 3 {
		t.Errorf("%d pages", pages)
	}
	for query, want := range map[string]int{
		"type=t.0": 4, "type=t.0,t.1": 7, "state=ready": 7, "state=ready&state=dead_letter": 7, "state=succeeded": 0, "lane=batch": 7, "lane=io": 0,
		"kind=batch": 7, "label.even=true": 4, "label.even=true&label.n=2": 1, "label.n=1,2": 2, "created_after=2020-01-01T00:00:00Z": 7,
		"created_before=2020-01-01T00:00:00Z": 0, "order=asc&limit=2": 2, "limit=9999": 7, "workflow_id=wf_01jzzzzzzzfzzzzzzzzzzzzzzz": 0,
	} {
		if rows := s.want(s.call("GET", "/v1/tasks?"+query, s.acme, nil), 200, "").rows("data"); len(rows) != want {
			t.Errorf("%s gives %d rows, want %d", query, len(rows), want)
		}
	}
	if rows := s.want(s.call("GET", "/v1/tasks?include=payload,result&limit=1", s.acme, nil), 200, "").rows("data"); rows[0].num("payload") != 6 {
		t.Errorf("include gives %v", rows)
	}
	for _, query := range []string{"limit=0", "limit=x", "order=up", "count=maybe", "surprise=1", "cursor=abc", "label.=x", "label.a%00=x", "label.%ff=x"} {
		code := "invalid_query"
		if strings.HasPrefix(query, "cursor") {
			code = "invalid_cursor"
		}
		s.want(s.call("GET", "/v1/tasks?"+query, s.acme, nil), 400, code)
	}
	for _, query := range []string{"state=odd", "kind=odd", "workflow_id=odd", "worker_id=odd", "type=Odd", "created_after=odd", "include=odd", "q=x", "schedule_id=sch_x"} {
		name, _, _ := strings.Cut(query, "=")
		s.refused(s.call("GET", "/v1/tasks?"+query, s.acme, nil), "query."+name)
	}
}

func TestCancelRetryDiscard(t *testing.T) {
	s := newStage(t)
	w := s.register(s.acme, nil)
	waiting := s.submit(s.acme, map[string]any{"type": "a", "delay_seconds": 600, "payload": map[string]any{"n": 1}, "labels": map[string]string{"l": "x"}})
	if waiting.str("state") != "scheduled" || waiting.str("run_at") == "" {
		t.Errorf("delayed %s", waiting.text)
	}
	s.want(s.call("POST", "/v1/tasks/"+waiting.str("id")+"/retry", s.acme, nil), 409, "state_conflict")
	s.want(s.call("POST", "/v1/tasks/"+waiting.str("id")+"/discard", s.acme, map[string]any{"reason": "x"}), 409, "state_conflict")
	gone := s.want(s.call("POST", "/v1/tasks/"+waiting.str("id")+"/cancel", s.acme, nil), 200, "")
	if gone.str("state") != "cancelled" {
		t.Errorf("cancelled %s", gone.text)
	}
	s.want(s.call("POST", "/v1/tasks/"+waiting.str("id")+"/cancel", s.acme, nil), 200, "")
	anew := s.want(s.call("POST", "/v1/tasks/"+waiting.str("id")+"/retry", s.acme, map[string]any{"reason": "now", "payload": map[string]any{"n": 2}}), 201, "")
	if anew.str("redrive_of") != waiting.str("id") || anew.str("state") != "ready" || anew.at("payload").num("n") != 2 || anew.at("labels").str("l") != "x" {
		t.Errorf("retried %s", anew.text)
	}
	if read := s.task(s.acme, anew.str("id")); read.text != anew.text {
		t.Errorf("read %s, answered %s", read.text, anew.text)
	}
	lease := w.claim(1, 0)[0]
	s.want(s.call("POST", "/v1/tasks/"+anew.str("id")+"/cancel", s.acme, map[string]any{"reason": "enough"}), 202, "")
	beat := s.want(w.call("heartbeat", map[string]any{"leases": []any{map[string]any{"lease_token": lease.str("lease_token")}}}), 200, "")
	if signals := beat.rows("leases")[0].body["signals"].([]any); len(signals) != 1 || signals[0] != "cancel" {
		t.Errorf("signals %v", signals)
	}
	if rows := w.report(map[string]any{"lease_token": lease.str("lease_token"), "status": "cancelled"}); rows[0].str("state") != "cancelled" {
		t.Errorf("reported %v", rows)
	}

	dead := s.submit(s.acme, map[string]any{"type": "a"}).str("id")
	if rows := w.report(failed(w.claim(1, 0)[0], "invalid_input")); rows[0].str("state") != "dead_letter" {
		t.Fatalf("reported %v", rows)
	}
	if got := s.task(s.acme, dead); got.at("error").str("class") != "invalid_input" || got.at("error").str("message") != "it broke" {
		t.Errorf("dead %s", got.text)
	}
	s.want(s.call("GET", "/v1/tasks/"+dead+"/wait", s.acme, nil), 200, "")
	s.refused(s.call("POST", "/v1/tasks/"+dead+"/discard", s.acme, nil), "body.reason")
	if again := s.want(s.call("POST", "/v1/tasks/"+dead+"/retry", s.acme, map[string]any{"reason": "fixed"}), 200, ""); again.str("id") != dead || again.str("state") != "ready" {
		t.Errorf("redriven %s", again.text)
	}
	w.report(failed(w.claim(1, 0)[0], "invalid_input"))
	if end := s.want(s.call("POST", "/v1/tasks/"+dead+"/discard", s.acme, map[string]any{"reason": "hopeless"}), 200, ""); end.str("state") != "failed" {
		t.Errorf("discarded %s", end.text)
	}
}

func TestWaitEndsWithTheTask(t *testing.T) {
	s := newStage(t)
	w := s.register(s.acme, nil)
	id := s.submit(s.acme, map[string]any{"type": "a"}).str("id")
	if r := s.want(s.call("GET", "/v1/tasks/"+id+"/wait?timeout_seconds=0.1", s.acme, nil), 202, ""); r.str("state") != "ready" {
		t.Errorf("waited: %s", r.text)
	}
	s.want(s.call("GET", "/v1/tasks/"+id+"/wait?timeout_seconds=-1", s.acme, nil), 400, "invalid_query")
	begun := make(chan reply, 1)
	go func() { begun <- s.call("GET", "/v1/tasks/"+id+"/wait?timeout_seconds=20", s.acme, nil) }()
	w.report(done(w.claim(1, 5)[0], 1))
	select {
	case r := <-begun:
		if s.want(r, 200, ""); r.str("state") != "succeeded" {
			t.Errorf("waited: %s", r.text)
		}
	case <-time.After(time.Minute):
		t.Fatal("the wait did not end")
	}
}

func TestExplain(t *testing.T) {
	s := newStage(t)
	why := func(id string) (reply, string) {
		r := s.want(s.call("GET", "/v1/tasks/"+id+"/explain", s.acme, nil), 200, "")
		blocks := r.rows("blocked_by")
		if len(blocks) == 0 {
			return r, ""
		}
		if blocks[0].str("detail") == "" {
			t.Errorf("no detail: %s", r.text)
		}
		return r, blocks[0].str("reason")
	}
	first := s.submit(s.acme, map[string]any{"type": "a"}).str("id")
	second := s.submit(s.acme, map[string]any{"type": "a", "depends_on": []any{map[string]any{"task": first, "on": "finished"}}}).str("id")
	later := s.submit(s.acme, map[string]any{"type": "a", "delay_seconds": 60}).str("id")
	for id, want := range map[string]string{first: "no_capable_worker", second: "dependencies", later: "run_at"} {
		if r, got := why(id); got != want {
			t.Errorf("want %s: %s", want, r.text)
		}
	}
	w := s.register(s.acme, nil)
	lease := w.claim(1, 0)[0]
	if r, got := why(first); got != "" || r.str("state") != "running" {
		t.Errorf("running: %s", r.text)
	}
	w.report(done(lease, nil))
	s.await("the end of its dependency to free the second", func() bool { return s.task(s.acme, second).str("state") == "ready" })
}

func TestAnOverfullLaneAccepts(t *testing.T) {
	s := newStage(t)
	s.want(s.call("POST", "/v1/lanes", s.acme, map[string]any{"name": "small", "kind": "io", "high_water": 2}), 201, "")
	s.register(s.acme, nil)
	task := map[string]any{"type": "a", "lane": "small"}
	s.submit(s.acme, task)
	s.submit(s.acme, task)
	r := s.want(s.call("POST", "/v1/tasks", s.acme, task), 202, "")
	if r.str("state") != "ready" || r.str("kind") != "io" || r.str("estimated_start_at") == "" {
		t.Errorf("accepted %s", r.text)
	}
	s.want(s.call("POST", "/v1/tasks/batch", s.acme, map[string]any{"tasks": []any{task}}), 201, "")
	s.want(s.call("POST", "/v1/tasks/"+r.str("id")+"/cancel", s.acme, nil), 200, "")
	s.want(s.call("POST", "/v1/tasks/"+r.str("id")+"/retry", s.acme, nil), 201, "")
}

func TestAKeySubmitsToItsLanesOnly(t *testing.T) {
	s := newStage(t)
	r := s.call("POST", "/v1/api-keys", s.root, map[string]any{"name": "narrow", "scopes": []string{"tasks:read", "tasks:write"}, "lanes": []string{"io"}}, "Nightshift-Tenant", "acme")
	s.want(r, 201, "")
	narrow := s.token(r.str("client_id"), r.str("client_secret"))
	s.submit(narrow, map[string]any{"type": "a", "lane": "io"})
	s.want(s.call("POST", "/v1/tasks", narrow, map[string]any{"type": "a", "lane": "batch"}), 403, "forbidden")
	s.want(s.call("POST", "/v1/tasks", narrow, map[string]any{"type": "a"}), 403, "forbidden")
	s.want(s.call("POST", "/v1/tasks/batch", narrow, `{"tasks":[{"type":"a","lane":"io"},{"type":"a"}]}`), 403, "forbidden")
	s.want(s.call("POST", "/v1/workflows", narrow, `{"name":"n","tasks":[{"key":"k","type":"a"}]}`), 403, "forbidden")
	s.want(s.call("POST", "/v1/workflows", narrow, `{"name":"n","lane":"io","tasks":[{"key":"k","type":"a"}]}`), 201, "")
	s.want(s.call("POST", "/v1/workflows", narrow, `{"name":"n","tasks":[{"key":"k","type":"a"}],"lane":"io"}`), 201, "") // the order of members says nothing
	s.want(s.call("POST", "/v1/workflows", narrow, `{"name":"n","tasks":[{"key":"k","type":"a"}],"lane":"batch"}`), 403, "forbidden")
	s.want(s.call("POST", "/v1/workflows", narrow, `{"name":"n","tasks":[{"key":"k","type":"a","lane":"batch"}],"lane":"io"}`), 403, "forbidden")
	grown := s.want(s.call("POST", "/v1/workflows", narrow, `{"name":"n","tasks":[{"key":"k","type":"a","lane":"io"}]}`), 201, "").str("id")
	s.want(s.call("POST", "/v1/workflows/"+grown+"/tasks", narrow, `{"tasks":[{"key":"l","type":"a"}]}`), 403, "forbidden")
	s.want(s.call("POST", "/v1/workflows/"+grown+"/tasks", narrow, `{"tasks":[{"key":"l","type":"a","lane":"io"}]}`), 201, "")
	s.want(s.call("POST", "/v1/workers", narrow, `{"name":"n","instance_id":"i"}`), 403, "scope_required")
	s.want(s.call("POST", "/v1/bulk-actions", narrow, `{"action":"move","filter":{"type":"a"},"lane":"batch"}`), 403, "forbidden")
	s.want(s.call("POST", "/v1/bulk-actions", narrow, `{"action":"move","filter":{"type":"a"},"lane":"io"}`), 202, "")
}

// Nothing that a client sends is our fault: whatever comes, the answer is below 500.
func TestNothingSentGivesA5xx(t *testing.T) {
	s := newStage(t)
	id := s.submit(s.acme, map[string]any{"type": "a"}).str("id")
	bodies := []string{
		"", "null", "[]", "{}", "5", `"x"`, "{", `{"a":`, "\x00", "\xff", `{"tasks":null}`, `{"tasks":[null]}`, `{"tasks":[[]]}`, `{"tasks":{}}`, `{"results":[null]}`,
		`{"leases":[null]}`, `{"leases":5}`, `{"type":"\u0000"}`, `{"name":"\ud800","instance_id":"\ud800"}`, `{"type":"a","labels":{"\u0000":"x"}}`,
		`{"type":"a","payload":"\ud800"}`, `{"type":"a","description":"\ud800"}`, `{"type":"a","labels":{"\ud800":"\ud800"}}`, `{"type":"a","concurrency_key":"\ud800"}`,
		`{"type":"a","run_at":"1970-01-01T00:00:00Z","expires_in_seconds":315360000}`, `{"type":"a","run_at":"9000-12-31T23:59:59Z"}`,
		`{"name":"n","tasks":[{"key":"\u0000","type":"a"}]}`, `{"name":"n","tasks":[{"key":"a","type":"a","depends_on":[null]}]}`,
		`{"task_ids":[null]}`, `{"reason":5}`, `{"reason":"\u0000"}`, `{"max_tasks":1e400}`, strings.Repeat("[", 100_000), `{"type":"a","payload":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}`,
	}
	w := s.register(s.acme, nil)
	for _, path := range []string{
		"/v1/tasks", "/v1/tasks?dry_run=true", "/v1/tasks/batch", "/v1/workflows", "/v1/workers", "/v1/workers/" + w.id + "/claim", "/v1/workers/" + w.id + "/heartbeat",
		"/v1/workers/" + w.id + "/results", "/v1/scheduler/claim", "/v1/tasks/" + id + "/retry", "/v1/tasks/" + id + "/cancel", "/v1/tasks/" + id + "/discard", "/v1/tasks/" + id + "/complete",
		"/v1/tasks/" + id + "/fail", "/v1/tasks/" + id + "/heartbeat", "/v1/tasks/" + id + "/checkpoint", "/v1/dead-letters/redrive", "/v1/dead-letters/discard", "/v1/workers/" + w.id + "/drain",
	} {
		for _, text := range bodies {
			if r := s.call("POST", path, s.acme, text, "Nightshift-Session", w.session, "Nightshift-Lease", "lt_x"); r.status >= 500 {
				t.Errorf("POST %s with %.60q: %d %s", path, text, r.status, r.text)
			}
		}
	}
	for _, path := range []string{
		"/v1/tasks", "/v1/tasks/x", "/v1/tasks/" + id, "/v1/tasks/%00", "/v1/tasks/%ff/attempts", "/v1/workflows", "/v1/workflows/x/graph", "/v1/dead-letters", "/v1/dead-letters/tasks",
		"/v1/bulk-actions/x", "/v1/workers", "/v1/workers/x", "/v1/tasks/" + id + "/dependencies",
	} {
		for _, query := range []string{
			"", "?limit=-1", "?limit=99999999999999999999", "?cursor=%00", "?cursor=AAAA", "?state=%00", "?type=%ff", "?label.a=%00", "?created_after=9999-12-31T23:59:59Z",
			"?created_before=0001-01-01T00:00:00Z", "?created_after=1970-01-01T00:00:00Z&created_before=1970-01-01T00:00:01Z", "?count=true&order=asc", "?x[]=1", "?%zz",
		} {
			if r := s.call("GET", path+query, s.acme, nil); r.status >= 500 {
				t.Errorf("GET %s%s: %d %s", path, query, r.status, r.text)
			}
		}
	}
}
