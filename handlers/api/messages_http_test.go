package api_test

import (
	"fmt"
	"strings"
	"testing"
)

func (s *stage) messenger(slug string, scopes ...string) string {
	s.t.Helper()
	key := s.want(s.call("POST", "/v1/api-keys", s.root, map[string]any{
		"name": "messages", "scopes": append([]string{"schedules:read", "schedules:write", "tasks:read", "tasks:write"}, scopes...),
	}, "Nightshift-Tenant", slug), 201, "")
	return s.token(key.str("client_id"), key.str("client_secret"))
}

func onSale(more map[string]any) map[string]any {
	body := map[string]any{
		"name": "on-sale", "kind": "event", "overlap_policy": "allow", "event": map[string]any{"name": "sale"},
		"task": map[string]any{"type": "report.sales", "payload": map[string]any{"for": "{{scheduled_for}}"}},
	}
	for name, value := range more {
		body[name] = value
	}
	return body
}

func TestATriggerBecomesARun(t *testing.T) {
	s := newStage(t)
	token := s.messenger("acme")
	made := s.want(s.call("POST", "/v1/schedules", token, onSale(map[string]any{"event": map[string]any{"name": "sale", "max_wait_seconds": 30.5, "max_events": 2, "debounce_seconds": 30}})), 201, "")
	if e := made.at("event"); e.str("name") != "sale" || e.num("debounce_seconds") != 30 || e.num("max_wait_seconds") != 30.5 || e.num("max_events") != 2 ||
		made.body["next_run_at"] != nil || made.body["drain"] != nil || made.body["effective_every_seconds"] != nil {
		t.Errorf("made: %s", made.text)
	}
	path := "/v1/schedules/" + made.str("id")
	dry := s.want(s.call("POST", "/v1/triggers?dry_run=true", token, `{"name":"sale"}`), 200, "")
	if dry.num("matched") != 1 || dry.body["id"] != nil {
		t.Errorf("dry: %s", dry.text)
	}
	first := s.want(s.call("POST", "/v1/triggers", token, `{"name":"sale","data":{"n":1},"dedupe_key":"a"}`), 202, "")
	again := s.want(s.call("POST", "/v1/triggers", token, `{"name":"sale","data":{"n":9},"dedupe_key":"a"}`), 200, "")
	if first.num("matched") != 1 || !strings.HasPrefix(first.str("id"), "evt_") || again.str("id") != first.str("id") || again.body["deduplicated"] != true {
		t.Errorf("first %s, again %s", first.text, again.text)
	}
	if other := s.want(s.call("POST", "/v1/triggers", token, `{"name":"refund"}`), 202, ""); other.num("matched") != 0 {
		t.Errorf("to nobody: %s", other.text)
	}
	second := s.want(s.call("POST", "/v1/triggers", token, `{"name":"sale","data":"two"}`, "Idempotency-Key", "k"), 202, "")
	if r := s.want(s.call("POST", "/v1/triggers", token, `{"name":"sale","data":"two"}`, "Idempotency-Key", "k"), 202, ""); r.str("id") != second.str("id") || r.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("replayed: %s", r.text)
	}
	if r := s.want(s.call("GET", first.header.Get("Location"), token, nil), 200, ""); r.str("name") != "sale" || r.at("data").num("n") != 1 || r.str("dedupe_key") != "a" || r.num("matched") != 1 {
		t.Errorf("read: %s", r.text)
	}
	var runs []reply
	s.await("the run", func() bool {
		runs = s.want(s.call("GET", path+"/runs", token, nil), 200, "").rows("data")
		return len(runs) == 1
	})
	run := runs[0]
	events := run.rows("events")
	if run.str("origin") != "event" || run.str("outcome") != "dispatched" || run.num("taken") != 2 || len(events) != 2 || events[0].str("id") != first.str("id") ||
		events[0].at("data").num("n") != 1 || events[1].str("data") != "two" || events[1].str("name") != "sale" || events[1].str("at") == "" {
		t.Errorf("the run: %s", run.text)
	}
	if one := s.want(s.call("GET", path+"/runs/"+run.str("id"), token, nil), 200, ""); len(one.rows("events")) != 2 {
		t.Errorf("one: %s", one.text)
	}
	taken := s.want(s.call("GET", run.str("taken_url")+"?order=asc&limit=1&count=true", token, nil), 200, "")
	if rows := taken.rows("data"); len(rows) != 1 || rows[0].str("dedupe_key") != "a" || taken.at("total").num("value") != 2 || taken.str("next_cursor") == "" {
		t.Errorf("taken: %s", taken.text)
	}
	task := s.task(token, run.str("task_id"))
	if p := task.at("payload"); p.str("event") != "two" || len(p.rows("events")) != 2 || p.str("for") == "" {
		t.Errorf("the task: %s", task.text)
	}
	w := s.register(s.acme, nil)
	lease := w.claim(1, 5)[0]
	if got := lease.rows("events"); len(got) != 2 || got[0].str("id") != first.str("id") || got[1].str("data") != "two" || lease.at("run").str("schedule") != "on-sale" || lease.body["items"] != nil {
		t.Errorf("the claim: %s", lease.text)
	}
	w.report(done(lease, "fine"))
	s.want(s.call("POST", path+"/backfill", token, `{"from":"2026-01-01T00:00:00Z","to":"2026-01-02T00:00:00Z"}`), 409, "state_conflict")
	if r := s.want(s.call("POST", path+"/trigger", token, nil), 201, ""); r.num("taken") != 0 || r.body["events"] != nil {
		t.Errorf("by hand: %s", r.text)
	}
	stranger := s.messenger("blue")
	for _, where := range []string{first.header.Get("Location"), path + "/runs/" + run.str("id"), run.str("taken_url")} {
		s.want(s.call("GET", where, stranger, nil), 404, "not_found")
	}
}

