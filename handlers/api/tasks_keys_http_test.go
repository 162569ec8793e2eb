package api_test

import (
	"fmt"
	"testing"
	"time"
)

// A task with several keys holds all of them; the lock of each names it, and ending one ends its lease.
func TestSeveralKeysOverHTTP(t *testing.T) {
	s := newStage(t)
	w := s.register(s.acme, nil)
	both := map[string]any{"type": "a", "concurrency": []any{map[string]any{"key": "account/42"}, map[string]any{"key": "bank", "limit": 2}}}
	first := s.submit(s.acme, both)
	if rows := first.rows("concurrency"); len(rows) != 2 || rows[0].str("key") != "account/42" || rows[1].num("limit") != 2 {
		t.Errorf("answered %v", rows)
	}
	second := s.submit(s.acme, map[string]any{"type": "a", "concurrency_key": "bank", "concurrency_limit": 2}).str("id")
	third := s.submit(s.acme, both).str("id")
	if leases := w.claim(5, 5); len(leases) != 2 || leases[0].str("task_id") != first.str("id") || leases[1].str("task_id") != second {
		t.Fatalf("claimed %v", leases)
	}
	why := s.want(s.call("GET", "/v1/tasks/"+third+"/explain", s.acme, nil), 200, "").rows("blocked_by")
	if len(why) != 2 || why[0].str("reason") != "concurrency_key" || why[0].str("key") != "account/42" || fmt.Sprint(why[0].body["holders"]) != "["+first.str("id")+"]" ||
		why[1].str("key") != "bank" || len(why[1].body["holders"].([]any)) != 2 {
		t.Errorf("explained by %v", why)
	}
	locks := s.want(s.call("GET", "/v1/locks", s.acme, nil), 200, "").rows("data")
	if len(locks) != 2 || locks[0].str("key") != "account/42" || locks[1].str("key") != "bank" || len(locks[1].rows("holders")) != 2 || locks[1].num("waiters") != 1 {
		t.Errorf("held are %v", locks)
	}
	s.want(s.call("DELETE", "/v1/locks/account%2F42", s.acme, nil), 204, "")
	if locks = s.want(s.call("GET", "/v1/locks", s.acme, nil), 200, "").rows("data"); len(locks) != 1 || len(locks[0].rows("holders")) != 1 {
		t.Errorf("held are then %v", locks)
	}
	if lease := w.claim(1, 5); len(lease) != 1 || lease[0].str("task_id") != first.str("id") {
		t.Errorf("claimed then %v", lease)
	}
}

// A watermark is one more key, beside others.
func TestAWatermarkBesideAKey(t *testing.T) {
	s := newStage(t)
	w := s.register(s.acme, nil)
	s.want(s.call("PUT", "/v1/watermarks/docs", s.acme, `{"value":1}`), 201, "")
	body := map[string]any{"type": "a", "watermark": "docs", "concurrency_key": "account:42"}
	task := s.submit(s.acme, body)
	if rows := task.rows("concurrency"); len(rows) != 2 || task.str("watermark") != "docs" {
		t.Errorf("answered %s", task.text)
	}
	s.submit(s.acme, map[string]any{"type": "a", "watermark": "docs"})
	s.submit(s.acme, map[string]any{"type": "a", "concurrency_key": "account:42"})
	leases := w.claim(5, 5)
	if len(leases) != 1 || leases[0].at("watermark").num("value") != 1 {
		t.Fatalf("claimed %v", leases)
	}
	w.report(map[string]any{"lease_token": leases[0].str("lease_token"), "status": "succeeded", "watermark": map[string]any{"value": 2}})
	if r := s.want(s.call("GET", "/v1/watermarks/docs", s.acme, nil), 200, ""); r.num("value") != 2 {
		t.Errorf("moved to %s", r.text)
	}
	if leases = w.claim(5, 5); len(leases) != 2 {
		t.Errorf("both keys are free, claimed %v", leases)
	}
}

