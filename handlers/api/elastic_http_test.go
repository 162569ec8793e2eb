package api_test

import (
	"slices"
	"strings"
	"testing"
)

// Kinds and lanes say whether they yield, to whom and for how long at most; what there is not, and what would go in a
// circle, is refused by its place.
func TestWhoYieldsIsEdited(t *testing.T) {
	s := newStage(t)
	kind := s.want(s.call("GET", "/v1/kinds/batch", s.root, nil), 200, "")
	if kind.body["elastic"] != true || len(kind.rows("yields_to")) != 0 || kind.body["max_hold_seconds"] != nil {
		t.Errorf("at first: %s", kind.text)
	}
	kind = s.want(s.call("PATCH", "/v1/kinds/batch", s.root, `{"yields_to":["realtime","compute"],"max_hold_seconds":3600}`), 200, "")
	if kind.num("max_hold_seconds") != 3600 || !strings.Contains(kind.text, `"yields_to":["realtime","compute"]`) {
		t.Errorf("edited: %s", kind.text)
	}
	for body, at := range map[string]string{
		`{"yields_to":["realtime","express"]}`: "body.yields_to[1]",
		`{"yields_to":["compute"]}`:            "body.yields_to[0]",
		`{"yields_to":["io","io"]}`:            "body.yields_to[1]",
		`{"yields_to":["batch"]}`:              "body.yields_to[0]",
		`{"yields_to":["No Name"]}`:            "body.yields_to[0]",
		`{"max_hold_seconds":0}`:               "body.max_hold_seconds",
		`{"max_hold_seconds":2678401}`:         "body.max_hold_seconds",
		`{"elastic":"yes"}`:                    "body.elastic",
	} {
		s.refused(s.call("PATCH", "/v1/kinds/compute", s.root, body), at)
	}
	kind = s.want(s.call("PATCH", "/v1/kinds/batch", s.root, `{"yields_to":null,"max_hold_seconds":null,"elastic":false}`), 200, "")
	if kind.body["elastic"] != false || len(kind.rows("yields_to")) != 0 || kind.body["max_hold_seconds"] != nil {
		t.Errorf("set back: %s", kind.text)
	}
	s.want(s.call("PATCH", "/v1/kinds/batch", s.acme, `{"elastic":true}`), 403, "scope_required")

	s.want(s.call("POST", "/v1/lanes", s.acme, `{"name":"sync","kind":"io"}`), 201, "")
	lane := s.want(s.call("POST", "/v1/lanes", s.acme, `{"name":"heavy","kind":"io","elastic":true,"yields_to":["sync"],"max_hold_seconds":600}`), 201, "")
	read := s.want(s.call("GET", "/v1/lanes/heavy", s.acme, nil), 200, "")
	for _, r := range []reply{lane, read} {
		if r.body["elastic"] != true || r.num("max_hold_seconds") != 600 || !strings.Contains(r.text, `"yields_to":["sync"]`) {
			t.Errorf("a lane: %s", r.text)
		}
	}
	for body, at := range map[string]string{
		`{"yields_to":["sync","nowhere"]}`: "body.yields_to[1]",
		`{"yields_to":["heavy"]}`:          "body.yields_to[0]",
		`{"max_hold_seconds":-5}`:          "body.max_hold_seconds",
		`{"elastic":1}`:                    "body.elastic",
	} {
		s.refused(s.call("PATCH", "/v1/lanes/heavy", s.acme, body), at)
	}
	s.refused(s.call("PATCH", "/v1/lanes/sync", s.acme, `{"elastic":true,"yields_to":["heavy"]}`), "body.yields_to[0]")
	s.refused(s.call("POST", "/v1/lanes", s.acme, `{"name":"x","kind":"io","yields_to":["nowhere"]}`), "body.yields_to[0]")
	s.want(s.call("DELETE", "/v1/lanes/sync", s.acme, nil), 409, "state_conflict")
	lane = s.want(s.call("PATCH", "/v1/lanes/heavy", s.acme, `{"elastic":false,"yields_to":[],"max_hold_seconds":null}`), 200, "")
	if lane.body["elastic"] != false || lane.body["max_hold_seconds"] != nil {
		t.Errorf("set back: %s", lane.text)
	}
	s.want(s.call("DELETE", "/v1/lanes/sync", s.acme, nil), 204, "")
}

// A task that is held says why, with the numbers, and until when at most; who hears events hears of it.
func TestAHeldTaskSaysUntilWhen(t *testing.T) {
	s := newStage(t)
	s.want(s.call("PATCH", "/v1/kinds/batch", s.root, `{"max_hold_seconds":600}`), 200, "")
	w := s.register(s.acme, map[string]any{"slots": 10})
	for range 6 {
		s.submit(s.acme, map[string]any{"type": "chat", "lane": "realtime", "estimated_seconds": 60})
	}
	if got := w.claim(6, 0); len(got) != 6 {
		t.Fatalf("%d of 6 chats were started", len(got))
	}
	for range 4 {
		s.submit(s.acme, map[string]any{"type": "train", "lane": "batch", "estimated_seconds": 3600})
	}
	if got := w.claim(3, 0); len(got) != 3 {
		t.Fatalf("%d of 3 trainings were started", len(got))
	}
	held := s.submit(s.acme, map[string]any{"type": "train", "lane": "batch", "estimated_seconds": 3600}).str("id")
	var why []reply
	s.await("the lane to be held", func() bool {
		why = s.want(s.call("GET", "/v1/tasks/"+held+"/explain", s.acme, nil), 200, "").rows("blocked_by")
		return len(why) > 0 && why[0].str("reason") == "lane_held" && strings.Contains(why[0].str("detail"), "let go at")
	})
	if text := why[0].str("detail"); !strings.Contains(text, "room for 3 while 6.0 are needed") || !strings.Contains(text, "let go at 20") {
		t.Errorf("explained: %s", text)
	}
	if got := w.claim(3, 0); len(got) != 0 {
		t.Errorf("while it is held %d were started", len(got))
	}
	if task := s.task(s.acme, held); task.str("state") != "ready" || !strings.HasPrefix(task.str("held_until"), "20") {
		t.Errorf("the task: %s", task.text)
	}
	var names []string
	for _, e := range s.want(s.call("GET", "/v1/events", s.acme, nil), 200, "").rows("data") {
		names = append(names, e.str("name"))
	}
	if !slices.Contains(names, "lane.held") || !slices.Contains(names, "task.held") {
		t.Errorf("events: %v", names)
	}
	stats := s.want(s.call("GET", "/v1/lanes/batch/stats", s.acme, nil), 200, "").rows("held")
	if len(stats) != 1 || stats[0].str("pool") != "cpu" || stats[0].num("room") != 3 || stats[0].num("needed_slots") != 6 || !strings.HasPrefix(stats[0].str("since"), "20") {
		t.Errorf("the lane's stats: %v", stats)
	}
}
