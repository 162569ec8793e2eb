package api_test

import (
	"testing"
	"time"
)

// A task far back in its line is told its place there, and when its turn is expected, though the brain holds the first ones alone.
func TestATaskFarBackKnowsItsPlace(t *testing.T) {
	s := newStage(t)
	s.register(s.acme, map[string]any{"slots": 10})
	tasks := make([]map[string]any, 3000)
	for i := range tasks {
		tasks[i] = map[string]any{"type": "a", "estimated_seconds": 1}
	}
	made := s.want(s.call("POST", "/v1/tasks/batch", s.acme, map[string]any{"tasks": tasks}), 201, "").rows("data")
	for end := time.Now().Add(time.Minute); s.want(s.call("GET", "/v1/lanes/batch/stats", s.acme, nil), 200, "").num("depth") < 3000; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the body does not enter")
		}
	}
	first := s.want(s.call("POST", "/v1/tasks", s.acme, map[string]any{"type": "a", "priority": 51}), 202, "").str("id") // past the high-water mark
	explained := func(id string) reply { return s.want(s.call("GET", "/v1/tasks/"+id+"/explain", s.acme, nil), 200, "") }
	if r := explained(first); r.num("position") != 1 {
		t.Errorf("the first: %s", r.text)
	}
	places := map[float64]bool{}
	for _, i := range []int{0, 1500, 2999} {
		r := explained(made[i].str("id"))
		if at := r.num("position"); at < 2 || at > 3001 || places[at] {
			t.Errorf("task %d: %s", i, r.text)
		} else {
			places[at] = true
		}
	}
	before := time.Now()
	last := explained(made[2999].str("id"))
	at, err := time.Parse(time.RFC3339Nano, last.str("estimated_start_at"))
	if err != nil || last.num("position") < 2900 || at.Sub(before) < 200*time.Second {
		t.Errorf("the last of 3,001 on ten slots, a second each: %s", last.text)
	}
}
