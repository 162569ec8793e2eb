package api_test

import (
	"fmt"
	"strings"
	"testing"
)

const parentTrace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// named are the spans of a trace by name.
func named(trace reply) map[string]reply {
	out := map[string]reply{}
	for _, s := range trace.rows("spans") {
		out[s.str("name")] = s
	}
	return out
}

func TestATraceOverHTTP(t *testing.T) {
	s := newStage(t)
	task := s.want(s.call("POST", "/v1/tasks", s.acme, map[string]any{"type": "text.embed", "retry_policy": map[string]any{"initial_delay_seconds": 0, "jitter": false}}, "traceparent", parentTrace), 201, "")
	path := "/v1/tasks/" + task.str("id")
	trace := s.want(s.call("GET", path+"/trace", s.acme, nil), 200, "")
	spans := named(trace)
	if trace.str("trace_id") != "4bf92f3577b34da6a3ce929d0e0e4736" || spans["text.embed"].str("parent_span_id") != "00f067aa0ba902b7" || spans["queued"].body["end"] != nil || len(spans) != 2 {
		t.Errorf("before it starts: %s", trace.text)
	}
	w := s.register(s.acme, nil)
	lease := w.claim(1, 5)[0]
	if lease.str("traceparent") != parentTrace {
		t.Errorf("claimed with %q", lease.str("traceparent"))
	}
	report := func(body any) reply {
		return s.call("POST", path+"/spans", s.acme, body, "Nightshift-Lease", lease.str("lease_token"))
	}
	span := func(change map[string]any) map[string]any {
		one := map[string]any{"name": "download", "start": "2026-01-01T00:00:00Z", "end": "2026-01-01T00:00:01.5Z"}
		for k, v := range change {
			if one[k] = v; v == nil {
				delete(one, k)
			}
		}
		return map[string]any{"spans": []any{one}}
	}
	s.want(report(span(map[string]any{"span_id": "00000000000000aa", "attributes": map[string]any{"bytes": 12}})), 204, "")
	s.want(report(span(map[string]any{"span_id": "00000000000000aa", "name": "again"})), 204, "")
	s.want(report(span(map[string]any{"name": "parse", "parent_span_id": "00000000000000aa"})), 204, "")
	for at, change := range map[string]map[string]any{
		"body.spans[0].span_id":        {"span_id": "00000000000000AA"},
		"body.spans[0].parent_span_id": {"parent_span_id": "0000000000000000"},
		"body.spans[0].attributes":     {"attributes": "no object"},
		"body.spans[0].more":           {"more": 1},
		"body.spans[0].start":          {"start": "soon"},
		"body.spans[0]":                {"end": "2025-01-01T00:00:00Z"},
	} {
		s.refused(report(span(change)), at)
	}
	s.refused(report(span(map[string]any{"name": nil})), "body.spans[0]")
	s.refused(report(map[string]any{}), "body.spans")
	w.report(failed(lease, "network"))
	s.want(report(span(nil)), 409, "lease_lost")
	lease = w.claim(1, 5)[0]
	w.report(done(lease, nil))
	trace = s.want(s.call("GET", path+"/trace", s.acme, nil), 200, "")
	spans = named(trace)
	if len(trace.rows("spans")) != 7 || spans["again"].body != nil {
		t.Errorf("%d spans: %s", len(trace.rows("spans")), trace.text)
	}
	first := spans["attempt 1"]
	if first.at("attributes").str("outcome") != "failed" || first.at("attributes").str("error_class") != "network" || first.str("parent_span_id") != spans["text.embed"].str("span_id") {
		t.Errorf("the first attempt: %v", first.body)
	}
	if spans["download"].str("parent_span_id") != first.str("span_id") || spans["download"].at("attributes").num("bytes") != 12 || spans["parse"].str("parent_span_id") != "00000000000000aa" {
		t.Errorf("reported: %v, %v", spans["download"].body, spans["parse"].body)
	}
	if spans["attempt 2"].at("attributes").str("outcome") != "succeeded" || spans["text.embed"].str("end") == "" || trace.body["complete"] != true {
		t.Errorf("in the end: %s", trace.text)
	}
	ids := map[string]bool{}
	for _, one := range trace.rows("spans") {
		ids[one.str("span_id")] = true
	}
	if len(ids) != 7 {
		t.Errorf("span ids are not their own: %s", trace.text)
	}
	s.want(s.call("GET", path+"/trace", s.blue, nil), 404, "not_found")
	s.want(s.call("POST", path+"/spans", s.blue, span(nil), "Nightshift-Lease", lease.str("lease_token")), 404, "not_found")
}

