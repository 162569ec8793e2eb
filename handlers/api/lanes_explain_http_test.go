package api_test

import "testing"

func TestALaneIsExplained(t *testing.T) {
	s := newStage(t)
	if heads := s.want(s.call("GET", "/v1/lanes/batch/explain", s.acme, nil), 200, "").rows("heads"); len(heads) != 0 {
		t.Errorf("nothing waits, yet %v", heads)
	}
	id := s.submit(s.acme, map[string]any{"type": "a"}).str("id")
	s.submit(s.acme, map[string]any{"type": "a"})
	s.submit(s.blue, map[string]any{"type": "b"})
	s.want(s.call("POST", "/v1/lanes/batch/pause", s.acme, map[string]any{"reason": "repairs"}), 200, "")
	r := s.want(s.call("GET", "/v1/lanes/batch/explain", s.acme, nil), 200, "")
	heads := r.rows("heads")
	if r.str("lane") != "batch" || len(heads) != 1 || heads[0].str("task_id") != id || heads[0].str("type") != "a" || heads[0].num("ready") != 2 || heads[0].num("position") != 1 {
		t.Fatalf("explained as %s", r.text)
	}
	if why := heads[0].rows("blocked_by"); len(why) == 0 || why[0].str("reason") != "lane_paused" {
		t.Errorf("blocked by %v", why)
	}
	s.want(s.call("GET", "/v1/lanes/nowhere/explain", s.acme, nil), 404, "not_found")
	s.want(s.call("GET", "/v1/lanes/batch/explain?x=1", s.acme, nil), 400, "invalid_query")
	s.want(s.call("GET", "/v1/lanes/batch/explain", "", nil), 401, "unauthenticated")
}