func TestItemsAreDrained(t *testing.T) {
	s := newStage(t)
	token := s.messenger("acme")
	put := func(body string) reply { return s.call("POST", "/v1/queues/mail/items", token, body) }
	r := s.want(put(`{"items":[{"data":{"to":1},"dedupe_key":"one"},{"data":2},{"dedupe_key":"one"}]}`), 202, "")
	if rows := r.rows("data"); r.num("accepted") != 2 || r.num("deduplicated") != 1 || r.num("depth") != 2 || len(rows) != 3 || rows[2].str("id") != rows[0].str("id") || !strings.HasPrefix(rows[1].str("id"), "itm_") {
		t.Errorf("put: %s", r.text)
	}
	s.want(put(`{"items":[{"data":3,"dedupe_key":"one"}]}`), 200, "")
	q := s.want(s.call("GET", "/v1/queues?count=true", token, nil), 200, "")
	if rows := q.rows("data"); len(rows) != 1 || rows[0].str("name") != "mail" || rows[0].num("depth") != 2 || rows[0].str("oldest_at") == "" || q.at("total").num("value") != 1 {
		t.Errorf("queues: %s", q.text)
	}
	made := s.want(s.call("POST", "/v1/schedules", token, map[string]any{
		"name": "mailer", "kind": "drain", "drain": map[string]any{"queue": "mail", "batch_size": 1}, "task": map[string]any{"type": "mail.send", "payload": "as it is"},
	}), 201, "")
	if d := made.at("drain"); d.num("max_items") != 1000 || d.num("batch_size") != 1 || made.body["event"] != nil {
		t.Errorf("made: %s", made.text)
	}
	path := "/v1/schedules/" + made.str("id")
	var run reply
	s.await("the run", func() bool {
		runs := s.want(s.call("GET", path+"/runs", token, nil), 200, "").rows("data")
		if len(runs) == 1 {
			run = runs[0]
		}
		return len(runs) == 1
	})
	if run.str("origin") != "drain" || run.num("taken") != 2 || run.body["events"] != nil || run.str("workflow_id") == "" {
		t.Errorf("the run: %s", run.text)
	}
	w := s.register(s.acme, nil)
	leases := w.claim(5, 5)
	if len(leases) < 2 {
		leases = append(leases, w.claim(5, 5)...)
	}
	seen := map[string]bool{}
	for _, lease := range leases {
		items := lease.rows("items")
		if len(items) != 1 || lease.str("payload") != "as it is" || len(lease.rows("events")) != 0 {
			t.Errorf("the claim: %s", lease.text)
			continue
		}
		seen[fmt.Sprint(items[0].body["data"], items[0].body["dedupe_key"])] = true
		w.report(done(lease, "sent"))
	}
	if len(seen) != 2 || !seen["map[to:1]one"] || !seen["2 <nil>"] {
		t.Errorf("the items were %v", seen)
	}
	if rows := s.want(s.call("GET", run.str("taken_url"), token, nil), 200, "").rows("data"); len(rows) != 2 || !strings.HasPrefix(rows[0].str("id"), "itm_") {
		t.Errorf("taken: %v", rows)
	}
	if r := s.want(s.call("GET", "/v1/queues/mail", token, nil), 200, ""); r.num("depth") != 0 || len(r.body["schedules"].([]any)) != 1 {
		t.Errorf("the queue: %s", r.text)
	}
	s.want(s.call("GET", "/v1/queues/none", token, nil), 404, "not_found")
}

