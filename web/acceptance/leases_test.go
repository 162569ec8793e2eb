package acceptance

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"
)

// A task's way through one worker: what the claim tells, what a beat shows, what the end leaves.
func TestAnAttempt(t *testing.T) {
	d := open(t)
	_, a := d.tenant("northwind")
	h := d.hand(a, nil)
	made := d.want(d.call("POST", "/v1/tasks", a, map[string]any{"type": "a.b", "payload": map[string]any{"n": 1}, "labels": map[string]any{"x": "y"}},
		"traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"), 201, "")
	id, token, claim := h.one()
	for _, name := range strings.Fields("task_id attempt_id attempt lease_token lease_expires_at type payload model gpus timeout deadline traceparent permissions secrets checkpoint watermark dependencies children events items partition run verify idempotency_key labels") {
		if in, _ := claim.at("tasks.0").(map[string]any); in != nil {
			if _, ok := in[name]; !ok {
				t.Errorf("a claim without %s", name)
			}
		}
	}
	if id != made.str("id") || claim.at("tasks.0.payload.n") != 1.0 || !strings.Contains(claim.str("tasks.0.traceparent"), "0af7651916cd43dd8448eb211c80319c") {
		t.Errorf("the claim: %s", claim.text)
	}
	running := d.task(a, id)
	if running.str("state") != "running" || running.str("worker_id") != h.id || running.at("attempt") != 1.0 || running.at("lease_expires_at") == nil {
		t.Errorf("while it runs: %s", running.text)
	}
	attempts := d.call("GET", "/v1/tasks/"+id+"/attempts", a, nil)
	if attempts.str("data.0.outcome") != "running" || attempts.str("data.0.worker_version") != "1.2" {
		t.Errorf("its attempts: %s", attempts.text)
	}
	d.same("explained", d.call("GET", "/v1/tasks/"+id+"/explain", a, nil).at("blocked_by"), []any{})
	beat := h.want(h.ask("/heartbeat", map[string]any{"leases": []any{map[string]any{"lease_token": token, "progress": 0.5, "checkpoint": map[string]any{"at": 3}}, map[string]any{"lease_token": "nobody's"}}}), 200, "")
	d.same("the beat", []any{beat.str("leases.0.state"), beat.str("leases.1.state"), beat.at("signals")}, []any{"ok", "lost", []any{}})
	d.same("progress reads back", d.task(a, id).at("progress"), 0.5)
	d.want(d.call("POST", "/v1/tasks/"+id+"/retry", a, nil), 409, "state_conflict")
	end := h.report(token, "succeeded", map[string]any{"result": map[string]any{"ok": true}, "usage": map[string]any{"tokens_in": 10, "cost_usd": 0.25}})
	d.same("accepted", []any{end.at("results.0.accepted"), end.str("results.0.state")}, []any{true, "succeeded"})
	again := h.report(token, "failed", failure("internal"))
	d.same("told twice", []any{again.at("results.0.accepted"), again.str("results.0.state")}, []any{true, "succeeded"})
	final := d.task(a, id)
	if final.at("result.ok") != true || final.at("cost.actual_usd") != 0.25 || final.at("cost.tokens_in") != 10.0 || final.at("lease_expires_at") != nil {
		t.Errorf("the end: %s", final.text)
	}
	for action, status := range map[string]int{"complete": 200, "fail": 200, "heartbeat": 409, "checkpoint": 409} {
		body := map[string]any{}
		if action == "checkpoint" {
			body["checkpoint"] = 1
		}
		r := h.call("POST", "/v1/tasks/"+id+"/"+action, a, body, "Nightshift-Lease", token)
		if r.status != status || status == 409 && r.str("code") != "lease_lost" {
			t.Errorf("%s after the end: %d %s", action, r.status, r.text)
		}
	}
}

// A silent worker's task is offered again after its lease, and what it says later changes nothing but its usage, once. The third loss is a dead letter.
func TestLostLeases(t *testing.T) {
	d := open(t)
	_, a := d.tenant("northwind")
	silent := d.hand(a, map[string]any{"lease_seconds": 2, "task_types": []string{"lost"}})
	id := d.submit(a, map[string]any{"type": "lost"})
	_, first, _ := silent.one()
	next := d.hand(a, map[string]any{"task_types": []string{"lost"}, "lease_seconds": 2})
	taken, second, claim := next.one()
	if taken != id || claim.at("tasks.0.attempt") != 2.0 {
		t.Errorf("offered again: %s", claim.text)
	}
	d.same("attempts used", d.task(a, id).at("attempts_used"), 0.0)
	late := silent.report(first, "succeeded", map[string]any{"usage": map[string]any{"tokens_in": 7}})
	d.same("the late report", []any{late.at("results.0.accepted"), late.str("results.0.code"), late.at("results.0.usage_recorded")}, []any{false, "lease_lost", true})
	silent.report(first, "succeeded", map[string]any{"usage": map[string]any{"tokens_in": 7}})
	d.same("usage booked once", d.task(a, id).at("cost.tokens_in"), 7.0)
	d.want(d.call("POST", "/v1/tasks/"+id+"/complete", a, map[string]any{}, "Nightshift-Lease", first), 409, "lease_lost")
	if now := d.task(a, id); now.at("attempt") != 2.0 || now.str("state") != "running" && now.str("state") != "ready" { // its lease may be over too
		t.Errorf("the second attempt: %s", now.text)
	}
	_ = second
	d.await("the second loss", func() bool { return d.task(a, id).str("state") == "ready" })
	next.one()
	d.await("the third", func() bool { return d.task(a, id).str("state") == "dead_letter" })
	d.same("its class", d.task(a, id).str("error.class"), "worker_lost")
	redriven := d.want(d.call("POST", "/v1/tasks/"+id+"/retry", a, map[string]any{"reason": "mended"}), 200, "")
	d.same("redriven", []any{redriven.str("id"), redriven.str("state"), redriven.at("attempt"), redriven.at("attempts_used")}, []any{id, "ready", 3.0, 0.0})
	var outcomes []string
	attempts := d.call("GET", "/v1/tasks/"+id+"/attempts", a, nil)
	for i := range attempts.list("data") {
		outcomes = append(outcomes, attempts.str(fmt.Sprintf("data.%d.outcome", i)))
	}
	d.same("the attempts", outcomes, []string{"lost", "lost", "lost"})
}

