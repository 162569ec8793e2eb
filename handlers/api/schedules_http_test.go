package api_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func (s *stage) scheduler(slug string) string {
	s.t.Helper()
	key := s.want(s.call("POST", "/v1/api-keys", s.root, map[string]any{
		"name": "schedules", "scopes": []string{"schedules:read", "schedules:write", "tasks:read"},
	}, "Nightshift-Tenant", slug), 201, "")
	return s.token(key.str("client_id"), key.str("client_secret"))
}

func TestPreviewSaysWhatAClockChangeDoes(t *testing.T) {
	s := newStage(t)
	token := s.scheduler("acme")
	ask := map[string]any{
		"expression": "30 2 * * *", "timezone": "Europe/Berlin", "count": 3, "from": "2026-03-28T00:00:00Z",
	}
	r := s.want(s.call("POST", "/v1/schedules/preview", token, ask), 200, "")
	rows := r.rows("next")
	if len(rows) != 3 || rows[0].str("at") != "2026-03-28T01:30:00Z" || rows[0].str("local") != "2026-03-28T02:30:00+01:00" || rows[0].body["note"] != nil ||
		rows[1].str("at") != "2026-03-29T01:00:00Z" || rows[1].str("note") != "dst_gap" || rows[2].str("at") != "2026-03-30T00:30:00Z" || r.str("words") == "" {
		t.Errorf("shifted: %s", r.text)
	}
	ask["dst_gap"] = "skip"
	if rows := s.want(s.call("POST", "/v1/schedules/preview", token, ask), 200, "").rows("next"); rows[1].str("at") != "2026-03-30T00:30:00Z" {
		t.Errorf("skipped: %v", rows)
	}
	twice := map[string]any{"expression": "30 2 * * *", "timezone": "Europe/Berlin", "dst_overlap": "both", "count": 2, "from": "2026-10-25T00:00:00Z"}
	if rows := s.want(s.call("POST", "/v1/schedules/preview", token, twice), 200, "").rows("next"); rows[0].str("at") != "2026-10-25T00:30:00Z" || rows[1].str("at") != "2026-10-25T01:30:00Z" || rows[1].str("note") != "dst_overlap" {
		t.Errorf("both passes: %v", rows)
	}
	every := map[string]any{"every_seconds": 90, "from": "2026-01-01T00:00:00Z"}
	if rows := s.want(s.call("POST", "/v1/schedules/preview", token, every), 200, "").rows("next"); len(rows) != 10 || rows[9].str("at") != "2026-01-01T00:15:00Z" {
		t.Errorf("an interval: %v", rows)
	}
	if rows := s.want(s.call("POST", "/v1/schedules/preview", token, map[string]any{"expression": "@daily"}), 200, "").rows("next"); len(rows) != 10 {
		t.Errorf("from now: %v", rows)
	}
}

// The moment that stands for none inside is one like any other to a caller, and so is what lies before it.
func TestPreviewKnowsTheBeginningOf1970(t *testing.T) {
	s := newStage(t)
	token := s.scheduler("acme")
	for from, want := range map[string]string{
		"1970-01-01T00:00:00Z":      "1970-01-02T00:00:00Z",
		"1969-12-31T12:00:00Z":      "1970-01-01T00:00:00Z",
		"1970-01-01T00:00:00+01:00": "1970-01-01T00:00:00Z",
		"1969-12-30T23:59:59Z":      "1969-12-31T00:00:00Z",
	} {
		r := s.want(s.call("POST", "/v1/schedules/preview", token, map[string]any{"expression": "0 0 * * *", "count": 1, "from": from}), 200, "")
		if rows := r.rows("next"); len(rows) != 1 || rows[0].str("at") != want {
			t.Errorf("from %s: %s", from, r.text)
		}
	}
}

