package api_test

import (
	"testing"
	"time"
)

func TestASubmitSaysWhetherItsMomentCanBeKept(t *testing.T) {
	s := newStage(t)
	past := time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)
	for _, c := range []struct {
		name  string
		task  map[string]any
		want  any
		start bool // whether estimated_start_at is told
	}{
		{"no moment", map[string]any{"type": "a"}, nil, false},
		{"no worker", map[string]any{"type": "a", "expires_in_seconds": 60}, nil, true},
		{"a deadline that has passed", map[string]any{"type": "a", "deadline": past}, false, true},
		{"more work than time", map[string]any{"type": "a", "estimated_seconds": 600, "deadline": time.Now().Add(time.Minute).UTC().Format(time.RFC3339)}, false, true},
	} {
		made := s.want(s.call("POST", "/v1/tasks", s.acme, c.task), 201, "")
		if got, there := made.body["feasible"]; there != (c.want != nil) || got != c.want {
			t.Errorf("%s: feasible is %v (%v), want %v", c.name, got, there, c.want)
		}
		if at, there := made.body["estimated_start_at"]; there != c.start || at != nil {
			t.Errorf("%s: estimated_start_at is %v (%v)", c.name, at, there)
		}
		dry := s.want(s.call("POST", "/v1/tasks?dry_run=true", s.acme, c.task), 200, "")
		if got, there := dry.body["feasible"]; !there || got != c.want {
			t.Errorf("%s: a dry run says feasible %v (%v), want %v", c.name, got, there, c.want)
		}
	}
	s.register(s.acme, nil)
	task := map[string]any{"type": "a", "estimated_seconds": 1, "deadline": time.Now().Add(time.Hour).UTC().Format(time.RFC3339)}
	made := s.want(s.call("POST", "/v1/tasks", s.acme, task, "Idempotency-Key", "k"), 201, "")
	if made.body["feasible"] != true || made.str("estimated_start_at") == "" {
		t.Errorf("an hour for a second of work: %s", made.text)
	}
	if again := s.want(s.call("POST", "/v1/tasks", s.acme, task, "Idempotency-Key", "k"), 201, ""); again.text != made.text {
		t.Errorf("replayed as %s", again.text)
	}
	if read := s.task(s.acme, made.str("id")); read.body["feasible"] != nil {
		t.Errorf("what was foreseen is no property of the task: %s", read.text)
	}
}

func TestBodiesSayWhichMomentsCanBeKept(t *testing.T) {
	s := newStage(t)
	s.register(s.acme, nil)
	soon, late := time.Now().Add(time.Minute).UTC().Format(time.RFC3339), time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	task := func(key, deadline string) map[string]any {
		out := map[string]any{"type": "a", "estimated_seconds": 600}
		if key != "" {
			out["key"] = key
		}
		if deadline != "" {
			out["deadline"] = deadline
		}
		return out
	}
	rows := s.want(s.call("POST", "/v1/tasks/batch", s.acme, map[string]any{"tasks": []any{task("", ""), task("", soon), task("", late)}}), 201, "").rows("data")
	for i, want := range []any{nil, false, true} {
		_, told := rows[i].body["estimated_start_at"]
		if rows[i].body["feasible"] != want || told != (want != nil) {
			t.Errorf("row %d: %v, want %v", i, rows[i].body, want)
		}
	}
	many := []any{}
	for range 17 {
		many = append(many, task("", late))
	}
	rows = s.want(s.call("POST", "/v1/tasks/batch", s.acme, map[string]any{"tasks": many}), 201, "").rows("data")
	if rows[15].body["feasible"] != true || rows[16].body["feasible"] != nil {
		t.Errorf("so many are looked at: %v, %v", rows[15].body, rows[16].body)
	}
	for _, c := range []struct {
		tasks []any
		want  any
		late  int
	}{
		{[]any{task("a", "")}, nil, 0},
		{[]any{task("a", late), task("b", "")}, true, 0},
		{[]any{task("a", late), task("b", soon), task("c", soon)}, false, 2},
	} {
		r := s.want(s.call("POST", "/v1/workflows", s.acme, map[string]any{"name": "w", "tasks": c.tasks}), 201, "")
		keys, _ := r.body["infeasible"].([]any)
		if r.body["feasible"] != c.want || len(keys) != c.late {
			t.Errorf("%v: %s", c.tasks, r.text)
		}
		if read := s.want(s.call("GET", r.header.Get("Location"), s.acme, nil), 200, ""); read.body["feasible"] != nil {
			t.Errorf("what was foreseen is no property of the workflow: %s", read.text)
		}
	}
}
