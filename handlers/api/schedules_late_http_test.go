package api_test

import (
	"strings"
	"testing"
)

func TestALateRunIsToldOverHTTP(t *testing.T) {
	s := newStage(t)
	token := s.scheduler("acme")
	made := s.want(s.call("POST", "/v1/schedules", token, daily(map[string]any{"complete_within_seconds": 1, "flexible_seconds": 60})), 201, "")
	if made.num("complete_within_seconds") != 1 || made.num("flexible_seconds") != 60 {
		t.Errorf("made: %s", made.text)
	}
	path := "/v1/schedules/" + made.str("id")
	run := s.want(s.call("POST", path+"/trigger", token, nil), 201, "")
	if run.body["late_at"] != nil {
		t.Errorf("at first: %s", run.text)
	}
	s.await("the run to be late", func() bool {
		rows := s.want(s.call("GET", path+"/runs", token, nil), 200, "").rows("data")
		return len(rows) == 1 && rows[0].str("late_at") != "" && rows[0].str("cause") != ""
	})
	s.await("its event", func() bool {
		rows := s.want(s.call("GET", "/v1/events?name=schedule.late", token, nil), 200, "").rows("data")
		return len(rows) == 1 && rows[0].str("schedule_id") == made.str("id") && rows[0].str("task_id") == run.str("task_id")
	})
}

func TestAFreezeIsSetOnTheEnvironment(t *testing.T) {
	s := newStage(t)
	admin := s.admin("acme")
	const path = "/v1/environments/production"
	before := s.want(s.call("GET", path, admin, nil), 200, "")
	if len(before.rows("freeze_windows")) != 0 {
		t.Errorf("before: %s", before.text)
	}
	set := s.want(s.call("PATCH", path, admin, `{"freeze_windows":[{"starts_at":"2098-01-01T00:00:00Z","ends_at":"2099-01-01T00:00:00Z"},{"starts_at":"2020-12-24T00:00:00Z","ends_at":"2090-01-02T00:00:00Z","reason":"year's end"}]}`,
		"If-Match", before.header.Get("ETag")), 200, "")
	rows := set.rows("freeze_windows")
	if len(rows) != 2 || rows[0].str("starts_at") != "2020-12-24T00:00:00Z" || rows[0].str("reason") != "year's end" || rows[1].body["reason"] != nil {
		t.Errorf("set: %s", set.text)
	}
	if got := s.want(s.call("GET", path, admin, nil), 200, ""); got.text != set.text {
		t.Errorf("read: %s", got.text)
	}
	if kept := s.want(s.call("POST", path+"/pause", admin, nil), 200, ""); len(kept.rows("freeze_windows")) != 2 {
		t.Errorf("paused: %s", kept.text)
	}
	s.want(s.call("POST", path+"/resume", admin, nil), 200, "")
	made := s.want(s.call("POST", "/v1/schedules", admin, daily(nil)), 201, "")
	if got := made.str("next_run_at"); got != onTheDay("2090-01-02") {
		t.Errorf("the next run of a frozen schedule is %s", got)
	}
	back := s.want(s.call("POST", "/v1/schedules/nightly/backfill", admin, `{"from":"2026-01-01T00:00:00Z","to":"2026-01-01T23:00:00Z"}`), 202, "")
	if rows := s.want(s.call("GET", "/v1/schedules/nightly/runs", admin, nil), 200, "").rows("data"); back.num("matched") != 1 || len(rows) != 1 || rows[0].str("outcome") != "excluded" || !strings.Contains(rows[0].str("cause"), "year's end") {
		t.Errorf("made up: %v", rows)
	}
	for body, field := range map[string]string{
		`{"freeze_windows":[{"ends_at":"2030-01-01T00:00:00Z"}]}`:                                                                                                          "body.freeze_windows[0].starts_at",
		`{"freeze_windows":[{"starts_at":"soon","ends_at":"2030-01-01T00:00:00Z"}]}`:                                                                                       "body.freeze_windows[0].starts_at",
		`{"freeze_windows":[{"starts_at":"2030-01-01T00:00:00Z","ends_at":"2030-01-01T00:00:00Z"}]}`:                                                                       "body.freeze_windows[0].ends_at",
		`{"freeze_windows":[{"starts_at":"2030-01-01T00:00:00Z","ends_at":"2031-01-01T00:00:00Z"},{"starts_at":"2030-06-01T00:00:00Z","ends_at":"2032-01-01T00:00:00Z"}]}`: "body.freeze_windows",
	} {
		s.refused(s.call("PATCH", path, admin, body), field)
	}
	if gone := s.want(s.call("PATCH", path, admin, `{"freeze_windows":null}`), 200, ""); len(gone.rows("freeze_windows")) != 0 {
		t.Errorf("cleared: %s", gone.text)
	}
}

func TestAnOperatorsPauseOutlivesEdits(t *testing.T) {
	s := newStage(t)
	token := s.scheduler("acme")
	made := s.want(s.call("POST", "/v1/schedules", token, daily(nil)), 201, "")
	path := "/v1/schedules/" + made.str("id")
	s.want(s.call("POST", path+"/pause", token, `{"reason":"holiday"}`), 200, "")
	edited := s.want(s.call("PATCH", path, token, `{"enabled":true,"owner":"ops"}`), 200, "")
	if edited.body["enabled"] != false || edited.str("paused_by") == "" || edited.str("pause_reason") != "holiday" || edited.str("owner") != "ops" {
		t.Errorf("an edit undid the pause: %s", edited.text)
	}
	if resumed := s.want(s.call("POST", path+"/resume", token, nil), 200, ""); resumed.body["enabled"] != true || resumed.body["paused_by"] != nil {
		t.Errorf("resumed: %s", resumed.text)
	}
	if off := s.want(s.call("PATCH", path, token, `{"enabled":false}`), 200, ""); off.body["enabled"] != false || off.body["paused_by"] != nil || off.body["next_run_at"] != nil {
		t.Errorf("not enabled: %s", off.text)
	}
	if on := s.want(s.call("POST", path+"/resume", token, nil), 200, ""); on.body["enabled"] != true {
		t.Errorf("an operator's resume: %s", on.text)
	}
	if kept := s.want(s.call("PATCH", path, token, `{"owner":"night"}`), 200, ""); kept.body["enabled"] != true {
		t.Errorf("an edit of something else undid it: %s", kept.text)
	}
	rows := s.want(s.call("GET", path+"/versions?order=asc", token, nil), 200, "").rows("data")
	if len(rows) != 4 || len(rows[0].rows("changes")) != 0 {
		t.Fatalf("the versions: %v", rows)
	}
	if c := rows[2].rows("changes"); len(c) != 1 || c[0].str("field") != "enabled" || c[0].body["before"] != true || c[0].body["after"] != false {
		t.Errorf("the third version: %s", rows[2].text)
	}
	if c := rows[3].rows("changes"); len(c) != 1 || c[0].str("field") != "owner" || c[0].str("before") != "ops" || c[0].str("after") != "night" {
		t.Errorf("the fourth version: %s", rows[3].text)
	}
}