func TestPreviewRefusesWithTheReason(t *testing.T) {
	s := newStage(t)
	token := s.scheduler("acme")
	for body, want := range map[string]struct{ code, field string }{
		`{}`:                          {"validation_failed", "body.expression"},
		`{"expression":"0 0 30 2 *"}`: {"invalid_schedule", "body.expression"},
		`{"expression":"61 * * * *"}`: {"invalid_schedule", "body.expression"},
		`{"expression":"@daily","timezone":"Mars/Olympus"}`:           {"invalid_schedule", "body.timezone"},
		`{"expression":"@daily","timezone":"Local"}`:                  {"invalid_schedule", "body.timezone"},
		`{"expression":"@daily","dst_gap":"jump"}`:                    {"invalid_schedule", "body.dst_gap"},
		`{"expression":"@daily","dst_overlap":"third"}`:               {"invalid_schedule", "body.dst_overlap"},
		`{"expression":"@daily","count":0}`:                           {"validation_failed", "body.count"},
		`{"expression":"@daily","count":1001}`:                        {"validation_failed", "body.count"},
		`{"expression":"@daily","from":"soon"}`:                       {"validation_failed", "body.from"},
		`{"expression":"@daily","every_seconds":5}`:                   {"validation_failed", "body.every_seconds"},
		`{"kind":"interval"}`:                                         {"validation_failed", "body.every_seconds"},
		`{"every_seconds":0}`:                                         {"invalid_schedule", "body.every_seconds"},
		`{"every_seconds":9223372036854775807}`:                       {"invalid_schedule", "body.every_seconds"},
		`{"kind":"event"}`:                                            {"validation_failed", "body.event"},
		`{"kind":"drain"}`:                                            {"validation_failed", "body.drain"},
		`{"kind":"once"}`:                                             {"validation_failed", "body.run_at"},
		`{"kind":"whenever"}`:                                         {"validation_failed", "body.kind"},
		`{"kind":"once","run_at":"soon"}`:                             {"validation_failed", "body.run_at"},
		`{"kind":"once","run_at":"2020-01-01T00:00:00Z"}`:             {"invalid_schedule", "body.run_at"},
		`{"kind":"event","event":{}}`:                                 {"validation_failed", "body.event.name"},
		`{"kind":"event","event":{"name":"a","max_events":0}}`:        {"validation_failed", "body.event.max_events"},
		`{"kind":"event","event":{"name":"a","debounce_seconds":-1}}`: {"validation_failed", "body.event.debounce_seconds"},
		`{"kind":"event","event":{"name":"a"},"timezone":"Mars/X"}`:   {"invalid_schedule", "body.timezone"},
		`{"kind":"event","event":{"name":"a"},"expression":"@daily"}`: {"validation_failed", "body.expression"},
		`{"kind":"drain","drain":{"queue":"A b"}}`:                    {"validation_failed", "body.drain.queue"},
		`{"kind":"drain","drain":{"queue":"a","max_items":10001}}`:    {"validation_failed", "body.drain.max_items"},
		`{"expression":"@daily","colour":"red"}`:                      {"validation_failed", "body.colour"},
		`{"expression":"@daily","from":"2262-04-01T00:00:00Z"}`:       {"", ""},
		`{"expression":"*/7 3 L 2 MON#2","count":1000}`:               {"", ""},
		`{"expression":"0 0 29 2 *","from":"2100-01-01T00:00:00Z"}`:   {"", ""},
		`{"every_seconds":1,"count":1000}`:                            {"", ""},
		`{"expression":null,"kind":"interval","every_seconds":3600}`:  {"", ""},
	} {
		r := s.call("POST", "/v1/schedules/preview", token, body)
		if want.code == "" {
			s.want(r, 200, "")
			continue
		}
		s.refused(s.want(r, 422, want.code), want.field)
	}
	s.want(s.call("POST", "/v1/schedules/preview?x=1", token, `{"expression":"@daily"}`), 400, "invalid_query")
	s.want(s.call("POST", "/v1/schedules/preview", s.acme, `{"expression":"@daily"}`), 403, "scope_required")
	s.want(s.call("POST", "/v1/schedules/preview", token, ``), 400, "invalid_json")
}

