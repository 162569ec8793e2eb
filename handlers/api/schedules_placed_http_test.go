package api_test

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// What a jitter places later is answered with the moment it waits for.
func TestAPlacedRunSaysWhenItStarts(t *testing.T) {
	s := newStage(t)
	token := s.scheduler("acme")
	s.want(s.call("POST", "/v1/schedules", token, daily(map[string]any{"timezone": "", "jitter_seconds": 86_400, "overlap_policy": "allow"})), 201, "")
	if r := s.want(s.call("GET", "/v1/schedules/nightly", token, nil), 200, ""); r.str("timezone") != "UTC" {
		t.Errorf("no zone is named: %s", r.text)
	}
	s.want(s.call("POST", "/v1/schedules", token, map[string]any{"name": "often", "kind": "interval", "every_seconds": 1, "jitter_seconds": 86_400, "task": map[string]any{"type": "a"}}), 201, "")
	s.await("a run", func() bool { return slices.Contains(s.outcomes(token, "often"), "dispatched") })
	runs := s.want(s.call("GET", "/v1/schedules/often/runs?order=asc", token, nil), 200, "").rows("data")
	task := s.want(s.call("GET", "/v1/tasks/"+runs[0].str("task_id"), token, nil), 200, "")
	at, err := time.Parse(time.RFC3339, task.str("run_at"))
	meant, _ := time.Parse(time.RFC3339, runs[0].str("scheduled_for"))
	if late := at.Sub(meant); err != nil || late < 0 || late > 25*time.Hour {
		t.Errorf("it waits for run_at: %s", task.text)
	}
	// What the column of a template can't hold is refused under the name of its field, before it reaches the brain.
	for _, work := range []string{`"task":{"type":"a","payload":{"a":"\ud800"}}`, `"task":{"type":"a","description":"a\udc00b"}`, `"workflow":{"name":"w","tasks":[{"key":"a","type":"a","payload":{"\ud800":1}}]}`} {
		r := s.want(s.call("POST", "/v1/schedules", token, `{"name":"half","kind":"cron","expression":"@daily",`+work+`}`), 422, "validation_failed")
		if !strings.Contains(r.text, `"location":"body.`+strings.Split(work, `"`)[1]) || strings.Contains(r.text, "SQLSTATE") {
			t.Errorf("%s: %s", work, r.text)
		}
	}
	// By hand nothing is placed: it starts at once and says no such moment.
	run := s.want(s.call("POST", "/v1/schedules/nightly/trigger", token, nil), 201, "")
	if task := s.want(s.call("GET", "/v1/tasks/"+run.str("task_id"), token, nil), 200, ""); task.str("state") == "ready" && task.body["run_at"] != nil {
		t.Errorf("by hand: %s", task.text)
	}
}
