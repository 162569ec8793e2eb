package api_test

import (
	"fmt"
	"strings"
	"testing"
)

// A text that was cut in the midst of a character holds half of a surrogate pair. Whoever submits one is told where it stands;
// a worker's report of it is taken with all that stands beside it, and whoever reads it can read it.
func TestHalfACharacterLosesNoWork(t *testing.T) {
	s := newStage(t)
	a := s.admin("acme")
	const half = `"cut \ud83d"`
	for path, c := range map[string]struct{ body, at string }{
		"/v1/tasks":       {`{"type":"a","payload":{"text":%s}}`, "body.payload"},
		"/v1/tasks ":      {`{"type":"a","description":%s}`, "body.description"},
		"/v1/tasks  ":     {`{"type":"a","labels":{"k":%s}}`, "body.labels.k"},
		"/v1/tasks/batch": {`{"tasks":[{"type":"a"},{"type":"a","payload":[%s]}]}`, "body.tasks[1].payload"},
		"/v1/workflows":   {`{"name":"n","tasks":[{"key":"k","type":"a","payload":{%s:1}}]}`, "body.tasks[0].payload"},
		"/v1/workflows ":  {`{"name":%s,"tasks":[{"key":"k","type":"a"}]}`, "body.name"},
		"/v1/batches":     {`{"name":"n","task":{"type":"a"},"items":[1,%s]}`, "body.items[1]"},
		"/v1/batches ":    {`{"name":"n","task":{"type":"a","payload":{"a":%s}},"items":[1]}`, "body.task.payload"},
		"/v1/schedules":   {`{"name":"n","kind":"cron","expression":"@daily","task":{"type":"a","payload":%s}}`, "body.task.payload"},
	} {
		r := s.call("POST", strings.TrimSpace(path), a, fmt.Sprintf(c.body, half))
		s.refused(r, c.at)
		if s.want(r, 422, "validation_failed"); len(r.rows("errors")) != 1 || !strings.Contains(r.text, "surrogate") {
			t.Errorf("%s: %s", path, r.text)
		}
	}
	if rows := s.want(s.call("GET", "/v1/tasks", s.acme, nil), 200, "").rows("data"); len(rows) != 0 {
		t.Errorf("refused and made all the same: %v", rows)
	}

	w := s.register(s.acme, nil)
	for range 4 {
		s.submit(s.acme, map[string]any{"type": "a", "on_attempts_exhausted": "fail", "retry_policy": map[string]any{"max_attempts": 1}})
	}
	leases := w.claim(4, 5)
	beat := s.want(w.call("heartbeat", fmt.Sprintf(`{"leases":[{"lease_token":%q,"progress":%s,"checkpoint":{"at":%s}},{"lease_token":%q},{"lease_token":%q},{"lease_token":%q}]}`,
		leases[0].str("lease_token"), half, half, leases[1].str("lease_token"), leases[2].str("lease_token"), leases[3].str("lease_token"))), 200, "")
	if rows := beat.rows("leases"); len(rows) != 4 || rows[0].str("state") != "ok" {
		t.Errorf("beaten: %s", beat.text)
	}
	if r := s.task(s.acme, leases[0].str("task_id")); r.str("progress") != "cut \uFFFD" {
		t.Errorf("progress: %s", r.text)
	}
	answer := s.want(w.call("results", fmt.Sprintf(`{"results":[{"lease_token":%q,"status":"succeeded","result":{"text":%s}},{"lease_token":%q,"status":"succeeded","result":2},
		{"lease_token":%q,"status":"failed","error":{"class":%s,"message":%s,"stack":%s,"provider_response":{"body":%s}}}]}`,
		leases[0].str("lease_token"), half, leases[1].str("lease_token"), leases[2].str("lease_token"), half, half, half, half)), 200, "")
	for i, state := range []string{"succeeded", "succeeded", "failed"} {
		if row := answer.rows("results")[i]; row.body["accepted"] != true || row.str("state") != state {
			t.Errorf("result %d: %s", i, answer.text)
		}
	}
	s.want(s.call("POST", "/v1/tasks/"+leases[3].str("task_id")+"/complete", s.acme, `{"result":`+half+`}`, "Nightshift-Lease", leases[3].str("lease_token")), 200, "")
	for i, want := range []string{`{"text":"cut \ufffd"}`, `2`, `cut �`, `"cut \ufffd"`} {
		if r := s.task(s.acme, leases[i].str("task_id")); !strings.Contains(strings.ReplaceAll(r.text, `\uFFFD`, `\ufffd`), want) || strings.Contains(r.text, `\ud83d`) {
			t.Errorf("task %d: want %s in %s", i, want, r.text)
		}
	}
	if r := s.want(s.call("GET", "/v1/tasks/"+leases[2].str("task_id")+"/attempts", s.acme, nil), 200, ""); strings.Contains(r.text, `\ud83d`) {
		t.Errorf("its evidence: %s", r.text)
	}
}
