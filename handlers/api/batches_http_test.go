package api_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// partly says that all claimed items but some went well.
func partly(lease reply, class string, failed ...int) map[string]any {
	rows := []any{}
	for _, i := range failed {
		rows = append(rows, map[string]any{"index": i, "class": class, "message": fmt.Sprint("item ", i)})
	}
	return map[string]any{"lease_token": lease.str("lease_token"), "status": "succeeded", "items": map[string]any{"done": len(lease.body["items"].([]any)) - len(failed), "failed": rows}}
}

func letters(n int) []any {
	out := []any{}
	for i := range n {
		out = append(out, fmt.Sprint("letter ", i))
	}
	return out
}

func TestABatchOverHTTP(t *testing.T) {
	s := newStage(t)
	soon := map[string]any{"max_attempts": 3, "initial_delay_seconds": 0, "jitter": false}
	body := map[string]any{"name": "mail", "task": map[string]any{"type": "mail.send", "payload": map[string]any{"from": "us"}, "retry_policy": soon, "labels": map[string]any{"night": "1"}}, "items": letters(5), "batch_size": 3}
	dry := s.want(s.call("POST", "/v1/batches?dry_run=true", s.acme, body), 200, "")
	if dry.num("total") != 5 || dry.num("tasks") != 2 || dry.str("lane") != "batch" {
		t.Errorf("dry %s", dry.text)
	}
	if n := len(s.call("GET", "/v1/batches", s.acme, nil).rows("data")); n != 0 {
		t.Fatalf("a dry run made %d batches", n)
	}
	made := s.want(s.call("POST", "/v1/batches", s.acme, body, "Idempotency-Key", "b"), 201, "")
	id := made.str("id")
	if made.num("total") != 5 || made.num("done") != 0 || len(made.at("tasks").body) != 2 || made.num("batch_size") != 3 || made.header.Get("Location") != "/v1/batches/"+id {
		t.Errorf("made %s", made.text)
	}
	again := s.want(s.call("POST", "/v1/batches", s.acme, body, "Idempotency-Key", "b"), 201, "")
	if again.str("id") != id || again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("replayed %s", again.text)
	}
	first := s.task(s.acme, made.at("tasks").str("0"))
	if first.at("payload").str("from") != "us" || first.at("payload").num("first_index") != 0 || first.str("workflow_id") != id || first.at("labels").str("night") != "1" {
		t.Errorf("a slice: %s", first.text)
	}
	if rows := s.want(s.call("GET", "/v1/tasks?label.night=1", s.acme, nil), 200, "").rows("data"); len(rows) != 2 {
		t.Errorf("%d slices carry the label", len(rows))
	}
	w := s.register(s.acme, nil)
	leases := w.claim(2, 5)
	if len(leases) != 2 {
		t.Fatalf("%d slices are claimed", len(leases))
	}
	if !equalJSON(leases[0].body["items"], letters(5)[:3]) || !equalJSON(leases[1].at("payload").body["items"], letters(5)[3:]) || leases[1].at("payload").num("first_index") != 3 {
		t.Errorf("claimed %v and %v", leases[0].body, leases[1].body)
	}
	if rows := w.report(done(leases[0], nil), partly(leases[1], "network", 1)); rows[0].str("state") != "succeeded" || rows[1].str("state") != "retry_wait" {
		t.Fatalf("reported %v", rows)
	}
	half := s.want(s.call("GET", "/v1/batches/"+id, s.acme, nil), 200, "")
	if half.num("done") != 4 || half.num("total") != 5 || len(half.rows("failed")) != 0 || half.num("failed_count") != 0 || half.num("retrying_count") != 1 {
		t.Errorf("half way: %s", half.text)
	}
	for attempt := range 2 {
		lease := w.claim(1, 5)[0]
		if !equalJSON(lease.body["items"], letters(5)[4:]) || !equalJSON(lease.at("payload").body["items"], letters(5)[4:]) || lease.at("payload").str("from") != "us" {
			t.Fatalf("attempt %d carries %v", attempt+2, lease.body)
		}
		w.report(partly(lease, "network", 0))
	}
	dead := s.want(s.call("GET", "/v1/batches/"+id, s.acme, nil), 200, "")
	if dead.str("state") != "failed" || dead.at("counts").num("dead_letter") != 1 || dead.num("done") != 4 || dead.num("failed_count") != 1 || dead.num("retrying_count") != 0 || dead.rows("failed")[0].num("index") != 4 || dead.rows("failed")[0].str("class") != "network" || dead.rows("failed")[0].str("message") != "item 0" {
		t.Errorf("dead: %s", dead.text)
	}
	if rows := s.want(s.call("GET", "/v1/batches/"+id+"?failed_from=5", s.acme, nil), 200, "").rows("failed"); len(rows) != 0 {
		t.Errorf("from the end on: %v", rows)
	}
	task := made.at("tasks").str("1")
	s.refused(s.call("POST", "/v1/tasks/"+task+"/retry", s.acme, `{"payload":{"items":[]}}`), "body.payload")
	s.want(s.call("POST", "/v1/workflows/"+id+"/retry", s.acme, `{"reason":"mended"}`), 200, "")
	w.report(done(w.claim(1, 5)[0], nil))
	end := s.want(s.call("GET", "/v1/batches/"+id, s.acme, nil), 200, "")
	if end.num("done") != 5 || len(end.rows("failed")) != 0 || end.str("state") != "succeeded" {
		t.Errorf("in the end: %s", end.text)
	}
	list := s.want(s.call("GET", "/v1/batches?count=true&state=succeeded", s.acme, nil), 200, "")
	if len(list.rows("data")) != 1 || list.at("total").num("value") != 1 || list.rows("data")[0].num("done") != 5 {
		t.Errorf("list %s", list.text)
	}
	s.want(s.call("GET", "/v1/batches/"+id, s.blue, nil), 404, "not_found")
	if rows := s.call("GET", "/v1/batches", s.blue, nil).rows("data"); len(rows) != 0 {
		t.Errorf("another tenant sees %v", rows)
	}
	flow := s.want(s.call("POST", "/v1/workflows", s.acme, diamond()), 201, "").str("id")
	s.want(s.call("GET", "/v1/batches/"+flow, s.acme, nil), 404, "not_found")
}

