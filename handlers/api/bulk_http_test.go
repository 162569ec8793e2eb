package api_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

// deadLetters makes dead letters of a type and answers their ids.
func (s *stage) deadLetters(w crew, taskType string, n int) (ids []string) {
	s.t.Helper()
	for range n {
		ids = append(ids, s.submit(s.acme, map[string]any{"type": taskType, "payload": map[string]any{"url": "a", "keep": 1}, "labels": map[string]string{"team": taskType}}).str("id"))
	}
	for range n {
		for _, lease := range w.claim(1, 5) {
			w.report(map[string]any{"lease_token": lease.str("lease_token"), "status": "failed", "checkpoint": "half", "error": map[string]any{"class": "not_found", "message": "gone"}})
		}
	}
	return ids
}

func TestDeadLettersAreRedrivenByFilter(t *testing.T) {
	s := newStage(t)
	w := s.register(s.acme, nil)
	red, blue := s.deadLetters(w, "red", 4), s.deadLetters(w, "blue", 3)
	redrive := func(text string) reply { return s.call("POST", "/v1/dead-letters/redrive", s.acme, text) }
	if r := s.want(redrive(`{"filter":{"type":"red"},"dry_run":true}`), 200, ""); r.num("matched") != 4 {
		t.Errorf("a dry run matched %s", r.text)
	}
	if r := s.want(redrive(`{"filter":{"label.team":["red","blue"]},"sample":5,"dry_run":true}`), 200, ""); r.num("matched") != 5 {
		t.Errorf("a dry run matched %s", r.text)
	}
	done := func(r reply, n float64) {
		t.Helper()
		at := r.header.Get("Location")
		s.await("the bulk action", func() bool { return s.want(s.call("GET", at, s.acme, nil), 200, "").str("state") == "done" })
		if r := s.want(s.call("GET", at, s.acme, nil), 200, ""); r.num("done") != n {
			t.Errorf("done: %s", r.text)
		}
	}
	done(s.want(redrive(`{"filter":{"type":"red"},"payload_patch":{"url":"b"},"sample":1,"reason":"look first"}`), 202, ""), 1)
	first := s.task(s.acme, red[0])
	if first.str("state") != "ready" || first.at("payload").str("url") != "b" || first.at("payload").num("keep") != 1 {
		t.Errorf("the first: %s", first.text)
	}
	lease := w.claim(1, 5)[0]
	if lease.at("payload").str("url") != "b" || lease.str("checkpoint") != "half" {
		t.Errorf("claimed %v", lease)
	}
	slow := s.want(redrive(`{"task_ids":["`+red[1]+`","`+red[2]+`","`+red[3]+`"],"rate_per_second":0.01}`), 202, "")
	at := slow.header.Get("Location")
	if r := s.want(s.call("POST", at+"/pause", s.acme, nil), 200, ""); r.str("state") != "paused" || r.num("matched") != 3 {
		t.Errorf("paused: %s", r.text)
	}
	s.want(s.call("POST", at+"/pause", s.blue, nil), 404, "not_found")
	if r := s.want(s.call("POST", at+"/resume", s.acme, nil), 200, ""); r.str("state") != "running" {
		t.Errorf("resumed: %s", r.text)
	}
	if r := s.want(s.call("POST", at+"/cancel", s.acme, `{"reason":"enough"}`), 200, ""); r.str("state") != "cancelled" {
		t.Errorf("ended: %s", r.text)
	}
	s.want(s.call("POST", at+"/resume", s.acme, nil), 409, "state_conflict")
	done(s.want(s.call("POST", "/v1/dead-letters/discard", s.acme, `{"filter":{"type":"blue"},"reason":"hopeless"}`), 202, ""), 3)
	if task := s.task(s.acme, blue[0]); task.str("state") != "failed" {
		t.Errorf("discarded: %s", task.text)
	}
	for text, location := range map[string]string{
		`{"filter":{"colour":"red"}}`:                                    "body.filter.colour",
		`{"filter":{"state":"odd"}}`:                                     "body.filter.state",
		`{"filter":{"type":7}}`:                                          "body.filter.type",
		`{"filter":{"label.a\u0000":"b"}}`:                               "body.filter.label.a\x00",
		`{"filter":{},"fingerprint":"` + fmt.Sprintf("%032d", 0) + `1"}`: "body.fingerprint",
		`{"filter":{},"rate_per_second":0}`:                              "body.rate_per_second",
		`{"filter":{},"sample":0}`:                                       "body.sample",
		`{"filter":{},"priority":1}`:                                     "body.priority",
		`{}`:                                                             "body",
	} {
		s.refused(redrive(text), location)
	}
}