// The soft timeout is told, the hard one ends the attempt whatever the beats say.
func TestTimeouts(t *testing.T) {
	d := open(t)
	_, a := d.tenant("northwind")
	h := d.hand(a, nil)
	take := func(soft, hard float64) (id string, beat func() reply) {
		id = d.submit(a, map[string]any{"type": "slow", "timeout": map[string]any{"soft_seconds": soft, "hard_seconds": hard}, "retry_policy": map[string]any{"max_attempts": 1}})
		_, token, _ := h.one()
		return id, func() reply {
			return h.want(h.ask("/heartbeat", map[string]any{"leases": []any{map[string]any{"lease_token": token}}}), 200, "")
		}
	}
	_, beat := take(1, 600)
	d.await("the soft timeout", func() bool { return slices.Contains(beat().list("leases.0.signals"), any("soft_timeout")) })
	id, beat := take(1, 2)
	d.await("the hard one", func() bool { return beat().str("leases.0.state") == "lost" })
	ended := d.task(a, id)
	d.same("the end", []any{ended.str("state"), ended.str("error.class")}, []any{"dead_letter", "timeout"})
	d.same("its outcome", d.call("GET", "/v1/tasks/"+id+"/attempts", a, nil).str("data.0.outcome"), "timed_out")
}

// Without jitter the delays are exact; permanent classes get none unless the policy names them; a provider's word is kept and uses no attempt.
func TestRetries(t *testing.T) {
	d := open(t)
	_, a := d.tenant("northwind")
	h := d.hand(a, nil)
	fail := func(policy map[string]any, class string, more map[string]any) (r reply, delay time.Duration) {
		t.Helper()
		id := d.submit(a, map[string]any{"type": "a", "retry_policy": policy})
		_, token, _ := h.one()
		result := failure(class)
		for name, value := range more {
			result[name] = value
		}
		h.report(token, "failed", result)
		r = d.task(a, id)
		at, err := time.Parse(time.RFC3339, r.str("next_attempt_at"))
		from, err2 := time.Parse(time.RFC3339, r.str("updated_at"))
		if err == nil && err2 == nil {
			delay = at.Sub(from)
		}
		d.want(d.call("POST", "/v1/tasks/"+id+"/cancel", a, nil), 200, "")
		return r, delay
	}
	for _, c := range []struct {
		backoff string
		first   float64
		want    time.Duration
	}{{"fixed", 90, 90 * time.Second}, {"linear", 70, 70 * time.Second}, {"exponential", 60, 60 * time.Second}} {
		r, delay := fail(map[string]any{"backoff": c.backoff, "initial_delay_seconds": c.first, "max_delay_seconds": 120, "jitter": false}, "network", nil)
		if delay != c.want || r.str("state") != "retry_wait" || r.at("attempts_used") != 1.0 {
			t.Errorf("%s: %v %s", c.backoff, delay, r.text)
		}
	}
	r, delay := fail(map[string]any{"max_attempts": 1}, "rate_limited", map[string]any{"retry_after_seconds": 77})
	d.same("the provider's word", []any{r.str("state"), r.at("attempts_used"), delay}, []any{"retry_wait", 0.0, 77 * time.Second})
	for _, class := range []string{"invalid_input", "authentication", "permission_denied", "not_found"} {
		r, _ := fail(map[string]any{"max_attempts": 9}, class, nil)
		d.same(class, r.str("state"), "dead_letter")
		r, _ = fail(map[string]any{"max_attempts": 9, "classes": map[string]any{class: map[string]any{"max_attempts": 2}}}, class, nil)
		d.same(class+" with a rule of its own", r.str("state"), "retry_wait")
	}
	r, _ = fail(map[string]any{}, "a-class-of-my-own", nil)
	d.same("an unknown class", r.str("error.class"), "internal")
}