func TestPreviewOfWhatFollowsNoClock(t *testing.T) {
	s := newStage(t)
	token := s.scheduler("acme")
	for body, words := range map[string]string{
		`{"kind":"event","event":{"name":"sale"}}`:                                                                       "At each trigger named sale",
		`{"kind":"event","event":{"name":"sale","debounce_seconds":0.5}}`:                                                "When triggers named sale have been quiet for 0.5 seconds",
		`{"kind":"event","event":{"name":"sale","debounce_seconds":60,"max_wait_seconds":600,"max_events":7},"count":3}`: "When triggers named sale have been quiet for 1 minute, at the latest 10 minutes after the first or when there are 7 of them",
		`{"kind":"drain","drain":{"queue":"mail"}}`:                                                                      "As soon as the queue mail holds something, at most once a second: up to 1000 items a run, 100 items a portion",
	} {
		r := s.want(s.call("POST", "/v1/schedules/preview", token, body), 200, "")
		if rows, list := r.body["next"].([]any); !list || len(rows) != 0 || r.str("words") != words {
			t.Errorf("%s: %s", body, r.text)
		}
	}
	once := s.want(s.call("POST", "/v1/schedules/preview", token, `{"kind":"once","run_at":"2060-05-05T05:05:05+02:00","timezone":"Europe/Berlin"}`), 200, "")
	if rows := once.rows("next"); len(rows) != 1 || rows[0].str("at") != "2060-05-05T03:05:05Z" {
		t.Errorf("once: %s", once.text)
	}
}

func TestADryRunOfAScheduleSaysWhatItWouldDo(t *testing.T) {
	s := newStage(t)
	token := s.scheduler("acme")
	dry := func(body map[string]any) reply {
		t.Helper()
		return s.want(s.call("POST", "/v1/schedules?dry_run=true", token, body, "Idempotency-Key", "k"), 200, "")
	}
	plain := dry(daily(map[string]any{"timezone": "Africa/Lusaka", "task": map[string]any{"type": "report.write", "lane": "io", "estimated_cost_usd": 0.25}, "partitions": 4}))
	rows := plain.rows("next")
	clock := fmt.Sprintf("%02d:00", dailyHour)
	if plain.str("lane") != "io" || plain.str("kind") != "io" || plain.num("estimated_cost_usd") != 1 || plain.num("tasks") != 4 || len(plain.rows("refusals")) != 0 || len(rows) != 10 ||
		rows[0].str("at") != plain.str("estimated_start_at") || !strings.HasSuffix(rows[0].str("local"), "T"+clock+":00+02:00") || plain.str("words") != "At "+clock+" every day" {
		t.Errorf("plain: %s", plain.text)
	}
	if list := s.want(s.call("GET", "/v1/schedules?count=true", token, nil), 200, ""); list.at("total").num("value") != 0 {
		t.Errorf("it was made: %s", list.text)
	}
	s.want(s.call("POST", "/v1/schedules", token, daily(nil)), 201, "")
	for code, change := range map[string]map[string]any{
		"state_conflict":         {},
		"validation_failed":      {"name": "a", "task": map[string]any{"type": "a", "lane": "nowhere"}},
		"permission_not_allowed": {"name": "b", "task": map[string]any{"type": "a", "permissions": []string{"internet.search"}}},
	} {
		if r := dry(daily(change)); len(r.rows("refusals")) != 1 || r.rows("refusals")[0].str("code") != code {
			t.Errorf("%s: %s", code, r.text)
		}
	}
	for name, body := range map[string]map[string]any{
		"off":   daily(map[string]any{"name": "c", "enabled": false}),
		"event": {"name": "d", "kind": "event", "event": map[string]any{"name": "sale"}, "task": map[string]any{"type": "a"}},
	} {
		if r := dry(body); r.body["estimated_start_at"] != nil || r.str("words") == "" || r.str("lane") != "batch" {
			t.Errorf("%s: %s", name, r.text)
		}
	}
	s.refused(s.want(s.call("POST", "/v1/schedules?dry_run=true", token, daily(map[string]any{"expression": "61 * * * *"})), 422, "invalid_schedule"), "body.expression")
	s.want(s.call("POST", "/v1/schedules?dry_run=maybe", token, daily(nil)), 400, "invalid_query")
}

