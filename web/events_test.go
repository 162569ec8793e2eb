package web_test

import (
	"bufio"
	"net/http"
	"strings"
	"testing"
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
	var ids []string
	after := ""
	for range 4 {
		path := "/v1/events?limit=2"
		if after != "" {
			path += "&after=" + after
		}
		r := s.want(s.call("GET", path, nil, "Authorization", a), 200, "")
		for _, row := range r.rows() {
			ids = append(ids, row["id"].(string))
		}
		if after = r.str("next_cursor"); after == "" {
			break
		}
	}
	if len(ids) != 6 {
		t.Errorf("by pages: %v", ids)
	}
	for i, row := range all {
		if ids[i] != row["id"] {
			t.Errorf("event %d is %s by pages and %v at once", i, ids[i], row["id"])
		}
	}
	if paused := s.want(s.call("GET", "/v1/events?name=lane.p*", nil, "Authorization", a), 200, "").rows(); len(paused) != 3 {
		t.Errorf("%d pauses", len(paused))
	}
	for _, bad := range []string{"after=x", "after=1", "after=1.-1", "after=01.0", "limit=0", "colour=red"} {
		s.want(s.call("GET", "/v1/events?"+bad, nil, "Authorization", a), 400, "invalid_query")
	}
	s.want(s.call("GET", "/v1/events?task_id=nope", nil, "Authorization", a), 422, "validation_failed")
	s.want(s.call("GET", "/v1/events", nil, "Authorization", root), 400, "tenant_required")
}

// stream opens the event stream and gives its lines.
func (s *stage) stream(path, token, last string) (lines func() string, stop func()) {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), "GET", s.url+path, nil)
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
