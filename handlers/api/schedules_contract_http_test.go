package api_test

import (
	"fmt"
	"strings"
	"testing"
)

// scheduleFields are all that a schedule answers, null where it has no value.
var scheduleFields = strings.Fields(`id name environment kind expression timezone dst_gap dst_overlap every_seconds interval_from run_at event drain task workflow partitions
	misfire_policy misfire_grace_seconds catch_up_limit overlap_policy expires_in_seconds flexible_seconds jitter_seconds complete_within_seconds
	max_failures_in_a_row enabled start_at end_at calendar_exclude description owner runbook_url next_run_at last_run last_success_at
	consecutive_failures p50_seconds p95_seconds effective_every_seconds version paused_by pause_reason created_at updated_at`)

// runFields are all that a run answers.
var runFields = strings.Fields(`id schedule_id scheduled_for fired_at origin outcome cause task_id workflow_id result_state late_seconds finished_at events taken taken_url late_at`)

func (s *stage) has(what string, r reply, names []string) {
	s.t.Helper()
	for _, name := range names {
		if _, there := r.body[name]; !there {
			s.t.Errorf("%s answers no %s: %s", what, name, r.text)
		}
	}
	if len(r.body) != len(names) {
		s.t.Errorf("%s answers %d fields, %d are told of: %s", what, len(r.body), len(names), r.text)
	}
}