// Sessions: one worker an instance, the newest session counts, the third replacement within a minute is refused.
func TestSessions(t *testing.T) {
	d := open(t)
	_, a := d.tenant("northwind")
	h := d.hand(a, nil)
	id := d.submit(a, map[string]any{"type": "a"})
	_, token, _ := h.one()
	h.want(h.call("POST", "/v1/workers/"+h.id+"/claim", a, map[string]any{}), 400, "session_required")
	old, name := h.session, h.id
	h.spec["leases"] = []string{token}
	h.register()
	d.same("the worker", h.id, name)
	for path, body := range map[string]any{"/claim": map[string]any{}, "/heartbeat": map[string]any{"leases": []any{}}, "/results": map[string]any{"results": []any{map[string]any{"lease_token": token, "status": "succeeded"}}}} {
		h.want(h.call("POST", "/v1/workers/"+h.id+path, a, body, "Nightshift-Session", old), 409, "session_replaced")
	}
	d.same("the lease it lists", d.task(a, id).str("state"), "running")
	delete(h.spec, "leases")
	h.register()
	d.same("the lease it no longer lists", d.task(a, id).str("state"), "ready")
	h.want(h.call("POST", "/v1/workers", a, h.spec), 409, "instance_conflict")
	_, token, _ = h.one()
	h.want(h.ask("/drain", nil), 200, "")
	beat := h.want(h.ask("/heartbeat", map[string]any{"leases": []any{map[string]any{"lease_token": token}}}), 200, "")
	d.same("told to drain", beat.list("signals"), []any{"drain"})
	d.submit(a, map[string]any{"type": "a"})
	if ids, _, _ := h.claim(5, 0); len(ids) > 0 {
		t.Errorf("a draining worker got %v", ids)
	}
	d.want(d.call("DELETE", "/v1/workers/"+h.id, a, nil, "Nightshift-Session", h.session), 204, "")
	d.same("after the worker left", d.task(a, id).str("state"), "ready")
	h.want(h.ask("/claim", map[string]any{}), 404, "not_found")
}

// A client that is gone from its long poll never takes a task along.
func TestAGoneClientLosesNothing(t *testing.T) {
	d := open(t)
	_, a := d.tenant("northwind")
	h := d.hand(a, nil)
	conn, err := net.Dial("tcp", strings.TrimPrefix(d.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	body := `{"max_tasks":1,"wait_seconds":25}`
	if _, err := fmt.Fprintf(conn, "POST /v1/workers/%s/claim HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nNightshift-Session: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", h.id, a, h.session, len(body), body); err != nil {
		t.Fatal(err)
	}
	d.await("the parked claim", func() bool { return d.call("GET", "/v1/workers/"+h.id, a, nil).at("waiting") == true })
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	d.await("its end", func() bool { return d.call("GET", "/v1/workers/"+h.id, a, nil).at("waiting") == false })
	id := d.submit(a, map[string]any{"type": "a"})
	if taken, _, claim := h.one(); taken != id || claim.at("tasks.0.attempt") != 1.0 {
		t.Errorf("claimed afterwards: %s", claim.text)
	}
}

// A cancel is told to the worker; what it answers then is the end, and never another attempt.
func TestCancels(t *testing.T) {
	d := open(t)
	_, a := d.tenant("northwind")
	h := d.hand(a, nil)
	for status, state := range map[string]string{"succeeded": "succeeded", "failed": "cancelled", "cancelled": "cancelled", "released": "cancelled"} {
		id := d.submit(a, map[string]any{"type": "a"})
		_, token, _ := h.one()
		r := d.want(d.call("POST", "/v1/tasks/"+id+"/cancel", a, map[string]any{"reason": "enough"}), 202, "")
		d.same("asked", r.str("state"), "cancel_requested")
		beat := h.want(h.ask("/heartbeat", map[string]any{"leases": []any{map[string]any{"lease_token": token}}}), 200, "")
		d.same("the signal", beat.list("leases.0.signals"), []any{"cancel"})
		more := map[string]any{}
		if status == "failed" {
			more = failure("internal")
		}
		d.same(status, h.report(token, status, more).str("results.0.state"), state)
		d.same("cancelled again", d.want(d.call("POST", "/v1/tasks/"+id+"/cancel", a, nil), 200, "").str("state"), state)
	}
	waiting := d.submit(a, map[string]any{"type": "a", "delay_seconds": 500})
	poll := make(chan reply, 1)
	go func() { poll <- d.call("GET", "/v1/tasks/"+waiting+"/wait?timeout_seconds=20", a, nil) }()
	d.same("not yet", d.want(d.call("GET", "/v1/tasks/"+waiting+"/wait?timeout_seconds=0", a, nil), 202, "").str("id"), waiting)
	d.want(d.call("POST", "/v1/tasks/"+waiting+"/cancel", a, nil), 200, "")
	select {
	case r := <-poll:
		if r.status != 200 || r.str("state") != "cancelled" {
			t.Errorf("the waiter got %d %s", r.status, r.text)
		}
	case <-time.After(time.Minute):
		t.Fatal("the waiter got no answer")
	}
}