func TestADryRunOfATriggerSaysWhatWouldBecomeOfIt(t *testing.T) {
	s := newStage(t)
	token := s.messenger("acme")
	made := s.want(s.call("POST", "/v1/schedules", token, daily(map[string]any{"partitions": 3})), 201, "")
	path := "/v1/schedules/" + made.str("id") + "/trigger"
	dry := func(path string) reply {
		t.Helper()
		return s.want(s.call("POST", path+"?dry_run=true", token, nil), 200, "")
	}
	if r := dry(path); r.str("outcome") != "dispatched" || r.num("tasks") != 3 || r.str("lane") != "batch" || len(r.rows("refusals")) != 0 || r.body["cause"] != nil || r.num("taken") != 0 {
		t.Errorf("of an idle one: %s", r.text)
	}
	if runs := s.want(s.call("GET", "/v1/schedules/"+made.str("id")+"/runs", token, nil), 200, "").rows("data"); len(runs) != 0 {
		t.Errorf("it ran: %v", runs)
	}
	s.want(s.call("POST", path, token, nil), 201, "")
	for policy, want := range map[string][2]any{"skip": {"skipped_overlap", 0.0}, "queue_one": {nil, 0.0}, "allow": {"dispatched", 0.0}, "cancel_previous": {"dispatched", 1.0}} {
		s.want(s.call("PATCH", "/v1/schedules/"+made.str("id"), token, map[string]any{"overlap_policy": policy}), 200, "")
		if r := dry(path); r.body["outcome"] != want[0] || r.body["cancels"] != want[1] || r.body["cause"] == nil != (want[0] == "dispatched") {
			t.Errorf("%s: %s", policy, r.text)
		}
	}
	s.want(s.call("POST", "/v1/queues/mail/items", token, `{"items":[{},{},{}]}`), 202, "")
	drain := s.want(s.call("POST", "/v1/schedules", token, map[string]any{
		"name": "mailer", "kind": "drain", "drain": map[string]any{"queue": "mail", "batch_size": 2}, "task": map[string]any{"type": "a"}, "start_at": "2060-01-01T00:00:00Z",
	}), 201, "")
	for range 2 {
		if r := dry("/v1/schedules/" + drain.str("id") + "/trigger"); r.num("taken") != 3 || r.num("tasks") != 2 {
			t.Errorf("of a drain: %s", r.text)
		}
	}
	if r := s.want(s.call("GET", "/v1/queues/mail", token, nil), 200, ""); r.num("depth") != 3 {
		t.Errorf("it took %s", r.text)
	}
	s.want(s.call("POST", "/v1/schedules/sch_01j2h6m7kfe0vbn3w9r5t8xyza/trigger?dry_run=true", token, nil), 404, "not_found")
	s.want(s.call("POST", "/v1/tenants/acme/suspend", s.root, nil), 200, "")
	if r := dry(path); r.body["outcome"] != nil || len(r.rows("refusals")) != 1 || r.rows("refusals")[0].str("code") != "tenant_suspended" {
		t.Errorf("suspended: %s", r.text)
	}
}

// dailyHour is twelve hours away, so that no test of a daily schedule sees it run by itself, whenever it begins.
var (
	dailyHour = (time.Now().UTC().Hour() + 12) % 24
	dailyRule = fmt.Sprintf("0 %d * * *", dailyHour)
)

// onTheDay is when a daily schedule runs on a day, in UTC.
func onTheDay(date string) string { return fmt.Sprintf("%sT%02d:00:00Z", date, dailyHour) }

func daily(more map[string]any) map[string]any {
	body := map[string]any{"name": "nightly", "kind": "cron", "expression": dailyRule, "task": map[string]any{"type": "report.write", "payload": map[string]any{"for": "{{scheduled_for}}"}}}
	for name, value := range more {
		body[name] = value
	}
	return body
}

