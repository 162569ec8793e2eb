package api_test

import (
	"fmt"
	"slices"
	"testing"
)

// Lists by name go both ways, page by page.
func TestListsByNameAreOrderedAsAsked(t *testing.T) {
	s := newStage(t)
	token := s.admin("acme")
	var keys []string
	for i := range 5 {
		name := fmt.Sprint("n", i)
		keys = append(keys, name)
		s.want(s.call("PUT", "/v1/rate-limits/"+name, token, `{"limit":1,"per_seconds":60}`), 201, "")
		s.want(s.call("PUT", "/v1/watermarks/"+name, token, `{"value":1}`), 201, "")
		s.want(s.call("POST", "/v1/queues/"+name+"/items", token, `{"items":[{"data":1}]}`), 202, "")
		s.want(s.call("PATCH", "/v1/task-types/"+name, token, `{"max_concurrent":1}`), 200, "")
		s.want(s.call("POST", "/v1/tasks", token, map[string]any{"type": "held", "concurrency": []any{map[string]any{"key": name, "limit": 1}}}), 201, "")
	}
	if got := s.register(s.acme, nil).claim(5, 5); len(got) != 5 {
		t.Fatalf("%d tasks hold a key", len(got))
	}
	backwards := slices.Clone(keys)
	slices.Reverse(backwards)
	for path, field := range map[string]string{"rate-limits": "key", "watermarks": "name", "queues": "name", "locks": "key", "task-types": "type"} {
		walk := func(query string) (out []string) {
			for cursor := ""; ; {
				page := s.want(s.call("GET", "/v1/"+path+"?limit=2"+query+cursor, token, nil), 200, "")
				for _, row := range page.rows("data") {
					if name := row.str(field); slices.Contains(keys, name) {
						out = append(out, name)
					}
				}
				if page.body["next_cursor"] == nil {
					return out
				}
				cursor = "&cursor=" + page.str("next_cursor")
			}
		}
		for query, want := range map[string][]string{"": keys, "&order=asc": keys, "&order=desc": backwards} {
			if got := walk(query); !slices.Equal(got, want) {
				t.Errorf("%s%s: %v", path, query, got)
			}
		}
	}
}

// A call that needs a body and gets none, nor a content type, hears that there is none.
func TestNoBodyIsNoJSONForLargeBodiesToo(t *testing.T) {
	s := newStage(t)
	flow := s.want(s.call("POST", "/v1/workflows", s.acme, chain("a", "b")), 201, "").str("id")
	for _, path := range []string{"/v1/tasks/batch", "/v1/workflows", "/v1/workflows/" + flow + "/tasks", "/v1/batches", "/v1/tasks"} {
		s.want(s.call("POST", path, s.acme, nil), 400, "invalid_json")
		s.want(s.call("POST", path, s.acme, "{}", "Content-Type", "text/plain"), 415, "unsupported_media_type")
	}
}