func TestBulkActionsOverHTTP(t *testing.T) {
	s := newStage(t)
	for range 3 {
		s.submit(s.acme, map[string]any{"type": "a", "labels": map[string]string{"team": "red"}})
	}
	kept := s.submit(s.acme, map[string]any{"type": "b"}).str("id")
	act := func(text string) reply { return s.call("POST", "/v1/bulk-actions", s.acme, text) }
	done := func(r reply) {
		t.Helper()
		s.await("the bulk action", func() bool {
			return s.want(s.call("GET", r.header.Get("Location"), s.acme, nil), 200, "").str("state") == "done"
		})
	}
	if r := s.want(act(`{"action":"cancel","filter":{"type":"a"},"dry_run":true}`), 200, ""); r.num("matched") != 3 {
		t.Errorf("a dry run matched %s", r.text)
	}
	done(s.want(act(`{"action":"reprioritise","filter":{"label.team":"red"},"priority":90}`), 202, ""))
	done(s.want(act(`{"action":"move","filter":{"label.team":"red"},"lane":"realtime"}`), 202, ""))
	rows := s.want(s.call("GET", "/v1/tasks?type=a", s.acme, nil), 200, "").rows("data")
	if rows[0].num("priority") != 90 || rows[2].str("lane") != "realtime" {
		t.Errorf("moved %v", rows)
	}
	r := s.want(act(`{"action":"cancel","filter":{"state":["ready","pending"],"type":"a"},"reason":"enough"}`), 202, "")
	if r.str("action") != "cancel" {
		t.Errorf("started %s", r.text)
	}
	done(r)
	if rows := s.want(s.call("GET", "/v1/tasks?state=cancelled", s.acme, nil), 200, "").rows("data"); len(rows) != 3 {
		t.Errorf("%d cancelled", len(rows))
	}
	if task := s.task(s.acme, kept); task.str("state") != "ready" {
		t.Errorf("not meant: %s", task.text)
	}
	for text, location := range map[string]string{
		`{"filter":{}}`:                                      "body.action",
		`{"action":"odd","filter":{}}`:                       "body.action",
		`{"action":"move","filter":{}}`:                      "body.lane",
		`{"action":"move","filter":{},"lane":"nowhere"}`:     "body.lane",
		`{"action":"reprioritise","filter":{}}`:              "body.priority",
		`{"action":"discard","filter":{}}`:                   "body.reason",
		`{"action":"cancel","filter":{},"payload_patch":{}}`: "body.payload_patch",
	} {
		s.refused(act(text), location)
	}
}

func TestADeadLetterIsRetriedWithAnotherPayloadOverHTTP(t *testing.T) {
	s := newStage(t)
	w := s.register(s.acme, nil)
	id := "/v1/tasks/" + s.deadLetters(w, "a", 1)[0]
	if r := s.want(s.call("POST", id+"/retry", s.acme, `{"payload":{"n":2},"from_checkpoint":false}`), 200, ""); r.at("payload").num("n") != 2 || r.body["checkpoint"] != nil {
		t.Errorf("retried: %s", r.text)
	}
	lease := w.claim(1, 5)[0]
	if lease.at("payload").num("n") != 2 || lease.body["checkpoint"] != nil {
		t.Errorf("claimed %v", lease)
	}
	w.report(map[string]any{"lease_token": lease.str("lease_token"), "status": "succeeded", "checkpoint": "end"})
	again := s.want(s.call("POST", id+"/retry", s.acme, `{"from_checkpoint":true}`), 201, "")
	if again.str("redrive_of") != id[len("/v1/tasks/"):] || w.claim(1, 5)[0].str("checkpoint") != "end" {
		t.Errorf("made again: %s", again.text)
	}
}

// Calls that come at the same time under one key start one bulk action, however the tasks are named.
func TestABulkActionUnderAKeyIsMadeOnce(t *testing.T) {
	s := newStage(t)
	w := s.register(s.acme, nil)
	ids := s.deadLetters(w, "a", 3)
	text := s.want(s.call("GET", "/v1/dead-letters", s.acme, nil), 200, "").rows("data")[0].str("fingerprint")
	for i, ask := range []struct{ path, body string }{
		{"/v1/bulk-actions", `{"action":"cancel","filter":{"type":"none"}}`},
		{"/v1/dead-letters/redrive", `{"task_ids":["` + ids[0] + `"],"reason":"fixed"}`},
		{"/v1/dead-letters/discard", `{"filter":{"type":"none"},"reason":"hopeless"}`},
		{"/v1/dead-letters/discard", `{"fingerprint":"` + text + `","reason":"hopeless"}`},
	} {
		answers := make([]reply, 16)
		var all sync.WaitGroup
		for n := range answers {
			all.Go(func() { answers[n] = s.call("POST", ask.path, s.acme, ask.body, "Idempotency-Key", fmt.Sprint("k", i)) })
		}
		all.Wait()
		for _, r := range answers {
			if s.want(r, 202, ""); r.str("id") != answers[0].str("id") || r.header.Get("Location") != answers[0].header.Get("Location") {
				t.Errorf("%s %s made %s and %s", ask.path, ask.body, answers[0].str("id"), r.str("id"))
			}
		}
		s.want(s.call("POST", ask.path, s.acme, strings.Replace(ask.body, "{", `{"dry_run":true,`, 1)), 200, "")
		s.want(s.call("POST", ask.path+"?dry_run=true", s.acme, ask.body), 200, "")
	}
	s.await("the letter", func() bool { return s.task(s.acme, ids[0]).str("state") == "ready" })
}