func TestAScheduleFromItsMakingToItsEnd(t *testing.T) {
	s := newStage(t)
	token := s.scheduler("acme")
	made := s.want(s.call("POST", "/v1/schedules", token, daily(map[string]any{"timezone": "Africa/Lusaka", "owner": "ops"}), "Idempotency-Key", "one"), 201, "")
	id := made.str("id")
	if made.header.Get("Location") != "/v1/schedules/"+id || made.str("timezone") != "Africa/Lusaka" || made.str("misfire_policy") != "run_once" || made.num("misfire_grace_seconds") != 60 ||
		made.num("catch_up_limit") != 100 || made.str("overlap_policy") != "skip" || made.str("dst_gap") != "shift" || made.str("dst_overlap") != "first" || made.body["enabled"] != true ||
		made.str("next_run_at") == "" || made.num("effective_every_seconds") != 86_400 || made.num("version") != 1 || made.body["last_run"] != nil || made.at("task").str("type") != "report.write" {
		t.Errorf("made: %s", made.text)
	}
	if again := s.want(s.call("POST", "/v1/schedules", token, daily(map[string]any{"timezone": "Africa/Lusaka", "owner": "ops"}), "Idempotency-Key", "one"), 201, ""); again.str("id") != id {
		t.Errorf("made again: %s", again.text)
	}
	s.want(s.call("POST", "/v1/schedules", token, daily(nil)), 409, "state_conflict")
	for _, name := range []string{id, "nightly"} {
		if r := s.want(s.call("GET", "/v1/schedules/"+name, token, nil), 200, ""); r.text != made.text || r.header.Get("ETag") != `"1"` {
			t.Errorf("read as %s: %s", name, r.text)
		}
	}
	path := "/v1/schedules/" + id
	later := fmt.Sprintf("30 %d * * *", dailyHour)
	edited := s.want(s.call("PATCH", path, token, `{"expression":"`+later+`","owner":null,"max_failures_in_a_row":3}`, "If-Match", `"1"`), 200, "")
	if edited.str("expression") != later || edited.body["owner"] != nil || edited.num("max_failures_in_a_row") != 3 || edited.str("timezone") != "Africa/Lusaka" || edited.header.Get("ETag") != `"2"` {
		t.Errorf("edited: %s", edited.text)
	}
	s.want(s.call("PATCH", path, token, `{"owner":"x"}`, "If-Match", `"1"`), 412, "stale")
	versions := s.want(s.call("GET", path+"/versions", token, nil), 200, "").rows("data")
	if len(versions) != 2 || versions[0].num("version") != 2 || len(versions[0].body["changed"].([]any)) != 3 || versions[1].str("expression") != dailyRule || versions[1].at("by").str("kind") != "key" {
		t.Errorf("versions: %v", versions)
	}
	back := s.want(s.call("POST", path+"/rollback", token, `{"version":1}`), 200, "")
	if back.str("expression") != dailyRule || back.str("owner") != "ops" || back.num("version") != 3 || back.body["max_failures_in_a_row"] != nil {
		t.Errorf("rolled back: %s", back.text)
	}
	s.refused(s.call("POST", path+"/rollback", token, `{"version":9}`), "body.version")
	paused := s.want(s.call("POST", path+"/pause", token, `{"reason":"holiday"}`), 200, "")
	if paused.body["enabled"] != false || paused.str("paused_by") == "" || paused.str("pause_reason") != "holiday" || paused.body["next_run_at"] != nil || paused.num("version") != 3 {
		t.Errorf("paused: %s", paused.text)
	}
	run := s.want(s.call("POST", path+"/trigger", token, nil, "Idempotency-Key", "now"), 201, "")
	if run.str("outcome") != "dispatched" || run.str("origin") != "manual:"+run.str("id") || run.str("result_state") != "ready" || run.str("task_id") == "" {
		t.Errorf("triggered: %s", run.text)
	}
	if again := s.want(s.call("POST", path+"/trigger", token, nil, "Idempotency-Key", "now"), 201, ""); again.str("id") != run.str("id") {
		t.Errorf("triggered again: %s", again.text)
	}
	task := s.task(token, run.str("task_id"))
	if task.str("schedule_id") != id || task.str("run_id") != run.str("id") || task.at("payload").str("for") != run.str("scheduled_for") {
		t.Errorf("its task: %s", task.text)
	}
	second := s.want(s.call("POST", path+"/trigger", token, `{"reason":"once more"}`), 201, "")
	if second.str("outcome") != "skipped_overlap" || second.str("cause") == "" || second.body["task_id"] != nil || second.body["result_state"] != nil {
		t.Errorf("triggered while it runs: %s", second.text)
	}
	if resumed := s.want(s.call("POST", path+"/resume", token, nil), 200, ""); resumed.body["enabled"] != true || resumed.body["paused_by"] != nil || resumed.str("next_run_at") == "" || resumed.at("last_run").str("run_id") != second.str("id") {
		t.Errorf("resumed: %s", resumed.text)
	}
	w := s.register(s.acme, nil)
	w.report(done(w.claim(1, 0)[0], "fine"))
	runs := s.want(s.call("GET", path+"/runs?order=asc&limit=1&count=true", token, nil), 200, "")
	if rows := runs.rows("data"); len(rows) != 1 || rows[0].str("result_state") != "succeeded" || rows[0].str("finished_at") == "" || runs.at("total").num("value") != 2 || runs.str("next_cursor") == "" {
		t.Errorf("the runs: %s", runs.text)
	}
	if r := s.want(s.call("GET", path, token, nil), 200, ""); r.str("last_success_at") == "" || r.body["p50_seconds"] == nil {
		t.Errorf("after its success: %s", r.text)
	}
	if list := s.want(s.call("GET", "/v1/schedules?count=true", token, nil), 200, ""); len(list.rows("data")) != 1 || list.at("total").num("value") != 1 {
		t.Errorf("the list: %s", list.text)
	}
	other := s.scheduler("blue")
	s.want(s.call("GET", path, other, nil), 404, "not_found")
	s.want(s.call("POST", path+"/trigger", other, nil), 404, "not_found")
	if list := s.want(s.call("GET", "/v1/schedules", other, nil), 200, ""); len(list.rows("data")) != 0 {
		t.Errorf("another tenant sees %s", list.text)
	}
	s.want(s.call("DELETE", path, token, nil, "If-Match", `"1"`), 412, "stale")
	s.want(s.call("DELETE", path, token, nil), 204, "")
	s.want(s.call("GET", path, token, nil), 404, "not_found")
	s.want(s.call("POST", "/v1/schedules", token, daily(nil)), 201, "")
}