// What a run takes is handed to the tasks of its workflow that wait for no other; a retry and a rerun get the same.
func TestTheTasksThatBeginARunsWorkflowAreHandedWhatItTook(t *testing.T) {
	s := newStage(t)
	token := s.messenger("acme")
	flow := map[string]any{"name": "w", "tasks": []any{
		map[string]any{"key": "a", "type": "a"}, map[string]any{"key": "b", "type": "b", "depends_on": []string{"a"}}, map[string]any{"key": "c", "type": "a"},
	}}
	rule := func(name, kind string, more map[string]any) reply {
		body := map[string]any{"name": name, "kind": kind, "workflow": flow}
		for name, value := range more {
			body[name] = value
		}
		return s.want(s.call("POST", "/v1/schedules", token, body), 201, "")
	}
	rule("on-sale", "event", map[string]any{"event": map[string]any{"name": "sale"}, "flexible_seconds": 0})
	drain := rule("mailer", "drain", map[string]any{"drain": map[string]any{"queue": "mail", "batch_size": 2}, "partitions": 3})
	w := s.register(s.acme, map[string]any{"slots": 20})
	fetch := func(n int) map[string]reply {
		leases := map[string]reply{}
		s.await("the claims", func() bool {
			for _, lease := range w.claim(n-len(leases), 1) {
				leases[s.task(token, lease.str("task_id")).str("key")] = lease
			}
			return len(leases) == n
		})
		return leases
	}
	s.want(s.call("POST", "/v1/triggers", token, `{"name":"sale","data":7}`), 202, "")
	leases := fetch(2)
	for key, lease := range leases {
		if events := lease.rows("events"); len(events) != 1 || events[0].num("data") != 7 || lease.at("payload").num("event") != 7 || lease.at("run").str("schedule") != "on-sale" {
			t.Errorf("%s: %s", key, lease.text)
		}
		w.report(done(lease, "seen"))
	}
	second := fetch(1)["b"]
	if len(second.rows("events")) != 0 || second.body["payload"] != nil || second.rows("dependencies")[0].str("result") != "seen" {
		t.Errorf("the one behind: %s", second.text)
	}
	w.report(done(second, "seen"))
	again := s.want(s.call("POST", "/v1/tasks/"+leases["a"].str("task_id")+"/retry", token, `{"reason":"once more"}`), 201, "")
	if lease := w.claim(1, 5)[0]; lease.str("task_id") != again.str("id") || len(lease.rows("events")) != 1 || lease.rows("events")[0].num("data") != 7 {
		t.Errorf("again: %s", lease.text)
	} else {
		w.report(done(lease, "seen"))
	}

	s.want(s.call("POST", "/v1/queues/mail/items", token, `{"items":[{"data":0},{"data":1},{"data":2},{"data":3}]}`), 202, "")
	leases = fetch(6)
	seen := map[string]string{}
	for key, lease := range leases {
		for _, item := range lease.rows("items") {
			seen[key] += fmt.Sprint(item.body["data"])
		}
		if lease.at("partition").num("count") != 3 {
			t.Errorf("%s: %s", key, lease.text)
		}
		w.report(done(lease, "sent"))
	}
	if want := "map[a[0]:01 a[1]:2 a[2]:3 c[0]:01 c[1]:2 c[2]:3]"; fmt.Sprint(seen) != want {
		t.Errorf("the items were %v, want %s", seen, want)
	}
	for key, lease := range fetch(3) {
		if lease.body["items"] != nil {
			t.Errorf("%s: %s", key, lease.text)
		}
		w.report(done(lease, "sent"))
	}
	var run reply
	s.await("the end of the run", func() bool {
		run = s.want(s.call("GET", "/v1/schedules/"+drain.str("id")+"/runs", token, nil), 200, "").rows("data")[0]
		return run.str("result_state") == "succeeded"
	})
	flowOf := run.str("workflow_id")
	anew := s.want(s.call("POST", "/v1/workflows/"+flowOf+"/rerun", token, `{"from":"c[1]"}`), 201, "")
	if lease := w.claim(1, 5)[0]; len(lease.rows("items")) != 1 || lease.rows("items")[0].num("data") != 2 {
		t.Errorf("rerun: %s", lease.text)
	}
	for _, path := range []string{"/v1/tasks?schedule_id=" + drain.str("id"), "/v1/workflows?schedule_id=" + drain.str("id")} {
		list := s.want(s.call("GET", path, token, nil), 200, "")
		if !strings.Contains(list.text, anew.str("id")) {
			t.Errorf("%s leaves out the rerun: %s", path, list.text)
		}
	}
}

