package api_test

import (
	"fmt"
	"sync"
	"testing"
)

// Edits of one thing that come at the same time and name no version all stand, one after the other.
func TestEditsWithoutAVersionAreNeverStale(t *testing.T) {
	s := newStage(t)
	s.want(s.call("POST", "/v1/lanes", s.acme, `{"name":"busy","kind":"io"}`), 201, "")
	task := s.submit(s.acme, map[string]any{"type": "a"}).str("id")
	flow := s.want(s.call("POST", "/v1/workflows", s.acme, `{"name":"w","tasks":[{"key":"a","type":"a"}]}`), 201, "").str("id")
	const callers = 32
	for _, edit := range []struct {
		method, path, body string
		status             int
	}{
		{"PATCH", "/v1/lanes/busy", `{"max_concurrent":%d}`, 200},
		{"POST", "/v1/lanes/busy/pause", `{"reason":"%d"}`, 200},
		{"PATCH", "/v1/tasks/" + task, `{"labels":{"l%d":"x"}}`, 200},
		{"POST", "/v1/workflows/" + flow + "/tasks", `{"tasks":[{"key":"k%d","type":"a"}]}`, 201},
	} {
		answers := make([]reply, callers)
		var all sync.WaitGroup
		for n := range answers {
			all.Go(func() { answers[n] = s.call(edit.method, edit.path, s.acme, fmt.Sprintf(edit.body, n+1)) })
		}
		all.Wait()
		refused := 0
		for _, r := range answers {
			if r.status != edit.status {
				refused++
			}
		}
		if refused > 0 {
			t.Errorf("%s %s: %d of %d were refused", edit.method, edit.path, refused, callers)
		}
	}
	if labels := s.task(s.acme, task).at("labels"); len(labels.body) != callers {
		t.Errorf("the task has the labels %v", labels.body)
	}
}
