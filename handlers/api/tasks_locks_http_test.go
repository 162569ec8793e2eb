package api_test

import "testing"

func TestLocksOverHTTP(t *testing.T) {
	s := newStage(t)
	w := s.register(s.acme, nil)
	body := map[string]any{"type": "a", "concurrency_key": "account/42"}
	first := s.submit(s.acme, body).str("id")
	s.submit(s.acme, body)
	token := w.claim(2, 5)[0].str("lease_token")
	rows := s.want(s.call("GET", "/v1/locks", s.acme, nil), 200, "").rows("data")
	if len(rows) != 1 || rows[0].str("key") != "account/42" || rows[0].num("limit") != 1 || rows[0].num("waiters") != 1 || rows[0].rows("holders")[0].str("task_id") != first {
		t.Errorf("held are %v", rows)
	}
	if rows = s.want(s.call("GET", "/v1/locks", s.blue, nil), 200, "").rows("data"); len(rows) != 0 {
		t.Errorf("another tenant sees %v", rows)
	}
	s.want(s.call("DELETE", "/v1/locks/account%2F42", s.blue, nil), 404, "not_found")
	s.want(s.call("DELETE", "/v1/locks/account%2F42", s.acme, nil), 204, "")
	if rows := w.report(map[string]any{"lease_token": token, "status": "succeeded"}); rows[0].str("code") != "lease_lost" {
		t.Errorf("the late report got %v", rows)
	}
	s.want(s.call("DELETE", "/v1/locks/account%2F42", s.acme, nil), 404, "not_found")
}

func TestAnUnknownOutcomeIsVerified(t *testing.T) {
	s := newStage(t)
	w := s.register(s.acme, nil)
	s.submit(s.acme, map[string]any{"type": "a", "retry_policy": map[string]any{"initial_delay_seconds": 0, "jitter": false}})
	lease := w.claim(1, 5)[0]
	if lease.body["verify"] != false {
		t.Errorf("claimed first %v", lease)
	}
	w.report(map[string]any{"lease_token": lease.str("lease_token"), "status": "failed", "error": map[string]any{"class": "outcome_unknown"}})
	if again := w.claim(1, 10); len(again) != 1 || again[0].body["verify"] != true {
		t.Errorf("claimed again %v", again)
	}
}