func TestATaskKeepsABoundedNumberOfSpans(t *testing.T) {
	s := newStage(t)
	task := s.submit(s.acme, map[string]any{"type": "a"})
	w := s.register(s.acme, nil)
	lease := w.claim(1, 5)[0]
	many := func(from, n int) map[string]any {
		list := []any{}
		for i := range n {
			list = append(list, map[string]any{"name": "n", "span_id": fmt.Sprintf("%016x", from+i+1), "start": "2026-01-01T00:00:00Z", "end": "2026-01-01T00:00:00Z"})
		}
		return map[string]any{"spans": list}
	}
	path := "/v1/tasks/" + task.str("id") + "/spans"
	s.refused(s.call("POST", path, s.acme, many(0, 501), "Nightshift-Lease", lease.str("lease_token")), "body.spans")
	for from := 0; from < 1000; from += 500 {
		s.want(s.call("POST", path, s.acme, many(from, 500), "Nightshift-Lease", lease.str("lease_token")), 204, "")
	}
	s.refused(s.call("POST", path, s.acme, many(1000, 1), "Nightshift-Lease", lease.str("lease_token")), "body.spans")
}

func TestAWorkflowsTraceOverHTTP(t *testing.T) {
	s := newStage(t)
	made := s.want(s.call("POST", "/v1/workflows", s.acme, diamond()), 201, "")
	id := made.str("id")
	w := s.register(s.acme, nil)
	w.report(done(w.claim(1, 5)[0], nil))
	trace := s.want(s.call("GET", "/v1/workflows/"+id+"/trace", s.acme, nil), 200, "")
	spans := named(trace)
	root := spans["nightly"]
	if len(trace.str("trace_id")) != 32 || strings.Trim(trace.str("trace_id"), "0123456789abcdef") != "" || root.body["parent_span_id"] != nil || root.body["end"] != nil {
		t.Errorf("the trace: %s", trace.text)
	}
	tasks := 0
	for _, one := range trace.rows("spans") {
		if one.at("attributes").str("key") != "" && one.str("parent_span_id") == root.str("span_id") {
			tasks++
		}
	}
	if tasks != 4 || spans["attempt 1"].str("end") == "" {
		t.Errorf("%d tasks hang on it: %s", tasks, trace.text)
	}
	one := s.want(s.call("GET", "/v1/tasks/"+made.at("tasks").str("a")+"/trace", s.acme, nil), 200, "")
	if one.str("trace_id") != trace.str("trace_id") {
		t.Errorf("a task of it has the trace %s", one.str("trace_id"))
	}
	alone := s.submit(s.acme, map[string]any{"type": "other"})
	for id, want := range map[string]string{made.at("tasks").str("a"): trace.str("trace_id"), alone.str("id"): alone.str("trace_id")} {
		for _, path := range []string{"", "/trace"} {
			if r := s.want(s.call("GET", "/v1/tasks/"+id+path, s.acme, nil), 200, ""); len(want) != 32 || r.str("trace_id") != want {
				t.Errorf("%s%s answers the trace %q, not %q", id, path, r.str("trace_id"), want)
			}
		}
		for _, row := range s.want(s.call("GET", "/v1/tasks", s.acme, nil), 200, "").rows("data") {
			if row.str("id") == id && row.str("trace_id") != want {
				t.Errorf("in the list it has the trace %q, not %q", row.str("trace_id"), want)
			}
		}
	}
	s.want(s.call("GET", "/v1/workflows/"+id+"/trace", s.blue, nil), 404, "not_found")
}