func TestMessagesAreRefusedWithTheField(t *testing.T) {
	s := newStage(t)
	token := s.messenger("acme")
	large := strings.Repeat("x", 64<<10)
	for body, field := range map[string]string{
		`{}`: "body.name", `{"name":"Not a name"}`: "body.name", `{"name":"a","colour":1}`: "body.colour", `{"name":"a","dedupe_key":""}`: "body.dedupe_key",
		`{"name":"a","data":"` + large + `"}`: "body.data",
	} {
		s.refused(s.want(s.call("POST", "/v1/triggers", token, body), 422, "validation_failed"), field)
	}
	for body, field := range map[string]string{
		`{}`: "body.items", `{"items":[]}`: "body.items", `{"items":[{"date":1}]}`: "body.items[0].date", `{"items":[1]}`: "body.items[0]",
		`{"items":[{"data":1},{"data":"` + large + `"}]}`: "body.items[1].data", `{"items":[` + strings.Repeat(`{},`, 1000) + `{}]}`: "body.items",
	} {
		s.refused(s.want(s.call("POST", "/v1/queues/q/items", token, body), 422, "validation_failed"), field)
	}
	s.refused(s.call("POST", "/v1/queues/Not%20a%20name/items", token, `{"items":[{}]}`), "path.name")
	reader := s.scheduler("acme") // without tasks:write
	s.want(s.call("POST", "/v1/triggers", reader, `{"name":"a"}`), 403, "scope_required")
	s.want(s.call("POST", "/v1/queues/q/items", reader, `{"items":[{}]}`), 403, "scope_required")
	s.want(s.call("GET", "/v1/triggers/evt_01j2h6m7kfe0vbn3w9r5t8xyza", token, nil), 404, "not_found")
	for _, c := range []struct {
		change map[string]any
		field  string
	}{
		{map[string]any{"event": nil}, "body.event"},
		{map[string]any{"event": map[string]any{}}, "body.event.name"},
		{map[string]any{"event": map[string]any{"name": "a", "debounce_seconds": -1}}, "body.event.debounce_seconds"},
		{map[string]any{"event": map[string]any{"name": "a", "max_events": 0}}, "body.event.max_events"},
		{map[string]any{"event": map[string]any{"name": "a", "more": 0}}, "body.event.more"},
		{map[string]any{"expression": "@daily"}, "body.expression"},
		{map[string]any{"drain": map[string]any{"queue": "q"}}, "body.drain"},
		{map[string]any{"kind": "drain", "event": nil, "drain": map[string]any{"queue": "q", "max_items": 10_001}}, "body.drain.max_items"},
		{map[string]any{"kind": "drain", "event": nil, "drain": map[string]any{}}, "body.drain.queue"},
		{map[string]any{"partitions": 33}, "body.task"},
		{map[string]any{"kind": "drain", "event": nil, "drain": map[string]any{"queue": "q"}, "partitions": 501}, "body.partitions"},
		{map[string]any{"task": nil, "workflow": map[string]any{"name": "w", "tasks": []any{
			map[string]any{"key": "a", "type": "a"}, map[string]any{"key": "b", "type": "a", "payload": 1, "depends_on": []string{"a"}}, map[string]any{"key": "c", "type": "a", "payload": 1},
		}}}, "body.workflow.tasks[2].payload"},
		{map[string]any{"task": map[string]any{"type": "a", "payload": []int{1}}}, "body.task.payload"},
		{map[string]any{"task": map[string]any{"type": "a", "payload": map[string]any{"a": strings.Repeat("x", 65<<10)}}}, "body.task.payload"},
	} {
		s.refused(s.want(s.call("POST", "/v1/schedules", token, onSale(c.change)), 422, "validation_failed"), c.field)
	}
	s.want(s.call("POST", "/v1/schedules", token, onSale(map[string]any{"end_at": "2020-01-01T00:00:00Z"})), 422, "invalid_schedule")
}

