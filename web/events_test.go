package web_test

import (
	"bufio"
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// pause pauses and resumes a lane: an event each.
func (s *stage) pause(token string, times int) {
	s.t.Helper()
	for range times {
		s.want(s.call("POST", "/v1/lanes/batch/pause", `{"reason":"a test"}`, "Authorization", token), 200, "")
		s.want(s.call("POST", "/v1/lanes/batch/resume", nil, "Authorization", token), 200, "")
	}
}

func TestEventsAreListedInOrder(t *testing.T) {
	s := newStage(t)
	root := s.root()
	_, _, a := s.tenant(root, "northwind", "admin:read", "admin:write")
	_, _, b := s.tenant(root, "southwind", "admin:read", "admin:write")
	s.pause(a, 3)
	s.pause(b, 1)
	all := s.want(s.call("GET", "/v1/events", nil, "Authorization", a), 200, "").rows()
	if len(all) != 6 || all[0]["name"] != "lane.paused" || all[0]["lane"] != "batch" || all[5]["name"] != "lane.resumed" {
		t.Fatalf("the events: %v", all)
	}
	var first []string
	for _, row := range all {
		first = append(first, row["id"].(string))
	}
	last := slices.Clone(first)
	slices.Reverse(last)
	for query, want := range map[string][]string{"": first, "&order=asc": first, "&order=desc": last, "&after=" + first[1]: first[2:], "&order=desc&after=" + first[1]: last[:4], "&name=lane.paused": {first[0], first[2], first[4]}} {
		var ids []string
		for cursor := ""; ; {
			r := s.want(s.call("GET", "/v1/events?limit=2&count=true"+query+cursor, nil, "Authorization", a), 200, "")
			for _, row := range r.rows() {
				ids = append(ids, row["id"].(string))
			}
			if total := r.body["total"].(map[string]any); total["value"] != float64(len(want)) || total["relation"] != "eq" {
				t.Errorf("%s counts %v", query, total)
			}
			next := r.str("next_cursor")
			if next == "" {
				break
			}
			cursor = "&cursor=" + next
		}
		if !slices.Equal(ids, want) {
			t.Errorf("%s by pages: %v, want %v", query, ids, want)
		}
	}
	cursor := s.want(s.call("GET", "/v1/events?limit=2", nil, "Authorization", a), 200, "").str("next_cursor")
	for _, other := range []string{"/v1/events?cursor=" + first[0], "/v1/events?order=desc&cursor=" + cursor, "/v1/events?name=lane.p*&cursor=" + cursor, "/v1/lanes?cursor=" + cursor} {
		s.want(s.call("GET", other, nil, "Authorization", a), 400, "invalid_cursor")
	}
	s.want(s.call("GET", "/v1/events?cursor="+cursor, nil, "Authorization", b), 400, "invalid_cursor")
	if paused := s.want(s.call("GET", "/v1/events?name=lane.p*", nil, "Authorization", a), 200, "").rows(); len(paused) != 3 {
		t.Errorf("%d pauses", len(paused))
	}
	for _, bad := range []string{"after=x", "after=1", "after=1.-1", "after=01.0", "limit=0", "colour=red", "order=up", "count=perhaps"} {
		s.want(s.call("GET", "/v1/events?"+bad, nil, "Authorization", a), 400, "invalid_query")
	}
	s.want(s.call("GET", "/v1/events?task_id=nope", nil, "Authorization", a), 422, "validation_failed")
	s.want(s.call("GET", "/v1/events", nil, "Authorization", root), 400, "tenant_required")
	s.want(s.call("GET", "/v1/scheduler/events", nil, "Authorization", a), 403, "scope_required")
	for _, e := range s.want(s.call("GET", "/v1/scheduler/events", nil, "Authorization", root), 200, "").rows() {
		if name := e["name"].(string); !strings.HasPrefix(name, "worker.") && !strings.HasPrefix(name, "brain.") {
			t.Errorf("the platform sees %v", e)
		}
	}
}

// stream opens the event stream and gives its lines.
func (s *stage) stream(path, token, last string) (lines func() string, stop func()) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	s.t.Cleanup(cancel)
	request, err := http.NewRequestWithContext(ctx, "GET", s.url+path, nil)
	s.must(err)
	request.Header.Set("Authorization", token)
	if last != "" {
		request.Header.Set("Last-Event-ID", last)
	}
	response, err := http.DefaultClient.Do(request)
	s.must(err)
	if response.StatusCode != 200 || response.Header.Get("Content-Type") != "text/event-stream" {
		s.t.Fatalf("the stream: %d %s", response.StatusCode, response.Header.Get("Content-Type"))
	}
	reader := bufio.NewReader(response.Body)
	return func() string {
		s.t.Helper()
		for {
			line, err := reader.ReadString('\n')
			s.must(err)
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, ":") {
				return line
			}
		}
	}, func() { _ = response.Body.Close() }
}

func TestEventsStreamAndResume(t *testing.T) {
	s := newStage(t)
	root := s.root()
	_, _, a := s.tenant(root, "northwind", "admin:read", "admin:write")
	_, _, b := s.tenant(root, "southwind", "admin:read", "admin:write")
	s.pause(a, 1)
	first := s.want(s.call("GET", "/v1/events", nil, "Authorization", a), 200, "").rows()[0]["id"].(string)
	lines, stop := s.stream("/v1/events/stream", a, first)
	if name, id := lines(), lines(); name != "event: lane.resumed" || !strings.HasPrefix(id, "id: ") {
		t.Errorf("resumed with %q %q", name, id)
	}
	lines()
	s.pause(b, 1)
	s.pause(a, 1)
	if name := lines(); name != "event: lane.paused" {
		t.Errorf("live: %q", name)
	}
	id := strings.TrimPrefix(lines(), "id: ")
	if data := lines(); !strings.Contains(data, `"lane":"batch"`) || !strings.Contains(data, `"reason":"a test"`) {
		t.Errorf("live: %q", data)
	}
	stop()
	again, stop := s.stream("/v1/events/stream?name=lane.resumed", a, id)
	defer stop()
	if name := again(); name != "event: lane.resumed" {
		t.Errorf("resumed after %s with %q", id, name)
	}
	s.want(s.call("GET", "/v1/events/stream", nil, "Authorization", a, "Last-Event-ID", "nonsense"), 400, "invalid_query")
	if r := s.call("HEAD", "/v1/events/stream", nil, "Authorization", a); r.status != 200 {
		t.Errorf("HEAD: %d", r.status)
	}
}