// Ordered tasks of a key run one after the other, whatever their priority; a dead one holds those behind it.
func TestOrderedOverHTTP(t *testing.T) {
	s := newStage(t)
	w := s.register(s.acme, nil)
	var ids []string
	for i := range 3 {
		task := s.submit(s.acme, map[string]any{"type": "a", "concurrency_key": "account:42", "ordered": true, "priority": 10 * i, "retry_policy": map[string]any{"max_attempts": 1}})
		if task.body["ordered"] != true {
			t.Fatalf("answered %s", task.text)
		}
		ids = append(ids, task.str("id"))
	}
	lease := w.claim(3, 5)
	if len(lease) != 1 || lease[0].str("task_id") != ids[0] {
		t.Fatalf("claimed %v", lease)
	}
	w.report(map[string]any{"lease_token": lease[0].str("lease_token"), "status": "failed", "error": map[string]any{"class": "internal"}})
	if lease = w.claim(3, 0); len(lease) != 0 {
		t.Errorf("a dead letter lets %v pass", lease)
	}
	why := s.want(s.call("GET", "/v1/tasks/"+ids[1]+"/explain", s.acme, nil), 200, "").rows("blocked_by")
	if len(why) != 1 || why[0].str("reason") != "concurrency_key" || fmt.Sprint(why[0].body["holders"]) != "["+ids[0]+"]" {
		t.Errorf("explained by %v", why)
	}
	locks := s.want(s.call("GET", "/v1/locks", s.acme, nil), 200, "").rows("data")
	if len(locks) != 1 || locks[0].rows("holders")[0].str("task_id") != ids[0] || locks[0].num("waiters") != 2 {
		t.Errorf("held are %v", locks)
	}
	s.want(s.call("DELETE", "/v1/locks/account:42", s.acme, nil), 409, "state_conflict")
	s.want(s.call("POST", "/v1/tasks/"+ids[0]+"/discard", s.acme, `{"reason":"given up"}`), 200, "")
	for _, id := range ids[1:] {
		lease = w.claim(3, 5)
		if len(lease) != 1 || lease[0].str("task_id") != id {
			t.Fatalf("claimed %v, not %s", lease, id)
		}
		w.report(map[string]any{"lease_token": lease[0].str("lease_token"), "status": "succeeded"})
	}
}