// Of a slice that is tried again only what is not tried with it has failed; with its last attempt all that is left has.
func TestItemsFailWhenNobodyTriesThemAgain(t *testing.T) {
	s := newStage(t)
	id := s.want(s.call("POST", "/v1/batches", s.acme, map[string]any{"name": "n", "items": letters(3), "task": map[string]any{
		"type": "t", "retry_policy": map[string]any{"max_attempts": 2, "initial_delay_seconds": 3600, "max_delay_seconds": 3600, "jitter": false},
	}}), 201, "").str("id")
	w := s.register(s.acme, nil)
	lease := w.claim(1, 5)[0]
	report := map[string]any{"lease_token": lease.str("lease_token"), "status": "succeeded", "items": map[string]any{"failed": []any{
		map[string]any{"index": 0, "class": "network", "message": "gone"}, map[string]any{"index": 2, "class": "invalid_input", "message": "bad"},
	}}}
	if rows := w.report(report); rows[0].str("state") != "retry_wait" {
		t.Fatalf("reported %v", rows)
	}
	v := s.want(s.call("GET", "/v1/batches/"+id, s.acme, nil), 200, "")
	if rows := v.rows("failed"); v.num("done") != 1 || v.num("retrying_count") != 1 || v.num("failed_count") != 1 || len(rows) != 1 || rows[0].num("index") != 2 || rows[0].str("class") != "invalid_input" {
		t.Errorf("while it waits: %s", v.text)
	}
	s.call("POST", "/v1/workflows/"+id+"/cancel", s.acme, nil)
	s.await("the batch to be cancelled", func() bool {
		v = s.want(s.call("GET", "/v1/batches/"+id, s.acme, nil), 200, "")
		return v.str("state") == "cancelled"
	})
	if v.num("done") != 1 || v.num("retrying_count") != 0 || v.num("failed_count") != 0 {
		t.Errorf("cancelled: %s", v.text)
	}
}

func equalJSON(a, b any) bool {
	left, _ := json.Marshal(a)
	right, _ := json.Marshal(b)
	return string(left) == string(right)
}

