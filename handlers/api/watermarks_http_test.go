package api_test

import (
	"strings"
	"testing"
)

func TestWatermarksOverHTTP(t *testing.T) {
	s := newStage(t)
	w := s.register(s.acme, nil)
	s.want(s.call("GET", "/v1/watermarks/docs", s.acme, nil), 404, "not_found")
	if r := s.want(s.call("PUT", "/v1/watermarks/docs", s.acme, `{"value":{"day":1}}`), 201, ""); r.num("version") != 1 {
		t.Errorf("made %s", r.text)
	}
	s.want(s.call("PUT", "/v1/watermarks/docs", s.acme, `{"value":2,"version":7}`), 412, "stale")
	if r := s.want(s.call("PUT", "/v1/watermarks/docs", s.acme, `{"value":2,"version":1}`), 200, ""); r.num("version") != 2 {
		t.Errorf("set %s", r.text)
	}
	s.refused(s.call("PUT", "/v1/watermarks/docs", s.acme, `{"version":2}`), "body.value")
	if r := s.want(s.call("PUT", "/v1/watermarks/empty", s.blue, `{"value":null}`), 201, ""); !strings.Contains(r.text, `"value":null`) || r.num("version") != 1 {
		t.Errorf("with null: %s", r.text)
	}
	s.want(s.call("GET", "/v1/watermarks/docs", s.blue, nil), 404, "not_found")
	task := s.submit(s.acme, map[string]any{"type": "a", "watermark": "docs"})
	if task.str("watermark") != "docs" || task.rows("concurrency")[0].str("key") != "watermark:docs" {
		t.Errorf("submitted %s", task.text)
	}
	lease := w.claim(1, 5)[0]
	if mark := lease.at("watermark"); mark.num("value") != 2 || mark.num("version") != 2 {
		t.Errorf("claimed with %v", mark)
	}
	rows := w.report(map[string]any{"lease_token": lease.str("lease_token"), "status": "succeeded", "watermark": map[string]any{"value": 3, "version": 2}})
	if rows[0].str("state") != "succeeded" {
		t.Errorf("reported %v", rows)
	}
	if r := s.want(s.call("GET", "/v1/watermarks/docs", s.acme, nil), 200, ""); r.num("value") != 3 || r.num("version") != 3 || r.header.Get("ETag") != `"3"` {
		t.Errorf("moved to %s", r.text)
	}
	if rows := s.want(s.call("GET", "/v1/watermarks", s.acme, nil), 200, "").rows("data"); len(rows) != 1 {
		t.Errorf("there are %v", rows)
	}
	if counted := s.want(s.call("GET", "/v1/watermarks?count=true", s.acme, nil), 200, ""); counted.at("total").num("value") != 1 || counted.at("total").str("relation") != "eq" {
		t.Errorf("counted as %s", counted.text)
	}
	s.submit(s.acme, map[string]any{"type": "a", "watermark": "docs"})
	lease = w.claim(1, 5)[0]
	rows = w.report(map[string]any{"lease_token": lease.str("lease_token"), "status": "succeeded", "watermark": map[string]any{"value": 4, "version": 1}})
	if rows[0].str("state") != "retry_wait" || rows[0].str("code") != "state_conflict" {
		t.Errorf("with an old version: %v", rows)
	}
	task = s.task(s.acme, lease.str("task_id"))
	attempt := s.want(s.call("GET", "/v1/tasks/"+lease.str("task_id")+"/attempts", s.acme, nil), 200, "").rows("data")[0]
	for what, e := range map[string]reply{"task": task.at("error"), "attempt": attempt.at("error")} {
		if e.str("class") != "state_conflict" || !strings.Contains(e.str("message"), "version") {
			t.Errorf("the %s's error: %s", what, e.text)
		}
	}
	if r := s.want(s.call("GET", "/v1/watermarks/docs", s.acme, nil), 200, ""); r.num("value") != 3 || r.num("version") != 3 {
		t.Errorf("the conflict moved it to %s", r.text)
	}
}