func TestRateLimitsOverHTTP(t *testing.T) {
	s := newStage(t)
	s.want(s.call("GET", "/v1/rate-limits/bank:tink", s.acme, nil), 404, "not_found")
	s.want(s.call("DELETE", "/v1/rate-limits/bank:tink", s.acme, nil), 404, "not_found")
	for text, at := range map[string]string{
		`{"per_seconds":60}`: "body.limit", `{"limit":5}`: "body.per_seconds", `{"limit":0,"per_seconds":60}`: "body.limit",
		`{"limit":5,"per_seconds":0}`: "body.per_seconds", `{"limit":5,"per_seconds":60,"burst":0}`: "body.burst",
		`{"limit":5,"per_seconds":60,"speed":1}`: "body.speed", `{"limit":"5","per_seconds":60}`: "body.limit",
	} {
		s.refused(s.call("PUT", "/v1/rate-limits/bank:tink", s.acme, text), at)
	}
	made := s.want(s.call("PUT", "/v1/rate-limits/bank:tink", s.acme, `{"limit":2,"per_seconds":3600}`), 201, "")
	if made.str("key") != "bank:tink" || made.num("limit") != 2 || made.num("per_seconds") != 3600 || made.num("burst") != 2 || made.header.Get("ETag") != `"1"` || made.header.Get("Location") != "/v1/rate-limits/bank:tink" {
		t.Errorf("made %s %v", made.text, made.header)
	}
	s.want(s.call("PUT", "/v1/rate-limits/bank:tink", s.acme, `{"limit":1,"per_seconds":60}`, "If-Match", `"7"`), 412, "stale")
	if r := s.want(s.call("PUT", "/v1/rate-limits/bank:tink", s.acme, `{"limit":2,"per_seconds":3600,"burst":1}`, "If-Match", `"1"`), 200, ""); r.num("burst") != 1 || r.num("version") != 2 {
		t.Errorf("set %s", r.text)
	}
	s.want(s.call("PUT", "/v1/rate-limits/a%2Fb", s.acme, `{"limit":1,"per_seconds":1}`), 201, "")
	page := s.want(s.call("GET", "/v1/rate-limits?limit=1&count=true", s.acme, nil), 200, "")
	if rows := page.rows("data"); len(rows) != 1 || rows[0].str("key") != "a/b" || page.at("total").num("value") != 2 {
		t.Errorf("the first page is %s", page.text)
	}
	page = s.want(s.call("GET", "/v1/rate-limits?limit=1&cursor="+page.str("next_cursor"), s.acme, nil), 200, "")
	if rows := page.rows("data"); len(rows) != 1 || rows[0].str("key") != "bank:tink" {
		t.Errorf("the second page is %s", page.text)
	}
	s.want(s.call("GET", "/v1/rate-limits/bank:tink", s.blue, nil), 404, "not_found")
	if rows := s.want(s.call("GET", "/v1/rate-limits", s.blue, nil), 200, "").rows("data"); len(rows) != 0 {
		t.Errorf("another tenant sees %v", rows)
	}
	s.want(s.call("DELETE", "/v1/rate-limits/bank:tink", s.blue, nil), 404, "not_found")
	reader := s.scoped(s.acme, nil, "tasks:read")
	s.want(s.call("GET", "/v1/rate-limits/bank:tink", reader, nil), 200, "")
	s.want(s.call("PUT", "/v1/rate-limits/bank:tink", reader, `{"limit":1,"per_seconds":1}`), 403, "scope_required")
	s.want(s.call("DELETE", "/v1/rate-limits/bank:tink", reader, nil), 403, "scope_required")
	s.want(s.call("GET", "/v1/rate-limits?colour=red", s.acme, nil), 400, "invalid_query")
	s.want(s.call("DELETE", "/v1/rate-limits/bank:tink", s.acme, nil, "If-Match", `"1"`), 412, "stale")
	s.want(s.call("DELETE", "/v1/rate-limits/bank:tink", s.acme, nil, "If-Match", `"2"`), 204, "")
	s.want(s.call("GET", "/v1/rate-limits/bank:tink", s.acme, nil), 404, "not_found")
}

// Tasks start as often as their rate lets them; explain says when it opens, and lifting the limit lets the rest go.
func TestRateKeysOverHTTP(t *testing.T) {
	s := newStage(t)
	w := s.register(s.acme, nil)
	s.want(s.call("PUT", "/v1/rate-limits/bank", s.acme, `{"limit":2,"per_seconds":3600}`), 201, "")
	var last reply
	for range 4 {
		last = s.submit(s.acme, map[string]any{"type": "a", "rate_keys": []string{"bank", "free"}})
	}
	if fmt.Sprint(last.body["rate_keys"]) != "[bank free]" {
		t.Errorf("answered %s", last.text)
	}
	if leases := w.claim(9, 5); len(leases) != 2 {
		t.Fatalf("claimed %v", leases)
	}
	if leases := w.claim(9, 0); len(leases) != 0 {
		t.Fatalf("claimed more: %v", leases)
	}
	why := s.want(s.call("GET", "/v1/tasks/"+last.str("id")+"/explain", s.acme, nil), 200, "").rows("blocked_by")
	if len(why) != 1 || why[0].str("reason") != "rate_limit" || why[0].str("key") != "bank" {
		t.Fatalf("explained by %v", why)
	}
	if opens, err := time.Parse(time.RFC3339, why[0].str("opens_at")); err != nil || time.Until(opens) < 55*time.Minute || time.Until(opens) > 61*time.Minute {
		t.Errorf("opens at %v, %v", why[0].str("opens_at"), err)
	}
	s.want(s.call("DELETE", "/v1/rate-limits/bank", s.acme, nil), 204, "")
	if leases := w.claim(9, 5); len(leases) == 0 {
		t.Errorf("nothing starts after the limit is lifted")
	}
}