func TestBatchRefusals(t *testing.T) {
	s := newStage(t)
	ok := func(change func(m, task map[string]any)) map[string]any {
		task := map[string]any{"type": "a"}
		m := map[string]any{"name": "n", "task": task, "items": letters(2)}
		change(m, task)
		return m
	}
	for at, change := range map[string]func(m, task map[string]any){
		"body.name":                     func(m, _ map[string]any) { delete(m, "name") },
		"body.task":                     func(m, _ map[string]any) { delete(m, "task") },
		"body.items":                    func(m, _ map[string]any) { m["items"] = []any{} },
		"body.batch_size":               func(m, _ map[string]any) { m["batch_size"] = 1001 },
		"body.more":                     func(m, _ map[string]any) { m["more"] = 1 },
		"body.task.type":                func(_, task map[string]any) { delete(task, "type") },
		"body.task.payload":             func(_, task map[string]any) { task["payload"] = []any{1} },
		"body.task.payload.items":       func(_, task map[string]any) { task["payload"] = map[string]any{"items": 1} },
		"body.task.payload.first_index": func(_, task map[string]any) { task["payload"] = map[string]any{"first_index": 1} },
		"body.task.idempotency_key":     func(_, task map[string]any) { task["idempotency_key"] = "k" },
		"body.task.depends_on":          func(_, task map[string]any) { task["depends_on"] = []any{"task_0"} },
		"body.task.run_if":              func(_, task map[string]any) { task["run_if"] = "true" },
		"body.task.lane":                func(_, task map[string]any) { task["lane"] = "nowhere" },
		"body.items[1]":                 func(m, _ map[string]any) { m["items"] = []any{1, map[string]any{"a": "b\x00"}, 3} },
		"body.items[0]":                 func(m, _ map[string]any) { m["items"] = []any{strings.Repeat("x", 300_000)} },
	} {
		s.refused(s.call("POST", "/v1/batches", s.acme, ok(change)), at)
	}
	s.want(s.call("POST", "/v1/batches?odd=1", s.acme, ok(func(_, _ map[string]any) {})), 400, "invalid_query")
	s.want(s.call("GET", "/v1/batches/wf_x", s.acme, nil), 404, "not_found")
	s.want(s.call("GET", "/v1/batches/wf_x?failed_from=-1", s.acme, nil), 400, "invalid_query")
	w := s.register(s.acme, nil)
	plain := s.submit(s.acme, map[string]any{"type": "plain"})
	lease := w.claim(1, 5)[0]
	s.refused(w.call("results", map[string]any{"results": []any{map[string]any{"lease_token": lease.str("lease_token"), "status": "succeeded", "items": map[string]any{"failed": []any{map[string]any{"index": -1}}}}}}), "body.results[0].items.failed[0].index")
	if lease.body["items"] != nil || lease.str("task_id") != plain.str("id") {
		t.Errorf("a plain task is claimed with %v", lease.body["items"])
	}
}

func TestALargeBatchIsStaged(t *testing.T) {
	s := newStage(t)
	var items strings.Builder
	const many = 2_500
	for i := range many {
		if i > 0 {
			items.WriteByte(',')
		}
		fmt.Fprintf(&items, `{"n":%d}`, i)
	}
	// Members may come in any order: here what slices the items comes last.
	body := `{"items":[` + items.String() + `],"name":"many","task":{"type":"t"},"batch_size":2}`
	made := s.want(s.call("POST", "/v1/batches?return=minimal", s.acme, body, "Idempotency-Key", "m"), 201, "")
	id := made.str("id")
	if made.num("total") != many || len(made.at("tasks").body) != 0 {
		t.Errorf("made %s", made.text)
	}
	s.await("all slices to be ready", func() bool {
		return s.call("GET", "/v1/batches/"+id, s.acme, nil).at("counts").num("ready") == many/2
	})
	w := s.register(s.acme, nil)
	lease := w.claim(1, 5)[0]
	if !equalJSON(lease.body["items"], []any{map[string]any{"n": lease.at("payload").num("first_index")}, map[string]any{"n": lease.at("payload").num("first_index") + 1}}) {
		t.Errorf("claimed %v", lease.body)
	}
	w.report(partly(lease, "invalid_input", 1))
	v := s.want(s.call("GET", "/v1/batches/"+id, s.acme, nil), 200, "")
	if v.num("done") != 1 || v.rows("failed")[0].num("index") != lease.at("payload").num("first_index")+1 {
		t.Errorf("after one: %s", v.text)
	}
}
