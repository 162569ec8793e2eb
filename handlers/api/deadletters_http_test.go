package api_test

import (
	"strings"
	"testing"
)

func TestDeadLettersAreRedrivenAndDiscarded(t *testing.T) {
	s := newStage(t)
	w := s.register(s.acme, map[string]any{"version": "v7"})
	var tasks []any
	for range 6 {
		tasks = append(tasks, map[string]any{"type": "a.one", "payload": map[string]any{"p": 1}})
	}
	tasks = append(tasks, map[string]any{"type": "b.two"})
	rows := s.want(s.call("POST", "/v1/tasks/batch", s.acme, map[string]any{"tasks": tasks}), 201, "").rows("data")
	for _, lease := range w.claim(10, 5) {
		w.report(failed(lease, "invalid_input"))
	}
	groups := s.want(s.call("GET", "/v1/dead-letters?count=true", s.acme, nil), 200, "")
	if len(groups.rows("data")) != 2 || groups.at("total").num("value") != 2 {
		t.Fatalf("groups %s", groups.text)
	}
	page := s.want(s.call("GET", "/v1/dead-letters?limit=1", s.acme, nil), 200, "")
	rest := s.want(s.call("GET", "/v1/dead-letters?limit=1&cursor="+page.str("next_cursor"), s.acme, nil), 200, "")
	if len(rest.rows("data")) != 1 || rest.rows("data")[0].str("fingerprint") == page.rows("data")[0].str("fingerprint") || rest.body["next_cursor"] != nil {
		t.Errorf("pages %s %s", page.text, rest.text)
	}
	var group reply
	for _, g := range groups.rows("data") {
		if g.num("count") == 6 {
			group = g
		}
	}
	if group.at("sample").at("error").str("class") != "invalid_input" || group.str("first_seen_at") == "" {
		t.Errorf("group %v", group)
	}
	fingerprint := group.str("fingerprint")
	dead := s.want(s.call("GET", "/v1/dead-letters/tasks?fingerprint="+fingerprint, s.acme, nil), 200, "").rows("data")
	for _, d := range dead {
		for _, name := range []string{"class", "message", "stack", "provider_response"} {
			if _, there := d.at("error").body[name]; !there {
				t.Errorf("the evidence lacks %s: %v", name, d.body["error"])
			}
		}
	}
	if len(dead) != 6 {
		t.Fatalf("%d dead letters", len(dead))
	}
	d := dead[0]
	if d.str("reason") == "" || d.at("error").str("message") != "it broke" || len(d.rows("attempts")) != 1 || d.rows("attempts")[0].str("worker_version") != "v7" ||
		len(d.at("input").str("payload_sha256")) != 64 || d.at("input").num("bytes") != 7 || d.str("fingerprint") != fingerprint {
		t.Errorf("evidence %v", d.body)
	}
	if _, there := d.body["decision"]; !there {
		t.Error("no decision")
	}
	if rows := s.want(s.call("GET", "/v1/dead-letters", s.blue, nil), 200, "").rows("data"); len(rows) != 0 {
		t.Errorf("another tenant sees %v", rows)
	}

	ids := []string{rows[0].str("id"), rows[1].str("id")}
	if r := s.want(s.call("POST", "/v1/dead-letters/redrive", s.acme, map[string]any{"task_ids": ids, "dry_run": true}), 200, ""); r.num("matched") != 2 {
		t.Errorf("dry run %s", r.text)
	}
	bulk := s.want(s.call("POST", "/v1/dead-letters/redrive", s.acme, map[string]any{"task_ids": ids, "reason": "fixed"}), 202, "")
	if bulk.num("matched") != 2 || bulk.num("done") != 2 || bulk.str("state") != "done" {
		t.Errorf("bulk %s", bulk.text)
	}
	if r := s.want(s.call("GET", bulk.header.Get("Location"), s.acme, nil), 200, ""); r.num("done") != 2 {
		t.Errorf("bulk action %s", r.text)
	}
	s.want(s.call("GET", bulk.header.Get("Location"), s.blue, nil), 404, "not_found")
	if got := s.task(s.acme, ids[0]); got.str("state") != "ready" || got.num("attempts_used") != 0 {
		t.Errorf("redriven %s", got.text)
	}
	bulk = s.want(s.call("POST", "/v1/dead-letters/discard", s.acme, map[string]any{"fingerprint": fingerprint, "reason": "hopeless"}), 202, "")
	if bulk.num("matched") != 4 {
		t.Errorf("bulk %s", bulk.text)
	}
	s.await("the bulk action", func() bool {
		return s.want(s.call("GET", "/v1/bulk-actions/"+bulk.str("id"), s.acme, nil), 200, "").str("state") == "done"
	})
	if r := s.want(s.call("GET", "/v1/bulk-actions/"+bulk.str("id"), s.acme, nil), 200, ""); r.num("done") != 4 || r.str("action") != "discard" {
		t.Errorf("bulk action %s", r.text)
	}
	if got := s.task(s.acme, rows[5].str("id")); got.str("state") != "failed" {
		t.Errorf("discarded %s", got.text)
	}

	for text, location := range map[string]string{
		`{}`:                               "body",
		`{"task_ids":[],"reason":"r"}`:     "body.task_ids",
		`{"task_ids":["x"],"reason":"r"}`:  "body.task_ids[0]",
		`{"fingerprint":"x","reason":"r"}`: "body.fingerprint",
		`{"fingerprint":"` + fingerprint + `","filter":{}}`: "body",
		`{"fingerprint":"` + fingerprint + `","why":1}`:     "body.why",
	} {
		s.refused(s.call("POST", "/v1/dead-letters/redrive", s.acme, text), location)
	}
	s.refused(s.call("POST", "/v1/dead-letters/discard", s.acme, `{"fingerprint":"`+fingerprint+`"}`), "body.reason")
	s.refused(s.call("GET", "/v1/dead-letters/tasks?fingerprint="+strings.Repeat("Z", 32), s.acme, nil), "query.fingerprint")
}

