package api_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// everySix is an expression that fires at four full hours of each day, the next of them two to three hours ahead: what a forecast
// says of times that are just now is no part of these tests.
var everySix = fmt.Sprintf("0 %d/6 * * *", (time.Now().UTC().Hour()+3)%6)

// nightlies makes schedules that all run every six hours, whose tasks are expected to take minutes.
func (s *stage) nightlies(token, name string, n, minutes int) []string {
	s.t.Helper()
	var ids []string
	for i := range n {
		made := s.want(s.call("POST", "/v1/schedules", token, map[string]any{
			"name": fmt.Sprint(name, i), "kind": "cron", "expression": everySix, "task": map[string]any{"type": name + ".write", "estimated_seconds": minutes * 60},
		}), 201, "")
		ids = append(ids, made.str("id"))
	}
	return ids
}

func TestTheForecastNamesWhereSchedulesMeet(t *testing.T) {
	s := newStage(t)
	token := s.scheduler("acme")
	if r := s.want(s.call("GET", "/v1/schedules/forecast", token, nil), 200, ""); len(r.rows("slots")) != 0 || len(r.rows("collisions")) != 0 || r.body["incomplete"] != false {
		t.Errorf("without schedules: %s", r.text)
	}
	ids := s.nightlies(token, "report", 3, 10)
	r := s.want(s.call("GET", "/v1/schedules/forecast?hours=24", token, nil), 200, "")
	slots, collisions := r.rows("slots"), r.rows("collisions")
	if len(slots) < 8 || len(collisions) != 4 {
		t.Fatalf("%d slots and %d collisions: %s", len(slots), len(collisions), r.text)
	}
	if x := slots[0]; x.num("running_p50") != 3 || x.num("running_p90") != 3 || x.str("kind") != "batch" || x.str("lane") != "batch" || len(x.body["schedules"].([]any)) != 3 || x.num("capacity") != 0 {
		t.Errorf("the first slot: %v", x.body)
	}
	c := collisions[0]
	suggestion := c.at("suggestion")
	if c.num("peak") != 3 || c.body["kinds"].([]any)[0] != "batch" || len(c.body["schedules"].([]any)) != 3 || suggestion.num("peak_after") != 2 || !strings.Contains(strings.Join(ids, " "), suggestion.str("schedule_id")) {
		t.Errorf("the first collision: %v", c.body)
	}
	for _, hours := range []string{"0", "169", "-1", "x", "1.5", "", "24,25"} {
		s.want(s.call("GET", "/v1/schedules/forecast?hours="+hours, token, nil), 400, "invalid_query")
	}
	s.want(s.call("GET", "/v1/schedules/forecast?days=1", token, nil), 400, "invalid_query")
	s.want(s.call("GET", "/v1/schedules/forecast", s.acme, nil), 403, "scope_required")
	week := s.want(s.call("GET", "/v1/schedules/forecast?hours=168", token, nil), 200, "")
	if n := len(week.rows("collisions")); n != 28 {
		t.Errorf("a week has %d collisions", n)
	}
	s.register(s.acme, map[string]any{"slots": 2})
	r = s.want(s.call("GET", "/v1/schedules/forecast", token, nil), 200, "")
	if r.rows("slots")[0].num("capacity") != 2 || r.rows("collisions")[0].body["over_capacity"] != true || c.body["over_capacity"] != false {
		t.Errorf("with a worker of two slots: %s", r.text)
	}
	// What is paused asks for nothing.
	s.want(s.call("POST", "/v1/schedules/"+ids[0]+"/pause", token, `{"reason":"x"}`), 200, "")
	if got := s.want(s.call("GET", "/v1/schedules/forecast", token, nil), 200, "").rows("slots")[0].num("running_p90"); got != 2 {
		t.Errorf("with one paused %v run", got)
	}
}

func TestASuggestionIsApplied(t *testing.T) {
	s := newStage(t)
	token := s.scheduler("acme")
	s.nightlies(token, "report", 3, 10)
	look := func() (collision, suggestion reply) {
		c := s.want(s.call("GET", "/v1/schedules/forecast", token, nil), 200, "").rows("collisions")[0]
		return c, c.at("suggestion")
	}
	c, suggestion := look()
	id, to := suggestion.str("schedule_id"), suggestion.str("move_to")
	path := "/v1/schedules/" + id
	body := map[string]any{"move_to": to}
	dry := s.want(s.call("POST", path+"/apply-suggestion?dry_run=true", token, body), 200, "")
	if dry.num("version") != 1 || dry.str("expression") == everySix || dry.num("peak") != c.num("peak") || dry.num("peak_after") != suggestion.num("peak_after") {
		t.Errorf("dry: %s", dry.text)
	}
	if r := s.want(s.call("GET", path, token, nil), 200, ""); r.str("expression") != everySix || r.num("version") != 1 {
		t.Errorf("after a dry run: %s", r.text)
	}
	s.want(s.call("POST", path+"/apply-suggestion", token, body, "If-Match", `"7"`), 412, "stale")
	s.want(s.call("POST", path+"/apply-suggestion?dry_run=true", token, body, "If-Match", `"7"`), 412, "stale")
	moved := s.want(s.call("POST", path+"/apply-suggestion", token, body, "If-Match", `"1"`), 200, "")
	if moved.str("id") != id || moved.str("expression") != dry.str("expression") || moved.num("version") != 2 || moved.header.Get("ETag") != `"2"` || moved.num("peak_after") != 2 {
		t.Errorf("moved: %s", moved.text)
	}
	next, err := time.Parse(time.RFC3339, moved.str("next_run_at"))
	at, err2 := time.Parse(time.RFC3339, to)
	if err != nil || err2 != nil || next.After(at) || at.Sub(next)%(6*time.Hour) != 0 {
		t.Errorf("it runs next at %s, and was moved to %s", moved.str("next_run_at"), to)
	}
	for _, x := range s.want(s.call("GET", "/v1/schedules/forecast", token, nil), 200, "").rows("collisions") {
		if x.num("peak") != 2 {
			t.Errorf("after the move: %v", x.body)
		}
	}
	// The next one moves another; then nothing meets any more, and nothing is suggested.
	_, suggestion = look()
	second := s.want(s.call("POST", "/v1/schedules/"+suggestion.str("schedule_id")+"/apply-suggestion", token, map[string]any{"move_to": suggestion.str("move_to")}), 200, "")
	if second.num("peak") != 2 || second.num("peak_after") != 1 {
		t.Errorf("the second: %s", second.text)
	}
	if left := s.want(s.call("GET", "/v1/schedules/forecast", token, nil), 200, "").rows("collisions"); len(left) != 0 {
		t.Errorf("what is left: %v", left)
	}
	s.refused(s.want(s.call("POST", path+"/apply-suggestion", token, body), 422, "validation_failed"), "body.move_to")
}

