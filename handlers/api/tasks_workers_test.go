package api_test

import (
	"context"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestWorkerRegistration(t *testing.T) {
	s := newStage(t)
	r := s.want(s.call("POST", "/v1/workers", s.acme, map[string]any{
		"name": "gpu-box", "instance_id": "i1", "version": "v1", "task_types": []string{"llm.*"},
		"lanes": []string{"batch"}, "resources": map[string]any{"cpu": 8, "memory_mb": 1024, "gpu": 2, "vram_mb": 49152}, "slots": map[string]int{"io": 200, "compute": 2},
		"models": []string{"llama-small"}, "labels": map[string]string{"region": "eu"}, "lease_seconds": 9,
	}), 201, "")
	if r.num("heartbeat_seconds") != 3 || r.num("lease_seconds") != 9 || r.str("server_time") == "" {
		t.Errorf("registered %s", r.text)
	}
	v := s.want(s.call("GET", r.header.Get("Location"), s.acme, nil), 200, "")
	cards := v.at("resources").rows("gpus")
	if v.str("pool") != "gpu" || len(cards) != 2 || cards[1].num("vram_mb") != 24576 || v.at("slots").num("io") != 200 || v.str("state") != "active" {
		t.Errorf("worker %s", v.text)
	}
	s.want(s.call("GET", r.header.Get("Location"), s.blue, nil), 404, "not_found")
	if rows := s.want(s.call("GET", "/v1/workers?count=true", s.blue, nil), 200, "").rows("data"); len(rows) != 0 {
		t.Errorf("another tenant sees %v", rows)
	}
	s.want(s.call("POST", "/v1/workers/"+r.str("worker_id")+"/claim", s.blue, "{}", "Nightshift-Session", r.str("session")), 404, "not_found")
	s.want(s.call("POST", "/v1/workers/"+r.str("worker_id")+"/drain", s.blue, nil), 404, "not_found")

	shared := s.register(s.root, map[string]any{"instance_id": "shared"})
	if v := s.want(s.call("GET", "/v1/workers/"+shared.id, s.acme, nil), 200, ""); v.body["shared"] != true {
		t.Errorf("shared %s", v.text)
	}
	if rows := s.want(s.call("GET", "/v1/workers", s.root, nil), 200, "").rows("data"); len(rows) != 2 {
		t.Errorf("the platform sees %v", rows)
	}
	for text, location := range map[string]string{
		`{"instance_id":"i"}`: "body.name",
		`{"name":"n"}`:        "body.instance_id",
		`{"name":"n","instance_id":"i","lanes":["a"],"kinds":["io"]}`:      "body.kinds",
		`{"name":"n","instance_id":"i","kinds":["odd"]}`:                   "body.kinds[0]",
		`{"name":"n","instance_id":"i","slots":0}`:                         "body.slots",
		`{"name":"n","instance_id":"i","slots":{"odd":1}}`:                 "body.slots.odd",
		`{"name":"n","instance_id":"i","lease_seconds":1}`:                 "body.lease_seconds",
		`{"name":"n","instance_id":"i","lease_seconds":301}`:               "body.lease_seconds",
		`{"name":"n","instance_id":"i","task_types":["a*b"]}`:              "body.task_types[0]",
		`{"name":"n","instance_id":"i","resources":{"gpu":1,"gpus":[]}}`:   "body.resources.gpus",
		`{"name":"n","instance_id":"i","resources":{"vram_mb":1}}`:         "body.resources.vram_mb",
		`{"name":"n","instance_id":"i","resources":{"gpus":[{"vram":1}]}}`: "body.resources.gpus[0].vram",
		`{"name":"n","instance_id":"i","colour":"red"}`:                    "body.colour",
	} {
		s.refused(s.call("POST", "/v1/workers", s.acme, text), location)
	}
}

func TestSessionsAreReplaced(t *testing.T) {
	s := newStage(t)
	old := s.register(s.acme, nil)
	s.submit(s.acme, map[string]any{"type": "a"})
	kept := s.submit(s.acme, map[string]any{"type": "a"}).str("id")
	leases := old.claim(2, 5)
	token := leases[0].str("lease_token")
	if leases[0].str("task_id") != kept {
		token = leases[1].str("lease_token")
	}
	now := s.register(s.acme, map[string]any{"leases": []string{token, "lt_nonsense"}})
	if now.id != old.id || now.session == old.session {
		t.Errorf("the same instance came as %v after %v", now, old)
	}
	s.want(old.call("claim", "{}"), 409, "session_replaced")
	s.want(old.call("heartbeat", `{"leases":[]}`), 409, "session_replaced")
	s.want(old.call("results", `{"results":[{"lease_token":"`+token+`","status":"succeeded"}]}`), 409, "session_replaced")
	s.want(s.call("POST", "/v1/workers/"+now.id+"/claim", s.acme, "{}", "Nightshift-Session", "nonsense"), 409, "session_replaced")
	s.want(s.call("POST", "/v1/workers/"+now.id+"/claim", s.acme, "{}"), 400, "session_required")
	s.want(s.call("POST", "/v1/workers/wrk_01jzzzzzzzfzzzzzzzzzzzzzzz/claim", s.acme, "{}", "Nightshift-Session", now.session), 404, "not_found")
	if task := s.task(s.acme, kept); task.str("state") != "running" {
		t.Errorf("the lease that was listed: %s", task.text)
	}
	again := now.claim(5, 5)
	if len(again) != 1 || again[0].num("attempt") != 2 {
		t.Errorf("the one that was not listed comes again: %v", again)
	}
	if rows := now.report(map[string]any{"lease_token": token, "status": "succeeded"}); rows[0].str("state") != "succeeded" {
		t.Errorf("reported %v", rows)
	}
	s.register(s.acme, nil)
	s.want(s.call("POST", "/v1/workers", s.acme, map[string]any{"name": "w", "instance_id": "w1"}), 409, "instance_conflict")
}

func TestClaimsAndReportsAreChecked(t *testing.T) {
	s := newStage(t)
	w := s.register(s.acme, nil)
	for text, location := range map[string]string{
		`{"max_tasks":0}`: "body.max_tasks", `{"max_tasks":501}`: "body.max_tasks", `{"wait_seconds":31}`: "body.wait_seconds",
		`{"free":{"slots":-1}}`: "body.free.slots", `{"hurry":true}`: "body.hurry", `{"worker_id":"x"}`: "body.worker_id",
	} {
		s.refused(w.call("claim", text), location)
	}
	if tasks := s.want(s.call("POST", "/v1/workers/"+w.id+"/claim", s.acme, nil, "Nightshift-Session", w.session), 200, "").rows("tasks"); len(tasks) != 0 {
		t.Errorf("claimed %v", tasks)
	}
	s.refused(s.call("POST", "/v1/scheduler/claim", s.acme, "{}", "Nightshift-Session", w.session), "body.worker_id")
	s.submit(s.acme, map[string]any{"type": "a"})
	r := s.want(s.call("POST", "/v1/scheduler/claim", s.acme, map[string]any{"worker_id": w.id, "wait_seconds": 5}, "Nightshift-Session", w.session), 200, "")
	lease := r.rows("tasks")[0]
	token := lease.str("lease_token")
	for text, location := range map[string]string{
		`{}`:                                   "body.results",
		`{"results":[{"status":"succeeded"}]}`: "body.results[0].lease_token",
		`{"results":[{"lease_token":"` + token + `"}]}`:                                                                         "body.results[0].status",
		`{"results":[{"lease_token":"` + token + `","status":"odd"}]}`:                                                          "body.results[0].status",
		`{"results":[{"lease_token":"` + token + `","status":"succeeded","items":{"failed":[{"index":-1}]}}]}`:                  "body.results[0].items.failed[0].index",
		`{"results":[{"lease_token":"` + token + `","status":"succeeded","usage":{"tokens":1}}]}`:                               "body.results[0].usage.tokens",
		`{"results":[{"lease_token":"` + token + `","status":"succeeded","usage":{"cost_usd":-1}}]}`:                            "body.results[0].usage.cost_usd",
		`{"results":[{"lease_token":"` + token + `","status":"failed","error":{"why":1}}]}`:                                     "body.results[0].error.why",
		`{"results":[{"lease_token":"` + token + `","status":"succeeded","checkpoint":"` + strings.Repeat("x", 64<<10) + `"}]}`: "body.results[0].checkpoint",
		`{"results":[{"lease_token":"` + token + `","status":"succeeded","result":"` + strings.Repeat("x", 1<<20) + `"}]}`:      "body.results[0].result",
	} {
		s.refused(w.call("results", text), location)
	}
	s.want(w.call("results", `{"results":[`), 400, "invalid_json")
	s.want(s.call("POST", "/v1/workers/"+w.id+"/results", s.acme, `{}`, "Nightshift-Session", w.session, "Content-Type", "text/plain"), 415, "unsupported_media_type")
	s.refused(w.call("heartbeat", `{}`), "body.leases")
	s.refused(w.call("heartbeat", `{"leases":[{"progress":1}]}`), "body.leases[0].lease_token")
	s.refused(w.call("heartbeat", `{"leases":[],"utilization":{"cpu":2}}`), "body.utilization.cpu")
	if rows := s.want(w.call("heartbeat", map[string]any{"leases": []any{map[string]any{"lease_token": "nonsense"}, map[string]any{"lease_token": token}}}), 200, "").rows("leases"); rows[0].str("state") != "lost" || rows[1].str("state") != "ok" {
		t.Errorf("beaten %v", rows)
	}
	rows := w.report(map[string]any{"lease_token": "nonsense", "status": "succeeded"},
		map[string]any{"lease_token": token, "status": "failed", "retry_after_seconds": 1, "error": map[string]any{"class": "rate_limited", "message": "slow\x00down", "stack": strings.Repeat("é", 40_000)}})
	if rows[0].body["accepted"] != false || rows[0].str("code") != "lease_lost" || rows[1].str("state") != "retry_wait" {
		t.Errorf("reported %v", rows)
	}
	if task := s.task(s.acme, lease.str("task_id")); task.at("error").str("message") != "slow\uFFFDdown" || task.str("next_attempt_at") == "" || task.num("attempts_used") != 0 {
		t.Errorf("failed %s", task.text)
	}
}

func TestSingleForms(t *testing.T) {
	s := newStage(t)
	w := s.register(s.acme, nil)
	next := func() (id string, call func(what, token string, body any) reply) {
		id = s.submit(s.acme, map[string]any{"type": "a"}).str("id")
		lease := w.claim(1, 5)[0].str("lease_token")
		return id, func(what, token string, body any) reply {
			return s.call("POST", "/v1/tasks/"+id+"/"+what, token, body, "Nightshift-Lease", lease)
		}
	}
	id, call := next()
	s.refused(s.call("POST", "/v1/tasks/"+id+"/complete", s.acme, nil), "header.Nightshift-Lease")
	s.want(s.call("POST", "/v1/tasks/"+id+"/complete", s.acme, nil, "Nightshift-Lease", "nonsense"), 409, "lease_lost")
	s.want(call("complete", s.blue, nil), 404, "not_found")
	if r := s.want(call("heartbeat", s.acme, map[string]any{"progress": 0.5}), 200, ""); r.str("state") != "ok" {
		t.Errorf("beaten %s", r.text)
	}
	s.want(call("checkpoint", s.acme, map[string]any{"checkpoint": []int{1}}), 200, "")
	s.refused(call("checkpoint", s.acme, map[string]any{}), "body.checkpoint")
	s.refused(call("complete", s.acme, map[string]any{"error": nil}), "body.error")
	if task := s.task(s.acme, id); task.num("progress") != 0.5 || task.body["checkpoint"].([]any)[0] != 1.0 {
		t.Errorf("running %s", task.text)
	}
	lease := "Nightshift-Lease"
	token := s.want(call("heartbeat", s.acme, nil), 200, "").str("lease_token")
	for _, what := range []string{"complete", "fail", "heartbeat", "checkpoint"} { // a session may be left out, but not be another's
		var body any = map[string]any{"checkpoint": 1}
		if what == "heartbeat" {
			body = nil
		}
		s.want(s.call("POST", "/v1/tasks/"+id+"/"+what, s.acme, body, lease, token, "Nightshift-Session", "ses_01j2h6m7kfe0vbn3w9r5t8xyza"), 409, "session_replaced")
		s.want(s.call("POST", "/v1/tasks/"+id+"/"+what, s.acme, body, lease, token, "Nightshift-Session", "nonsense"), 409, "session_replaced")
	}
	s.want(s.call("POST", "/v1/tasks/"+id+"/heartbeat", s.acme, nil, lease, token, "Nightshift-Session", w.session), 200, "")
	if r := s.want(call("complete", s.acme, map[string]any{"result": 42}), 200, ""); r.str("state") != "succeeded" {
		t.Errorf("completed %s", r.text)
	}
	if r := s.want(call("complete", s.acme, map[string]any{"result": 43}), 200, ""); r.str("state") != "succeeded" {
		t.Errorf("completed again %s", r.text)
	}
	if r := s.want(call("fail", s.acme, map[string]any{"error": map[string]any{"class": "network"}}), 200, ""); r.str("state") != "succeeded" {
		t.Errorf("failed afterwards %s", r.text)
	}
	s.want(call("heartbeat", s.acme, nil), 409, "lease_lost")
	s.want(call("checkpoint", s.acme, map[string]any{"checkpoint": 1}), 409, "lease_lost")
	if task := s.task(s.acme, id); task.num("result") != 42 {
		t.Errorf("completed %s", task.text)
	}
	_, call = next()
	if r := s.want(call("fail", s.acme, map[string]any{"error": map[string]any{"class": "not_found", "message": "gone"}}), 200, ""); r.str("state") != "dead_letter" {
		t.Errorf("failed %s", r.text)
	}
}

func TestDrainAndDelete(t *testing.T) {
	s := newStage(t)
	w := s.register(s.acme, nil)
	id := s.submit(s.acme, map[string]any{"type": "a"}).str("id")
	w.claim(1, 5)
	if r := s.want(s.call("POST", "/v1/workers/"+w.id+"/drain", s.acme, nil), 200, ""); r.str("state") != "draining" || r.num("leases") != 1 {
		t.Errorf("drained %s", r.text)
	}
	if r := s.want(w.call("heartbeat", `{"leases":[]}`), 200, ""); len(r.body["signals"].([]any)) != 1 {
		t.Errorf("beaten %s", r.text)
	}
	if r := s.call("DELETE", "/v1/workers/"+w.id, s.acme, nil, "Nightshift-Session", w.session); r.status != 204 {
		t.Errorf("deleted: %d %s", r.status, r.text)
	}
	if task := s.task(s.acme, id); task.str("state") != "ready" || task.num("attempts_used") != 0 {
		t.Errorf("its lease goes back at once: %s", task.text)
	}
	s.want(w.call("claim", "{}"), 404, "not_found")
	if rows := s.want(s.call("GET", "/v1/workers", s.acme, nil), 200, "").rows("data"); len(rows) != 0 {
		t.Errorf("still listed: %v", rows)
	}
	if rows := s.want(s.call("GET", "/v1/workers?state=gone", s.acme, nil), 200, "").rows("data"); len(rows) != 1 {
		t.Errorf("gone: %v", rows)
	}
}

// A client that goes away during a long poll takes no task with it.
func TestAGoneClientNeverTakesATask(t *testing.T) {
	s := newStage(t)
	gone, other := s.register(s.acme, map[string]any{"instance_id": "gone"}), s.register(s.acme, map[string]any{"instance_id": "other"})
	parked := func(id string) bool {
		return s.want(s.call("GET", "/v1/workers/"+id, s.acme, nil), 200, "").body["waiting"] == true
	}
	for range 3 {
		ctx, leave := context.WithCancel(t.Context())
		request, err := http.NewRequestWithContext(ctx, "POST", s.url+"/v1/workers/"+gone.id+"/claim", strings.NewReader(`{"wait_seconds":30}`))
		s.must(err)
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Authorization", s.acme)
		request.Header.Set("Nightshift-Session", gone.session)
		left := make(chan struct{})
		go func() {
			defer close(left)
			if r, err := caller.Do(request); err == nil {
				_ = r.Body.Close()
			}
		}()
		s.await("the claim to park", func() bool { return parked(gone.id) })
		leave()
		<-left
		s.await("the claim to go", func() bool { return !parked(gone.id) })
		s.submit(s.acme, map[string]any{"type": "a"})
		lease := other.claim(1, 5)
		if len(lease) != 1 || lease[0].num("attempt") != 1 {
			t.Fatalf("claimed %v", lease)
		}
		other.report(done(lease[0], nil))
	}
}

// A parked worker gets what is submitted at once, with all that it gets of a task that has waited.
func TestAParkedWorkerIsAnswered(t *testing.T) {
	s := newStage(t)
	w := s.register(s.root, nil)
	got := make(chan []reply, 1)
	go func() { got <- w.claim(1, 20) }()
	s.await("the claim to park", func() bool {
		return s.want(s.call("GET", "/v1/workers/"+w.id, s.root, nil), 200, "").body["waiting"] == true
	})
	task := map[string]any{"type": "a", "payload": map[string]any{"n": []int{1, 2}, "text": "<é>"}, "labels": map[string]string{"k": "v"}}
	made := s.submit(s.blue, task)
	if made.str("state") != "running" {
		t.Errorf("submitted and started in one commit: %s", made.text)
	}
	select {
	case leases := <-got:
		if len(leases) != 1 || leases[0].str("task_id") != made.str("id") {
			t.Fatalf("claimed %v", leases)
		}
		s.submit(s.blue, task)
		waited := w.claim(1, 0)[0]
		for name, value := range waited.body {
			switch name {
			case "task_id", "attempt_id", "lease_token", "lease_expires_at", "idempotency_key", "traceparent": // its own
			default:
				if !reflect.DeepEqual(leases[0].body[name], value) {
					t.Errorf("%s is %v, of a task that has waited %v", name, leases[0].body[name], value)
				}
			}
		}
		if len(leases[0].body) != len(waited.body) || (leases[0].body["traceparent"] == nil) != (waited.body["traceparent"] == nil) {
			t.Errorf("at once came %v, of a task that has waited %v", leases[0].body, waited.body)
		}
	case <-time.After(time.Minute):
		t.Fatal("the claim was not answered")
	}
}
