package api_test

import (
	"testing"
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

func TestPreviewRefusesWithTheReason(t *testing.T) {
	s := newStage(t)
	token := s.scheduler("acme")
	for body, want := range map[string]struct{ code, field string }{
		`{}`:                          {"validation_failed", "body.expression"},
		`{"expression":"0 0 30 2 *"}`: {"invalid_schedule", "body.expression"},
		`{"expression":"61 * * * *"}`: {"invalid_schedule", "body.expression"},
		`{"expression":"@daily","timezone":"Mars/Olympus"}`:          {"invalid_schedule", "body.timezone"},
		`{"expression":"@daily","timezone":"Local"}`:                 {"invalid_schedule", "body.timezone"},
		`{"expression":"@daily","dst_gap":"jump"}`:                   {"invalid_schedule", "body.dst_gap"},
		`{"expression":"@daily","dst_overlap":"third"}`:              {"invalid_schedule", "body.dst_overlap"},
		`{"expression":"@daily","count":0}`:                          {"validation_failed", "body.count"},
		`{"expression":"@daily","count":1001}`:                       {"validation_failed", "body.count"},
		`{"expression":"@daily","from":"soon"}`:                      {"validation_failed", "body.from"},
		`{"expression":"@daily","every_seconds":5}`:                  {"validation_failed", "body.every_seconds"},
		`{"kind":"interval"}`:                                        {"validation_failed", "body.every_seconds"},
		`{"every_seconds":0}`:                                        {"invalid_schedule", "body.every_seconds"},
		`{"every_seconds":9223372036854775807}`:                      {"invalid_schedule", "body.every_seconds"},
		`{"kind":"event"}`:                                           {"validation_failed", "body.kind"},
		`{"expression":"@daily","colour":"red"}`:                     {"validation_failed", "body.colour"},
		`{"expression":"@daily","from":"2262-04-01T00:00:00Z"}`:      {"", ""},
		`{"expression":"*/7 3 L 2 MON#2","count":1000}`:              {"", ""},
		`{"expression":"0 0 29 2 *","from":"2100-01-01T00:00:00Z"}`:  {"", ""},
		`{"every_seconds":1,"count":1000}`:                           {"", ""},
		`{"expression":null,"kind":"interval","every_seconds":3600}`: {"", ""},
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