func TestAMoveThatWasNotSuggestedIsRefused(t *testing.T) {
	s := newStage(t)
	token := s.scheduler("acme")
	ids := s.nightlies(token, "report", 2, 10)
	alone := s.want(s.call("POST", "/v1/schedules", token, map[string]any{"name": "alone", "kind": "cron", "expression": fmt.Sprintf("17 %d * * *", (time.Now().UTC().Hour()+5)%24), "task": map[string]any{"type": "x"}}), 201, "").str("id")
	fromEnd := s.want(s.call("POST", "/v1/schedules", token, map[string]any{"name": "end", "kind": "interval", "every_seconds": 30 * 24 * 3600, "interval_from": "end", "task": map[string]any{"type": "x"}}), 201, "").str("id")
	next, err := time.Parse(time.RFC3339, s.want(s.call("GET", "/v1/schedules/"+ids[0], token, nil), 200, "").str("next_run_at"))
	if err != nil {
		t.Fatal(err)
	}
	next = next.Add(6 * time.Hour)
	in := func(d time.Duration) string { return next.Add(d).Format(time.RFC3339) }
	for _, c := range []struct{ id, to, why string }{
		{ids[0], "2020-01-01T00:00:00Z", "past"},
		{ids[0], in(0), "half an hour"},
		{ids[0], in(31 * time.Minute), "half an hour"},
		{ids[0], in(2 * time.Hour), "half an hour"},
		{ids[0], in(10*time.Minute + time.Second), "whole number of minutes"},
		{ids[0], in(5 * time.Minute), "lower no peak"},
		{ids[0], in(200 * time.Hour), "168 hours"},
		{alone, in(20 * time.Minute), ""},
		{fromEnd, in(20 * time.Minute), "from the end"},
		{ids[0], "soon", ""},
		{ids[0], "", ""},
	} {
		r := s.call("POST", "/v1/schedules/"+c.id+"/apply-suggestion", token, map[string]any{"move_to": c.to})
		s.refused(r, "body.move_to")
		if !strings.Contains(r.text, c.why) {
			t.Errorf("%s to %q: %s", c.id, c.to, r.text)
		}
	}
	s.refused(s.call("POST", "/v1/schedules/"+ids[0]+"/apply-suggestion", token, `{}`), "body.move_to")
	s.refused(s.call("POST", "/v1/schedules/"+ids[0]+"/apply-suggestion", token, `{"move_to":"2030-01-01T00:00:00Z","x":1}`), "body.x")
	s.want(s.call("POST", "/v1/schedules/"+ids[0]+"/apply-suggestion", token, ``), 400, "invalid_json")
	s.want(s.call("POST", "/v1/schedules/nobody/apply-suggestion", token, map[string]any{"move_to": in(20 * time.Minute)}), 404, "not_found")
	if r := s.want(s.call("GET", "/v1/schedules/"+ids[0], token, nil), 200, ""); r.num("version") != 1 {
		t.Errorf("a refused move left: %s", r.text)
	}
	s.want(s.call("POST", "/v1/schedules/"+ids[0]+"/apply-suggestion", token, map[string]any{"move_to": in(20 * time.Minute)}), 200, "")
}

// A tenant's forecast has nothing of another's in it: neither names, nor numbers, nor what could be moved.
func TestAForecastIsOfOneEnvironmentAlone(t *testing.T) {
	s := newStage(t)
	s.tenant("globex")
	ours, theirs := s.scheduler("acme"), s.scheduler("globex")
	foreign := s.nightlies(theirs, "secret", 5, 10)
	if r := s.want(s.call("GET", "/v1/schedules/forecast", ours, nil), 200, ""); len(r.rows("slots")) != 0 || len(r.rows("collisions")) != 0 {
		t.Errorf("another's schedules are foreseen: %s", r.text)
	}
	s.nightlies(ours, "own", 2, 10)
	r := s.want(s.call("GET", "/v1/schedules/forecast", ours, nil), 200, "")
	if peak := r.rows("collisions")[0].num("peak"); peak != 2 {
		t.Errorf("the peak is %v, and two are ours", peak)
	}
	for _, id := range append(foreign, "secret") {
		if strings.Contains(r.text, id) {
			t.Errorf("%s stands in another's forecast", id)
		}
	}
	body := map[string]any{"move_to": r.rows("collisions")[0].at("suggestion").str("move_to")}
	unknown := s.want(s.call("POST", "/v1/schedules/"+foreign[0]+"/apply-suggestion", ours, body), 404, "not_found")
	if unknown.str("detail") == "" {
		t.Errorf("%s", unknown.text)
	}
}