// What a worker names as failed of the items of a queue comes again alone, and what is left after the last attempt is the dead
// letter; a task that is retried anew has the items of the first.
func TestFailedItemsOfAQueueComeAgainAlone(t *testing.T) {
	s := newStage(t)
	token := s.messenger("acme")
	s.want(s.call("POST", "/v1/queues/mail/items", token, `{"items":[{"data":"a"},{"data":"b","dedupe_key":"k"},{"data":"c"}]}`), 202, "")
	s.want(s.call("POST", "/v1/schedules", token, map[string]any{
		"name": "mailer", "kind": "drain", "drain": map[string]any{"queue": "mail"}, "task": map[string]any{
			"type": "mail.send", "payload": map[string]any{"items": []int{7}}, "retry_policy": map[string]any{"max_attempts": 2, "initial_delay_seconds": 0.001, "jitter": false},
		},
	}), 201, "")
	w := s.register(s.acme, nil)
	carried := func(want string) reply {
		t.Helper()
		leases := w.claim(1, 10)
		if len(leases) == 0 {
			t.Fatal("nothing is claimed")
		}
		var got []string
		for _, item := range leases[0].rows("items") {
			got = append(got, item.str("data"))
		}
		if strings.Join(got, " ") != want || fmt.Sprint(leases[0].at("payload").body["items"]) != "[7]" {
			t.Fatalf("it carries %v with the payload %v, want %s", got, leases[0].body["payload"], want)
		}
		return leases[0]
	}
	broke := func(lease reply, class string, indexes ...int) reply {
		result := done(lease, "sent")
		failed := []any{}
		for _, i := range indexes {
			failed = append(failed, map[string]any{"index": i, "class": class, "message": "bounced"})
		}
		result["items"] = map[string]any{"failed": failed}
		return w.report(result)[0]
	}
	lease := carried("a b c")
	task := lease.str("task_id")
	broke(lease, "network", 1, 2)
	broke(carried("b c"), "network", 0)
	dead := s.task(s.acme, task)
	if dead.str("state") != "dead_letter" || !strings.HasPrefix(dead.at("error").str("message"), "1 of ") {
		t.Errorf("left over: %s", dead.text)
	}
	s.want(s.call("POST", "/v1/tasks/"+task+"/retry", s.acme, map[string]any{"payload": map[string]any{"items": []int{7}, "slow": true}, "reason": "again"}), 200, "")
	lease = carried("b")
	if wrong := broke(lease, "network", 1); wrong.str("code") != "validation_failed" || wrong.str("state") != "retry_wait" {
		t.Errorf("an item that was not claimed: %s", wrong.text)
	}
	broke(carried("b"), "network")
	s.await("the end", func() bool { return s.task(s.acme, task).str("state") == "succeeded" })
	anew := s.want(s.call("POST", "/v1/tasks/"+task+"/retry", s.acme, map[string]any{"reason": "all of it"}), 201, "")
	if anew.str("redrive_of") != task {
		t.Errorf("anew %s", anew.text)
	}
	broke(carried("a b c"), "network", 0)
	broke(carried("a"), "network")
	s.await("the end of the second", func() bool { return s.task(s.acme, anew.str("id")).str("state") == "succeeded" })
}