func TestEveryFieldOfASchedule(t *testing.T) {
	s := newStage(t)
	token := s.scheduler("acme")
	bare := s.want(s.call("POST", "/v1/schedules", token, `{"name":"bare","kind":"once","run_at":"2060-01-01T00:00:00+02:00","task":{"type":"a"}}`), 201, "")
	s.has("a schedule", bare, scheduleFields)
	for name, want := range map[string]any{
		"timezone": "UTC", "dst_gap": "shift", "dst_overlap": "first", "misfire_policy": "run_once", "misfire_grace_seconds": 60.0, "catch_up_limit": 100.0,
		"overlap_policy": "skip", "enabled": true, "run_at": "2059-12-31T22:00:00Z", "next_run_at": "2059-12-31T22:00:00Z", "consecutive_failures": 0.0, "version": 1.0,
		"effective_every_seconds": nil, "p50_seconds": nil, "p95_seconds": nil, "last_run": nil, "last_success_at": nil, "paused_by": nil, "expression": nil,
		"every_seconds": nil, "interval_from": nil, "event": nil, "drain": nil, "workflow": nil, "partitions": nil, "expires_in_seconds": nil, "flexible_seconds": nil,
		"jitter_seconds": nil, "complete_within_seconds": nil, "max_failures_in_a_row": nil, "start_at": nil, "end_at": nil, "description": nil, "owner": nil, "runbook_url": nil,
	} {
		if got := bare.body[name]; got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if days, list := bare.body["calendar_exclude"].([]any); !list || len(days) != 0 {
		t.Errorf("calendar_exclude is %v", bare.body["calendar_exclude"])
	}
	full := map[string]any{
		"name": "full", "kind": "interval", "every_seconds": 3600, "timezone": "Africa/Lusaka", "dst_gap": "skip", "dst_overlap": "both", "interval_from": "end",
		"misfire_policy": "catch_up", "misfire_grace_seconds": 0, "catch_up_limit": 3, "overlap_policy": "queue_one", "expires_in_seconds": 7, "flexible_seconds": 8,
		"jitter_seconds": 9, "complete_within_seconds": 10, "max_failures_in_a_row": 11, "enabled": false, "start_at": "2060-01-01T00:00:00Z", "end_at": "2061-01-01T00:00:00Z",
		"calendar_exclude": []any{"2060-12-25"}, "description": "d", "owner": "o", "runbook_url": "https://example.com/r", "partitions": 2,
	}
	body := map[string]any{"task": map[string]any{"type": "a"}}
	for name, value := range full {
		body[name] = value
	}
	made := s.want(s.call("POST", "/v1/schedules", token, body), 201, "")
	for name, want := range full {
		if got := made.body[name]; fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if made.body["next_run_at"] != nil {
		t.Errorf("one that is not enabled runs next at %v", made.body["next_run_at"])
	}
	run := s.want(s.call("POST", "/v1/schedules/full/trigger", token, nil), 201, "")
	s.has("a run", run, runFields)
	if got := s.want(s.call("GET", "/v1/schedules/full", token, nil), 200, ""); got.body["next_run_at"] != nil || got.body["enabled"] != false || got.at("last_run").str("run_id") != run.str("id") ||
		got.at("last_run").str("outcome") != "dispatched" || got.at("last_run").str("scheduled_for") != run.str("scheduled_for") || got.at("last_run").num("lateness_seconds") != 0 {
		t.Errorf("a run by hand moved it: %s", got.text)
	}
	if run.str("origin") != "manual:"+run.str("id") || run.str("scheduled_for") == "" || run.str("fired_at") == "" {
		t.Errorf("by hand: %s", run.text)
	}
}

func (s *stage) outcomes(token, name string) (words []string) {
	s.t.Helper()
	for _, run := range s.want(s.call("GET", "/v1/schedules/"+name+"/runs?order=asc&limit=500", token, nil), 200, "").rows("data") {
		word := "waits"
		if run.body["outcome"] != nil {
			word = run.str("outcome")
		}
		words = append(words, word)
	}
	return words
}

// What a run finds of the runs before it, by the policy, and what becomes of those.
func TestOverlapsOverHTTP(t *testing.T) {
	s := newStage(t)
	token := s.scheduler("acme")
	for policy, want := range map[string]string{
		"skip":            "dispatched skipped_overlap skipped_overlap",
		"queue_one":       "dispatched superseded waits",
		"allow":           "dispatched dispatched dispatched",
		"cancel_previous": "superseded superseded dispatched",
	} {
		name := strings.ReplaceAll(policy, "_", "-")
		s.want(s.call("POST", "/v1/schedules", token, daily(map[string]any{"name": name, "overlap_policy": policy})), 201, "")
		var last reply
		for range 3 {
			last = s.want(s.call("POST", "/v1/schedules/"+name+"/trigger", token, nil), 201, "")
		}
		if got := strings.Join(s.outcomes(token, name), " "); got != want {
			t.Errorf("%s: %s, want %s", policy, got, want)
		}
		if made := last.body["task_id"] != nil; made != (policy == "allow" || policy == "cancel_previous") {
			t.Errorf("%s: the third run is %s", policy, last.text)
		}
	}
	s.want(s.call("POST", "/v1/schedules/daily/backfill", token, `{"from":"2026-01-01T00:00:00Z","to":"2026-01-02T00:00:00Z"}`), 404, "not_found")
}

// Failures in a row pause a schedule, and a resume sets back what they did.
func TestFailuresPauseASchedule(t *testing.T) {
	s := newStage(t)
	token := s.messenger("acme")
	made := s.want(s.call("POST", "/v1/schedules", token, daily(map[string]any{"max_failures_in_a_row": 2, "overlap_policy": "allow"})), 201, "")
	path := "/v1/schedules/" + made.str("id")
	w := s.register(s.acme, nil)
	fail := func(class string) {
		t.Helper()
		s.want(s.call("POST", path+"/trigger", token, nil), 201, "")
		lease := w.claim(1, 5)[0]
		if class == "" {
			w.report(done(lease, "fine"))
			return
		}
		w.report(map[string]any{"lease_token": lease.str("lease_token"), "status": "failed", "error": map[string]any{"class": class, "message": "no"}})
	}
	read := func() reply { return s.want(s.call("GET", path, token, nil), 200, "") }
	fail("invalid_input")
	if r := read(); r.num("consecutive_failures") != 1 || r.body["enabled"] != true {
		t.Errorf("after one: %s", r.text)
	}
	fail("")
	if r := read(); r.num("consecutive_failures") != 0 || r.str("last_success_at") == "" || r.body["p50_seconds"] == nil || r.body["p95_seconds"] == nil {
		t.Errorf("after a success: %s", r.text)
	}
	fail("invalid_input")
	fail("invalid_input")
	if r := read(); r.num("consecutive_failures") != 2 || r.body["enabled"] != false || r.str("paused_by") != "failures" || r.body["next_run_at"] != nil {
		t.Errorf("after two in a row: %s", r.text)
	}
	if r := s.want(s.call("POST", path+"/resume", token, map[string]any{"reason": "mended"}), 200, ""); r.num("consecutive_failures") != 0 || r.body["enabled"] != true || r.body["paused_by"] != nil || r.str("next_run_at") == "" {
		t.Errorf("resumed: %s", r.text)
	}
}

// What hinders all of an environment is said in the rows of its schedules.
func TestPausedOccurrencesLeaveRows(t *testing.T) {
	s := newStage(t)
	token := s.admin("acme")
	s.want(s.call("POST", "/v1/schedules", token, map[string]any{"name": "own", "kind": "interval", "every_seconds": 1, "task": map[string]any{"type": "a"}}), 201, "")
	s.want(s.call("POST", "/v1/schedules/own/pause", token, map[string]any{"reason": "asked"}), 200, "")
	s.await("a row of the paused schedule", func() bool { return strings.Contains(strings.Join(s.outcomes(token, "own"), " "), "skipped_paused") })
	s.want(s.call("POST", "/v1/schedules/own/resume", token, nil), 200, "")
	before := len(s.outcomes(token, "own"))
	s.await("a run after it", func() bool {
		return strings.Contains(strings.Join(s.outcomes(token, "own")[before:], " "), "dispatched")
	})
	s.want(s.call("POST", "/v1/environments/production/pause", token, map[string]any{"reason": "asked"}), 200, "")
	s.want(s.call("POST", "/v1/schedules", token, map[string]any{"name": "all", "kind": "interval", "every_seconds": 1, "task": map[string]any{"type": "a"}}), 201, "")
	s.await("a row of the paused environment", func() bool { return strings.Contains(strings.Join(s.outcomes(token, "all"), " "), "skipped_paused") })
	run := s.want(s.call("GET", "/v1/schedules/all/runs?limit=1", token, nil), 200, "").rows("data")[0]
	if run.str("cause") != "the environment is paused" || run.body["task_id"] != nil || run.body["result_state"] != nil {
		t.Errorf("its row: %s", run.text)
	}
}

// Nothing that a rule says costs much or breaks anything, and each refusal names the field.
func TestHostileRules(t *testing.T) {
	s := newStage(t)
	token := s.scheduler("acme")
	long := strings.Repeat("0-59,", 40)
	for i, c := range []struct{ body, field string }{
		{`"expression":"1--100000000 * * * *"`, "expression"},
		{`"expression":"0-99999999999999999999 * * * *"`, "expression"},
		{`"expression":"*/0 * * * *"`, "expression"},
		{`"expression":"*/99999999999 * * * *"`, "expression"},
		{`"expression":"-1 * * * *"`, "expression"},
		{`"expression":"* * * * * * *"`, "expression"},
		{`"expression":"* * * *"`, "expression"},
		{`"expression":""`, "expression"},
		{`"expression":"@every 5m"`, "expression"},
		{`"expression":"@REBOOT"`, "expression"},
		{`"expression":"٥ * * * *"`, "expression"},
		{`"expression":"０ ８ * * *"`, "expression"},
		{`"expression":"0 8 * * *\u2028"`, "expression"},
		{`"expression":"\ud83d\ude00 * * * *"`, "expression"},
		{`"expression":"0 0 31 2,4,6,9,11 *"`, "expression"},
		{`"expression":"0 0 30 2 *"`, "expression"},
		{`"expression":"` + long + `0 * * * *"`, ""}, // long, and meant
		{`"expression":"` + strings.Repeat(long, 20) + `0 * * * *"`, "expression"},
		{`"expression":"` + strings.Repeat("* ", 100_000) + `"`, "expression"},
		{`"expression":"0 8 * * *","timezone":"africa/lusaka"`, "timezone"},
		{`"expression":"0 8 * * *","timezone":"AFRICA/LUSAKA"`, "timezone"},
		{`"expression":"0 8 * * *","timezone":"Africa/Lusaka "`, "timezone"},
		{`"expression":"0 8 * * *","timezone":"../../etc/passwd"`, "timezone"},
		{`"expression":"0 8 * * *","timezone":"/etc/localtime"`, "timezone"},
		{`"expression":"0 8 * * *","timezone":"` + strings.Repeat("a", 100_000) + `"`, "timezone"},
		{`"expression":"0 8 * * *","timezone":"UTC+2"`, "timezone"},
		{`"expression":"0 8 * * *","timezone":"Europe/Berlín"`, "timezone"},
		{`"kind":"interval","every_seconds":0`, "every_seconds"},
		{`"kind":"interval","every_seconds":-9223372036854775808`, "every_seconds"},
		{`"kind":"interval","every_seconds":9223372036854775807`, "every_seconds"},
		{`"kind":"interval","every_seconds":1262304001`, "every_seconds"}, // beyond 40 years
		{`"kind":"interval","every_seconds":31536000`, ""},
		{`"kind":"once","run_at":"9999-12-31T23:59:59.999999Z"`, "run_at"},
		{`"kind":"once","run_at":"0001-01-01T00:00:00Z"`, "run_at"},
		{`"kind":"once","run_at":"2026-02-30T00:00:00Z"`, "run_at"},
		{`"expression":"0 8 * * *","count":-1`, "count"},
		{`"expression":"0 8 * * *","count":1000`, ""},
		{`"expression":"* * * * * *","count":1000`, ""},
		{`"expression":"0 0 29 2 MON","count":1000`, ""},
		{`"expression":"0 0 29 2 *","count":1000`, ""},
		{`"expression":"0 8 * * *","from":"9999-12-31T23:59:59Z"`, "from"},
		{`"expression":"0 8 * * *","from":"0000-01-01T00:00:00Z"`, "from"},
		{`"expression":"0 8 * * *","from":"-1"`, "from"},
	} {
		r := s.call("POST", "/v1/schedules/preview", token, "{"+c.body+"}")
		switch {
		case c.field == "" && (r.status != 200 || len(r.rows("next")) == 0):
			t.Errorf("%d %.80s: %d %.300s", i, c.body, r.status, r.text)
		case c.field != "" && (r.status != 422 || !strings.Contains(r.text, `"location":"body.`+c.field+`"`)):
			t.Errorf("%d %.80s: %d %.300s", i, c.body, r.status, r.text)
		case len(r.text) > 200_000:
			t.Errorf("%d %.80s: answers %d bytes", i, c.body, len(r.text))
		}
	}
	dates := make([]string, 1001)
	for i := range dates {
		dates[i] = "2060-01-01"
	}
	for i, c := range []struct {
		change map[string]any
		field  string
	}{
		{map[string]any{"calendar_exclude": []string{"2026-02-30"}}, "calendar_exclude"},
		{map[string]any{"calendar_exclude": dates}, "calendar_exclude"},
		{map[string]any{"calendar_exclude": []any{5}}, "calendar_exclude"},
		{map[string]any{"start_at": "9999-01-01T00:00:00Z"}, "start_at"},
		{map[string]any{"start_at": "2070-01-01T00:00:00Z", "end_at": "2069-01-01T00:00:00Z"}, "end_at"},
		{map[string]any{"end_at": "2020-01-01T00:00:00Z"}, "end_at"},
		{map[string]any{"catch_up_limit": 1001}, "catch_up_limit"},
		{map[string]any{"catch_up_limit": -1}, "catch_up_limit"},
		{map[string]any{"misfire_grace_seconds": -1}, "misfire_grace_seconds"},
		{map[string]any{"misfire_grace_seconds": 1.5}, "misfire_grace_seconds"},
		{map[string]any{"expires_in_seconds": 0}, "expires_in_seconds"},
		{map[string]any{"jitter_seconds": 86_401}, "jitter_seconds"},
		{map[string]any{"flexible_seconds": -5}, "flexible_seconds"},
		{map[string]any{"max_failures_in_a_row": 0}, "max_failures_in_a_row"},
		{map[string]any{"complete_within_seconds": 0}, "complete_within_seconds"},
		{map[string]any{"misfire_policy": "sometimes"}, "misfire_policy"},
		{map[string]any{"overlap_policy": "SKIP"}, "overlap_policy"},
		{map[string]any{"dst_gap": 5}, "dst_gap"},
		{map[string]any{"enabled": "yes"}, "enabled"},
		{map[string]any{"name": "Nightly"}, "name"},
		{map[string]any{"name": strings.Repeat("a", 129)}, "name"},
		{map[string]any{"runbook_url": "javascript:alert(1)"}, "runbook_url"},
		{map[string]any{"description": "a\x00b"}, "description"},
		{map[string]any{"kind": "weekly"}, "kind"},
		{map[string]any{"expression": "* * * * * */1"}, ""},
	} {
		r := s.call("POST", "/v1/schedules", token, daily(c.change))
		if c.field == "" && r.status != 201 || c.field != "" && (r.status != 422 || !strings.Contains(r.text, `"location":"body.`+c.field)) {
			t.Errorf("%d %v: %d %.300s", i, c.change, r.status, r.text)
		}
	}
	for range 3 {
		if rows := s.want(s.call("POST", "/v1/schedules/preview", token, `{"expression":"*/7 1-23/2 L,1W * MON#2","timezone":"America/New_York","count":1000}`), 200, "").rows("next"); len(rows) != 1000 {
			t.Errorf("%d rows", len(rows))
		}
	}
}