// Why a dead letter stopped retrying is said as it was: of its total timeout, of its class's own attempts, of what its worker
// reported.
func TestADeadLetterSaysWhyItStopped(t *testing.T) {
	s := newStage(t)
	w := s.register(s.acme, nil)
	policy := func(more map[string]any) map[string]any {
		more["initial_delay_seconds"], more["jitter"] = 0, false
		return map[string]any{"retry_policy": more}
	}
	for _, c := range []struct {
		name, class, want, died string
		task                    map[string]any
		attempts                int
	}{
		{"its class has attempts of its own", "network", "its retry policy gives errors of the class network 2 attempts", "network", policy(map[string]any{"max_attempts": 1, "classes": map[string]any{"network": map[string]any{"max_attempts": 2}}}), 2},
		{"all failed", "internal", "all of its 2 attempts failed", "internal", policy(map[string]any{"max_attempts": 2}), 2},
		{"a class that a worker reports", "worker_lost", "all of its 1 attempt failed", "worker_lost", policy(map[string]any{"max_attempts": 1}), 1},
		{"permanent", "not_found", "an error of the class not_found is not retried", "not_found", map[string]any{}, 1},
		{
			"its time was over while it waited", "network", "all its attempts and waits took longer than its total timeout of 1 s", "timeout",
			map[string]any{"timeout": map[string]any{"total_seconds": 1}, "retry_policy": map[string]any{"initial_delay_seconds": 600, "max_delay_seconds": 600, "jitter": false}},
			1,
		},
		{"its time was over while it ran", "", "all its attempts and waits took longer than its total timeout of 1 s", "timeout", map[string]any{"timeout": map[string]any{"total_seconds": 1}}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.task["type"] = "why"
			id := s.submit(s.acme, c.task).str("id")
			for range c.attempts {
				lease := w.claim(1, 20)[0]
				if c.class != "" {
					w.report(failed(lease, c.class))
				}
			}
			s.await("the task is a dead letter", func() bool { return s.task(s.acme, id).str("state") == "dead_letter" })
			d := s.want(s.call("GET", "/v1/dead-letters/tasks?limit=1", s.acme, nil), 200, "").rows("data")[0]
			if d.str("id") != id || d.str("reason") != c.want || d.at("error").str("class") != c.died {
				t.Errorf("%s: %s, of the class %s, want %s", d.str("id"), d.str("reason"), d.at("error").str("class"), c.want)
			}
			if e := s.task(s.acme, id).at("error"); e.str("class") != c.died || c.died == "timeout" && e.str("message") != c.want {
				t.Errorf("the task's error: %v", e.body)
			}
		})
	}
}
