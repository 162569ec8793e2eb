package api_test

import "testing"

func TestLaneStatsWithoutABrain(t *testing.T) {
	s := newStage(t)
	w := s.register(s.acme, nil)
	for range 3 {
		s.submit(s.acme, map[string]any{"type": "a", "lane": "io"})
	}
	w.claim(1, 5)
	live := s.want(s.call("GET", "/v1/lanes/io/stats", s.acme, nil), 200, "")
	if live.num("depth") != 2 || live.num("running") != 1 || live.body["in_per_second"] == nil {
		t.Errorf("live %s", live.text)
	}
	s.stopBrain()
	saved := s.want(s.call("GET", "/v1/lanes/io/stats", s.acme, nil), 200, "")
	if saved.num("depth") != 2 || saved.num("running") != 1 || saved.body["oldest_age_seconds"] == nil || saved.body["in_per_second"] != nil {
		t.Errorf("saved %s", saved.text)
	}
	s.want(s.call("GET", "/v1/lanes/nowhere/stats", s.acme, nil), 404, "not_found")
	if r := s.want(s.call("GET", "/v1/lanes/io/explain", s.acme, nil), 503, "unavailable"); r.header.Get("Retry-After") == "" || r.str("detail") == "" {
		t.Errorf("explained without a brain: %v %s", r.header, r.text)
	}
	s.want(s.call("GET", "/v1/lanes/nowhere/explain", s.acme, nil), 404, "not_found")
}

func TestEditsAreAuditedWithWhatStood(t *testing.T) {
	s := newStage(t)
	s.want(s.call("POST", "/v1/lanes", s.acme, `{"name":"sync","kind":"io","weight":2}`), 201, "")
	s.want(s.call("PATCH", "/v1/lanes/sync", s.acme, `{"weight":3}`), 200, "")
	s.want(s.call("POST", "/v1/lanes/sync/pause", s.acme, `{"reason":"inventory"}`), 200, "")
	s.want(s.call("DELETE", "/v1/lanes/sync", s.acme, nil), 204, "")
	rows := s.want(s.call("GET", "/v1/audit?order=asc", s.acme, nil), 200, "").rows("data")
	byAction := map[string]reply{}
	for _, r := range rows {
		byAction[r.str("action")] = r
	}
	if r := byAction["lane.create"]; r.body["before"] != nil || r.at("after").num("weight") != 2 {
		t.Errorf("made: %v", r.body)
	}
	if r := byAction["lane.pause"]; r.at("before").num("weight") != 3 || r.at("before").body["paused"] != false || r.at("after").body["paused"] != true || r.str("reason") != "inventory" {
		t.Errorf("paused: %v", r.body)
	}
	if r := byAction["lane.delete"]; r.body["after"] != nil || r.at("before").str("kind") != "io" {
		t.Errorf("deleted: %v", r.body)
	}
	s.want(s.call("PATCH", "/v1/kinds/batch", s.root, `{"weight":2}`), 200, "")
	found := false
	for _, r := range s.want(s.call("GET", "/v1/audit", s.root, nil), 200, "").rows("data") {
		found = found || r.str("object") == "batch" && r.at("before").num("weight") == 1 && r.at("after").num("weight") == 2
	}
	if !found {
		t.Error("the edit of a kind says nothing of what stood")
	}
}
