package acceptance

import (
	"slices"
	"testing"
)

// A result that is sent twice is accepted twice and counts once, however it ended; every row says whether usage is in the books.
func TestResultsThatAreSentTwice(t *testing.T) {
	d := open(t)
	_, a := d.tenant("northwind")
	h := d.hand(a, nil)
	row := func(r reply) []any {
		return []any{r.at("results.0.accepted"), r.at("results.0.state"), r.at("results.0.code"), r.at("results.0.usage_recorded")}
	}
	used := map[string]any{"usage": map[string]any{"tokens_in": 7, "cost_usd": 0.5}}
	for _, c := range []struct {
		status, state string
		more          map[string]any
		booked        bool
	}{
		{"succeeded", "succeeded", nil, false},
		{"succeeded", "succeeded", used, true},
		{"failed", "retry_wait", used, true},
		{"released", "ready", nil, false},
		{"released", "ready", used, true},
	} {
		id := d.submit(a, map[string]any{"type": "a", "retry_policy": map[string]any{"initial_delay_seconds": 600, "max_delay_seconds": 600, "jitter": false}})
		_, token, _ := h.one()
		for range 2 {
			d.same(c.status+" sent twice", row(h.report(token, c.status, c.more)), []any{true, c.state, nil, c.booked})
		}
		if c.booked {
			d.same(c.status+" counted once", d.task(a, id).at("cost.tokens_in"), 7.0)
		}
		d.want(d.call("POST", "/v1/tasks/"+id+"/cancel", a, nil), 200, "") // nothing of it is left to claim
	}
	// What was given back by others than its worker is lost to it: a result comes too late, giving it back is what happened.
	id := d.submit(a, map[string]any{"type": "a", "concurrency_key": "k"})
	_, token, _ := h.one()
	d.want(d.call("DELETE", "/v1/locks/k", a, nil), 204, "")
	d.same("a result that comes too late", row(h.report(token, "succeeded", nil)), []any{false, "ready", "lease_lost", true})
	d.same("given back already", row(h.report(token, "released", nil)), []any{true, "ready", nil, false})
	d.want(d.call("POST", "/v1/tasks/"+id+"/cancel", a, nil), 200, "")
	// What a worker that is started anew does not list was lost with the process that held it.
	d.submit(a, map[string]any{"type": "a"})
	_, token, _ = h.one()
	h.register()
	d.same("lost", row(h.report(token, "released", nil)), []any{false, "ready", "lease_lost", true})
	d.same("nobody's lease", row(h.report("nobody's", "succeeded", nil)), []any{false, nil, "lease_lost", false})
}

// What a worker says of its lease is heard under the session that holds it, where one is sent, and under no other.
func TestEveryFormOfALeaseLooksAtTheSession(t *testing.T) {
	d := open(t)
	_, a := d.tenant("northwind")
	h := d.hand(a, nil)
	other := d.hand(a, nil)
	id := d.submit(a, map[string]any{"type": "a"})
	_, token, _ := h.one()
	for _, c := range []struct {
		form   string
		body   any
		status int
	}{
		{"logs", map[string]any{"lines": []any{map[string]any{"message": "one"}}}, 204},
		{"spans", map[string]any{"spans": []any{map[string]any{"name": "s", "start": "2026-01-01T00:00:00Z", "end": "2026-01-01T00:00:01Z"}}}, 204},
		{"children", map[string]any{"tasks": []any{map[string]any{"key": "k", "type": "b"}}}, 201},
		{"checkpoint", map[string]any{"checkpoint": 1}, 200},
		{"heartbeat", map[string]any{}, 200},
		{"fail", map[string]any{}, 200},
	} {
		path := "/v1/tasks/" + id + "/" + c.form
		for _, session := range []string{other.session, "nonsense", d.hand(a, nil).session} {
			d.want(d.call("POST", path, a, c.body, "Nightshift-Lease", token, "Nightshift-Session", session), 409, "session_replaced")
		}
		d.want(d.call("POST", path, a, c.body, "Nightshift-Lease", token, "Nightshift-Session", h.session), c.status, "")
	}
	d.same("lines kept", len(d.call("GET", "/v1/tasks/"+id+"/logs", a, nil).list("data")), 1)
}

// A run ends with its work, well or not; where a dead letter gets another life it goes on.
func TestRunsThatFailedHaveEnded(t *testing.T) {
	d := open(t)
	d.tenant("northwind")
	a := d.key("northwind", append(slices.Clone(everyScope), "schedules:read", "schedules:write")...)
	flow := map[string]any{"name": "w", "tasks": []any{map[string]any{"key": "a", "type": "a", "retry_policy": map[string]any{"max_attempts": 1}}}}
	schedule := d.want(d.call("POST", "/v1/schedules", a, map[string]any{"name": "s", "kind": "interval", "every_seconds": 36000, "workflow": flow}), 201, "").str("id")
	run := d.want(d.call("POST", "/v1/schedules/"+schedule+"/trigger", a, nil), 201, "")
	last := func() reply { return d.want(d.call("GET", "/v1/schedules/"+schedule+"/runs", a, nil), 200, "") }
	h := d.hand(a, nil)
	end := func(status string) {
		_, token, _ := h.one()
		h.report(token, status, nil)
		d.await("the workflow's end", func() bool { return last().str("data.0.result_state") != "running" })
		work := d.want(d.call("GET", "/v1/workflows/"+run.str("workflow_id"), a, nil), 200, "")
		if got := last(); got.str("data.0.finished_at") == "" || got.str("data.0.finished_at") != work.str("finished_at") {
			t.Errorf("%s: the run %s of the workflow %s", status, got.text, work.text)
		}
	}
	d.same("at first", last().at("data.0.finished_at"), nil)
	end("failed")
	d.same("its state", last().str("data.0.result_state"), "failed")
	d.want(d.call("POST", "/v1/workflows/"+run.str("workflow_id")+"/retry", a, nil), 200, "")
	d.same("with another life", last().at("data.0.finished_at"), nil)
	end("succeeded")
}