// Why somebody did something stands in the audit, whatever it was.
func TestReasonsOfSchedulesAreKept(t *testing.T) {
	s := newStage(t)
	token := s.scheduler("acme")
	s.want(s.call("POST", "/v1/schedules", token, daily(nil)), 201, "")
	const path = "/v1/schedules/nightly"
	s.want(s.call("POST", path+"/trigger", token, `{"reason":"for trigger"}`), 201, "")
	s.want(s.call("POST", path+"/backfill", token, `{"from":"2026-01-01T00:00:00Z","to":"2026-01-01T00:00:01Z","reason":"for backfill"}`), 202, "")
	s.want(s.call("PATCH", path, token, `{"owner":"ops"}`), 200, "")
	s.want(s.call("POST", path+"/rollback", token, `{"version":1,"reason":"for rollback"}`), 200, "")
	s.refused(s.call("DELETE", path, token, `{"reason":"`+strings.Repeat("x", 501)+`"}`), "body.reason")
	s.refused(s.call("POST", path+"/rollback", token, `{"version":1,"reason":"`+strings.Repeat("x", 1001)+`"}`), "body.reason")
	s.want(s.call("DELETE", path, token, `{"reason":"for delete"}`), 204, "")
	for _, verb := range []string{"trigger", "backfill", "rollback", "delete"} {
		rows := s.want(s.call("GET", "/v1/audit?action=schedule."+verb, s.acme, nil), 200, "").rows("data")
		if len(rows) != 1 || rows[0].str("reason") != "for "+verb {
			t.Errorf("%s: %v", verb, rows)
		}
	}
}

