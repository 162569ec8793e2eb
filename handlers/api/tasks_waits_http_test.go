package api_test

import (
	"testing"
)

func TestApprovalOverHTTP(t *testing.T) {
	s := newStage(t)
	w := s.register(s.acme, nil)
	task := s.submit(s.acme, map[string]any{"type": "a", "needs_approval": true})
	id := "/v1/tasks/" + task.str("id")
	if task.body["needs_approval"] != true || task.rows("blocked_by")[0].str("reason") != "approval" {
		t.Errorf("submitted %s", task.text)
	}
	if rows := s.want(s.call("GET", id+"/explain", s.acme, nil), 200, "").rows("blocked_by"); rows[0].str("reason") != "approval" {
		t.Errorf("explained by %v", rows)
	}
	s.want(s.call("POST", id+"/approve", s.blue, nil), 404, "not_found")
	s.refused(s.call("POST", id+"/reject", s.acme, `{}`), "body.reason")
	s.want(s.call("POST", id+"/approve", s.acme, map[string]any{"reason": "looked at"}), 200, "")
	s.want(s.call("POST", id+"/approve", s.acme, nil), 200, "")
	s.want(s.call("POST", id+"/reject", s.acme, map[string]any{"reason": "no"}), 409, "state_conflict")
	if tasks := w.claim(1, 5); len(tasks) != 1 {
		t.Fatalf("claimed %v", tasks)
	}
	other := s.submit(s.acme, map[string]any{"type": "a", "needs_approval": true})
	if r := s.want(s.call("POST", "/v1/tasks/"+other.str("id")+"/reject", s.acme, map[string]any{"reason": "no"}), 200, ""); r.str("state") != "cancelled" {
		t.Errorf("rejected: %s", r.text)
	}
	plain := s.submit(s.acme, map[string]any{"type": "b"})
	s.want(s.call("POST", "/v1/tasks/"+plain.str("id")+"/approve", s.acme, nil), 409, "state_conflict")
}

func TestSignalsOverHTTP(t *testing.T) {
	s := newStage(t)
	w := s.register(s.acme, nil)
	id := "/v1/tasks/" + s.submit(s.acme, map[string]any{"type": "a"}).str("id")
	signal := map[string]any{"name": "pause", "data": map[string]any{"for": 3}}
	s.want(s.call("POST", id+"/signal", s.acme, signal), 409, "state_conflict")
	token := w.claim(1, 5)[0].str("lease_token")
	s.want(s.call("POST", id+"/signal", s.acme, signal), 202, "")
	s.refused(s.call("POST", id+"/signal", s.acme, `{"data":1}`), "body.name")
	beat := func() []any {
		rows := s.want(w.call("heartbeat", map[string]any{"leases": []any{map[string]any{"lease_token": token}}}), 200, "").rows("leases")
		return rows[0].body["signals"].([]any)
	}
	if got := beat(); len(got) != 1 || got[0].(map[string]any)["name"] != "pause" || got[0].(map[string]any)["data"].(map[string]any)["for"] != 3.0 {
		t.Errorf("heard %v", got)
	}
	if got := beat(); len(got) != 0 {
		t.Errorf("heard again %v", got)
	}
	s.want(s.call("POST", id+"/signal", s.acme, map[string]any{"name": "again"}), 202, "")
	r := s.want(w.call("claim", `{"wait_seconds":5}`), 200, "")
	if rows := r.rows("signals"); len(rows) != 1 || rows[0].str("lease_token") != token || rows[0].at("signal").str("name") != "again" || rows[0].at("signal").body["data"] != nil {
		t.Errorf("the claim heard %s", r.text)
	}
}

func TestEditsOverHTTP(t *testing.T) {
	s := newStage(t)
	w := s.register(s.acme, nil)
	task := s.submit(s.acme, map[string]any{"type": "a", "labels": map[string]string{"team": "red", "size": "xl"}, "priority": 10})
	id := "/v1/tasks/" + task.str("id")
	edited := s.want(s.call("PATCH", id, s.acme, map[string]any{
		"priority": 80, "lane": "realtime", "labels": map[string]any{"team": "blue", "size": nil},
		"deadline": "2099-01-01T00:00:00Z", "expires_at": "2099-01-01T00:00:00Z", "reason": "in a hurry",
	}), 200, "")
	if edited.num("priority") != 80 || edited.str("lane") != "realtime" || edited.at("labels").str("team") != "blue" ||
		edited.at("labels").body["size"] != nil || edited.str("deadline") != "2099-01-01T00:00:00Z" || edited.str("expires_at") != "2099-01-01T00:00:00Z" {
		t.Errorf("edited %s", edited.text)
	}
	if rows := s.want(s.call("GET", "/v1/tasks?label.team=blue", s.acme, nil), 200, "").rows("data"); len(rows) != 1 {
		t.Errorf("found by its new label: %v", rows)
	}
	if rows := s.want(s.call("GET", "/v1/tasks?label.team=red", s.acme, nil), 200, "").rows("data"); len(rows) != 0 {
		t.Errorf("found by its old label: %v", rows)
	}
	if r := s.want(s.call("PATCH", id, s.acme, `{"run_at":"2099-01-01T00:00:00Z"}`), 200, ""); r.str("state") != "scheduled" || r.str("run_at") != "2099-01-01T00:00:00Z" {
		t.Errorf("put off: %s", r.text)
	}
	if r := s.want(s.call("PATCH", id, s.acme, `{"run_at":null}`), 200, ""); r.str("state") != "ready" || r.body["run_at"] != nil {
		t.Errorf("now: %s", r.text)
	}
	s.refused(s.call("PATCH", id, s.acme, `{"lane":"nowhere"}`), "body.lane")
	s.refused(s.call("PATCH", id, s.acme, `{"payload":1}`), "body.payload")
	s.refused(s.call("PATCH", id, s.acme, `{"priority":101}`), "body.priority")
	s.refused(s.call("PATCH", id, s.acme, `{"labels":{"a\u0000":"b"}}`), "body.labels.a\x00")
	s.want(s.call("PATCH", id, s.blue, `{"priority":1}`), 404, "not_found")
	if lease := w.claim(1, 5); len(lease) != 1 || lease[0].at("labels").str("team") != "blue" {
		t.Fatalf("claimed %v", lease)
	}
	s.want(s.call("PATCH", id, s.acme, `{"priority":1}`), 409, "state_conflict")
}