func TestSchedulesAreListedByKindStateAndName(t *testing.T) {
	s := newStage(t)
	token := s.scheduler("acme")
	put := func(name string, more map[string]any) {
		body := daily(more)
		body["name"] = name
		s.want(s.call("POST", "/v1/schedules", token, body), 201, "")
	}
	for _, name := range []string{"report.a", "report.b", "100_a", "off"} {
		put(name, nil)
	}
	put("every", map[string]any{"kind": "interval", "expression": nil, "every_seconds": 86_400})
	s.want(s.call("POST", "/v1/schedules/report.a/pause", token, nil), 200, "")
	s.want(s.call("PATCH", "/v1/schedules/off", token, `{"enabled":false}`), 200, "")
	for query, want := range map[string]string{
		"kind=cron": "report.a report.b 100_a off", "kind=interval": "every", "kind=cron,interval": "report.a report.b 100_a off every", "kind=once": "",
		"enabled=false": "report.a off", "enabled=true": "report.b 100_a every", "q=REPORT": "report.a report.b", "q=_": "100_a", "q=%25": "",
		"enabled=false&q=report": "report.a", "kind=cron&enabled=true&q=a": "100_a",
	} {
		var names []string
		for at, more := "/v1/schedules?order=asc&limit=2&count=true&"+query, ""; ; {
			page := s.want(s.call("GET", at+more, token, nil), 200, "")
			for _, row := range page.rows("data") {
				names = append(names, row.str("name"))
			}
			if n := page.at("total").num("value"); int(n) != len(strings.Fields(want)) {
				t.Errorf("%s: %v in all", query, n)
			}
			if more = page.str("next_cursor"); more == "" {
				break
			}
			more = "&cursor=" + more
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
	if resumed := s.want(s.call("POST", "/v1/schedules/off/resume", token, nil), 200, ""); resumed.body["enabled"] != true {
		t.Errorf("resumed: %s", resumed.text)
	}
	if rows := s.want(s.call("GET", "/v1/schedules?enabled=true&q=off", token, nil), 200, "").rows("data"); len(rows) != 1 {
		t.Errorf("one that an operator lets go on is not listed as enabled: %v", rows)
	}
	for query, field := range map[string]string{"kind=weekly": "query.kind", "enabled=maybe": "query.enabled", "enabled=true,false": "query.enabled", "q=" + strings.Repeat("x", 129): "query.q"} {
		s.refused(s.call("GET", "/v1/schedules?"+query, token, nil), field)
	}
	first := s.want(s.call("GET", "/v1/schedules?limit=1&kind=cron", token, nil), 200, "").str("next_cursor")
	s.want(s.call("GET", "/v1/schedules?limit=1&kind=interval&cursor="+first, token, nil), 400, "invalid_cursor")
}

func TestAnIntervalFiresByItself(t *testing.T) {
	s := newStage(t)
	token := s.scheduler("acme")
	made := s.want(s.call("POST", "/v1/schedules", token, map[string]any{"name": "tick", "kind": "interval", "every_seconds": 1, "overlap_policy": "allow", "task": map[string]any{"type": "x"}}), 201, "")
	path := "/v1/schedules/" + made.str("id")
	var rows []reply
	s.await("two runs", func() bool {
		rows = s.want(s.call("GET", path+"/runs?order=asc", token, nil), 200, "").rows("data")
		return len(rows) >= 2
	})
	if rows[0].str("outcome") != "dispatched" || rows[0].str("origin") != "timer" || rows[0].num("late_seconds") > 60 || rows[0].str("task_id") == "" || rows[0].str("scheduled_for") == rows[1].str("scheduled_for") {
		t.Errorf("the runs: %v", rows)
	}
	events := s.want(s.call("GET", "/v1/events?name=schedule.fired", token, nil), 200, "").rows("data")
	if len(events) < 2 || events[0].str("schedule_id") != made.str("id") || events[0].str("task_id") == "" {
		t.Errorf("the events: %v", events)
	}
}

func TestSchedulesAreRefusedByTheFieldAtFault(t *testing.T) {
	s := newStage(t)
	token := s.scheduler("acme")
	task := func(more map[string]any) map[string]any {
		body := map[string]any{"type": "x"}
		for name, value := range more {
			body[name] = value
		}
		return map[string]any{"task": body}
	}
	for i, c := range []struct {
		change map[string]any
		field  string
	}{
		{map[string]any{"name": nil}, "body.name"},
		{map[string]any{"name": "Not A Name"}, "body.name"},
		{map[string]any{"kind": "weekly"}, "body.kind"},
		{map[string]any{"kind": "event"}, "body.expression"},
		{map[string]any{"kind": "weekly"}, "body.kind"},
		{map[string]any{"kind": "interval"}, "body.expression"},
		{map[string]any{"kind": "interval", "expression": nil, "every_seconds": 0}, "body.every_seconds"},
		{map[string]any{"kind": "once", "expression": nil}, "body.run_at"},
		{map[string]any{"kind": "once", "expression": nil, "run_at": "2020-01-01T00:00:00Z"}, "body.run_at"},
		{map[string]any{"expression": "0 0 31 4 *"}, "body.expression"},
		{map[string]any{"timezone": "Nowhere/City"}, "body.timezone"},
		{map[string]any{"misfire_policy": "always"}, "body.misfire_policy"},
		{map[string]any{"catch_up_limit": 1001}, "body.catch_up_limit"},
		{map[string]any{"overlap_policy": "often"}, "body.overlap_policy"},
		{map[string]any{"calendar_exclude": []string{"tomorrow"}}, "body.calendar_exclude"},
		{map[string]any{"start_at": "2030-01-01T00:00:00Z", "end_at": "2029-01-01T00:00:00Z"}, "body.end_at"},
		{map[string]any{"partitions": 1001}, "body.partitions"},
		{map[string]any{"flexible_seconds": 86_401}, "body.flexible_seconds"},
		{map[string]any{"complete_within_seconds": 0}, "body.complete_within_seconds"},
		{map[string]any{"runbook_url": "ftp:x"}, "body.runbook_url"},
		{map[string]any{"colour": "red"}, "body.colour"},
		{map[string]any{"task": nil}, "body.task"},
		{task(map[string]any{"type": nil}), "body.task.type"},
		{task(map[string]any{"priority": 101}), "body.task.priority"},
		{task(map[string]any{"run_at": "2030-01-01T00:00:00Z"}), "body.task.run_at"},
		{task(map[string]any{"idempotency_key": "k"}), "body.task.idempotency_key"},
		{task(map[string]any{"payload": "{{vars.city}}"}), "body.task.payload"},
		{task(map[string]any{"lane": "nowhere"}), "body.task.lane"},
	} {
		r := s.call("POST", "/v1/schedules", token, daily(c.change))
		if r.status != 422 {
			t.Errorf("%d: %v: %d %s", i, c.change, r.status, r.text)
			continue
		}
		s.refused(r, c.field)
	}
	s.want(s.call("POST", "/v1/schedules", s.acme, daily(nil)), 403, "scope_required")
	s.want(s.call("GET", "/v1/schedules/nothing", token, nil), 404, "not_found")
	s.want(s.call("POST", "/v1/schedules/sch_x/trigger", token, nil), 404, "not_found")
}

func TestABackfillIsCountedFirst(t *testing.T) {
	s := newStage(t)
	token := s.scheduler("acme")
	made := s.want(s.call("POST", "/v1/schedules", token, daily(map[string]any{"calendar_exclude": []string{"2026-01-03"}})), 201, "")
	path := "/v1/schedules/" + made.str("id") + "/backfill"
	ask := map[string]any{"from": onTheDay("2026-01-01"), "to": onTheDay("2026-01-05"), "overlap": "allow", "dry_run": true}
	if r := s.want(s.call("POST", path, token, ask), 200, ""); r.num("matched") != 5 || r.body["id"] != nil {
		t.Errorf("counted: %s", r.text)
	}
	ask["dry_run"] = false
	r := s.want(s.call("POST", path, token, ask, "Idempotency-Key", "b"), 202, "")
	if r.num("matched") != 5 || r.str("id") == "" {
		t.Errorf("made: %s", r.text)
	}
	if again := s.want(s.call("POST", path, token, ask, "Idempotency-Key", "b"), 202, ""); again.str("id") != r.str("id") {
		t.Errorf("made again: %s", again.text)
	}
	became := s.want(s.call("GET", r.header.Get("Location"), token, nil), 200, "")
	if became.str("id") != r.str("id") || became.str("action") != "backfill" || became.str("state") != "done" || became.num("matched") != 5 || became.num("done") != 5 || became.num("failed") != 0 {
		t.Errorf("what became of it: %s", became.text)
	}
	s.want(s.call("GET", r.header.Get("Location"), s.blue, nil), 404, "not_found")
	s.want(s.call("POST", r.header.Get("Location")+"/cancel", s.acme, nil), 409, "state_conflict")
	rows := s.want(s.call("GET", "/v1/schedules/nightly/runs?order=asc", token, nil), 200, "").rows("data")
	if len(rows) != 5 || rows[0].str("scheduled_for") != onTheDay("2026-01-01") || rows[0].str("origin") != "backfill:"+r.str("id") || rows[2].str("outcome") != "excluded" || rows[4].str("outcome") != "dispatched" {
		t.Errorf("the runs: %v", rows)
	}
	for body, field := range map[string]string{
		`{"to":"2026-01-01T00:00:00Z"}`:                                                  "body.from",
		`{"from":"2026-01-02T00:00:00Z","to":"2026-01-01T00:00:00Z"}`:                    "body.to",
		`{"from":"2026-01-02T00:00:00Z","to":"2999-01-01T00:00:00Z"}`:                    "body.to",
		`{"from":"2026-01-02T00:00:00Z","to":"2026-01-03T00:00:00Z","overlap":"always"}`: "body.overlap",
		`{"from":"2000-01-02T00:00:00Z","to":"2026-01-03T00:00:00Z"}`:                    "body.to",
	} {
		s.refused(s.call("POST", path, token, body), field)
	}
}