func TestLogsAndQualityOverHTTP(t *testing.T) {
	s := newStage(t)
	w := s.register(s.acme, nil)
	id := "/v1/tasks/" + s.submit(s.acme, map[string]any{"type": "a", "timeout": map[string]any{"total_seconds": 600}}).str("id")
	s.want(s.call("POST", id+"/quality", s.acme, `{"score":1,"source":"people"}`), 409, "state_conflict")
	lease := w.claim(1, 5)[0]
	if lease.at("timeout").num("total_seconds") != 600 {
		t.Errorf("claimed %v", lease)
	}
	token := lease.str("lease_token")
	lines := `{"lines":[{"level":"info","message":"begins"},{"at":"2026-01-01T00:00:00Z","level":"warn","message":"slow"},{"message":"nul \u0000 inside"}]}`
	s.want(s.call("POST", id+"/logs", s.acme, lines, "Nightshift-Lease", token), 204, "")
	s.want(s.call("POST", id+"/logs", s.acme, lines, "Nightshift-Lease", token+"x"), 409, "lease_lost")
	s.refused(s.call("POST", id+"/logs", s.acme, `{"lines":[{"level":"loud"}]}`, "Nightshift-Lease", token), "body.lines[0].level")
	s.refused(s.call("POST", id+"/logs", s.acme, `{}`, "Nightshift-Lease", token), "body.lines")
	page := s.want(s.call("GET", id+"/logs?limit=2", s.acme, nil), 200, "")
	rows := page.rows("data")
	if len(rows) != 2 || rows[0].str("message") != "begins" || rows[1].str("level") != "warn" || rows[1].str("at") != "2026-01-01T00:00:00Z" || rows[0].num("attempt") != 1 {
		t.Errorf("logs %s", page.text)
	}
	if rows = s.want(s.call("GET", id+"/logs?limit=2&cursor="+page.str("next_cursor"), s.acme, nil), 200, "").rows("data"); len(rows) != 1 {
		t.Errorf("the next page %v", rows)
	}
	s.want(s.call("GET", id+"/logs", s.blue, nil), 404, "not_found")
	w.report(map[string]any{"lease_token": token, "status": "succeeded"})
	s.want(s.call("POST", id+"/logs", s.acme, lines, "Nightshift-Lease", token), 409, "lease_lost")
	s.want(s.call("POST", id+"/quality", s.acme, `{"score":0.25,"source":"people"}`), 200, "")
	s.want(s.call("POST", id+"/quality", s.acme, `{"score":0.75,"source":"people"}`), 200, "")
	if rows = s.want(s.call("GET", id+"/quality", s.acme, nil), 200, "").rows("data"); len(rows) != 1 || rows[0].num("score") != 0.75 {
		t.Errorf("judged %v", rows)
	}
	s.refused(s.call("POST", id+"/quality", s.acme, `{"score":2,"source":"people"}`), "body.score")
}

func TestDedupeOverHTTP(t *testing.T) {
	s := newStage(t)
	body := map[string]any{"type": "a", "dedupe": map[string]any{"key": "sync:42", "while": "live"}}
	first := s.submit(s.acme, body)
	if first.at("dedupe").str("while") != "live" {
		t.Errorf("submitted %s", first.text)
	}
	again := s.want(s.call("POST", "/v1/tasks", s.acme, body), 200, "")
	if again.str("id") != first.str("id") || again.body["deduplicated"] != true {
		t.Errorf("again: %s", again.text)
	}
	s.want(s.call("POST", "/v1/tasks", s.blue, body), 201, "")
	s.want(s.call("POST", "/v1/tasks/"+first.str("id")+"/cancel", s.acme, nil), 200, "")
	s.want(s.call("POST", "/v1/tasks", s.acme, body), 201, "")
	s.refused(s.call("POST", "/v1/tasks", s.acme, `{"type":"a","dedupe":{"while":"live"}}`), "body.dedupe.key")
	s.refused(s.call("POST", "/v1/tasks", s.acme, `{"type":"a","dedupe":{"key":"k","while":"ever"}}`), "body.dedupe.while")
}
