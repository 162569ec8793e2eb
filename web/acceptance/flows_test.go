package acceptance

import (
	"fmt"
	"strings"
	"testing"
)

type object = map[string]any

func TestGraphsThatAreNone(t *testing.T) {
	d := open(t)
	_, a := d.tenant("northwind")
	for name, tasks := range map[string][]object{
		"a ring":       {{"key": "anna", "type": "x", "depends_on": []any{"berta"}}, {"key": "berta", "type": "x", "depends_on": []any{"anna"}}},
		"itself":       {{"key": "anna", "type": "x", "depends_on": []any{"anna"}}},
		"unknown keys": {{"key": "carl", "type": "x", "depends_on": []any{"anna"}}},
		"double keys":  {{"key": "anna", "type": "x"}, {"key": "anna", "type": "x"}},
	} {
		if r := d.want(d.call("POST", "/v1/workflows", a, object{"name": name, "tasks": tasks}), 422, "invalid_dag"); !strings.Contains(fmt.Sprint(r.at("errors")), "anna") {
			t.Errorf("%s: %s", name, r.text)
		}
	}
	d.want(d.call("POST", "/v1/workflows", a, object{"name": "w", "tasks": []any{}}), 422, "validation_failed", "body.tasks")
	d.want(d.call("POST", "/v1/workflows", a, object{"name": "w", "tasks": []object{{"key": "a", "type": "x", "priority": 101}}}), 422, "validation_failed", "body.tasks[0].priority")
	d.same("what is left", d.call("GET", "/v1/workflows?count=true", a, nil).at("total.value"), 0.0)
}

// Each end of a task fires and kills its edges; the workflow ends when nothing can move, and goes on after a redrive.
func TestEdges(t *testing.T) {
	d := open(t)
	_, a := d.tenant("northwind")
	h := d.hand(a, nil)
	fan := func(first object) (reply, func(key string) string) {
		first["key"], first["type"], first["priority"] = "first", "x", 90
		w := d.want(d.call("POST", "/v1/workflows", a, object{"name": "fan", "tasks": []object{
			first,
			{"key": "good", "type": "x", "depends_on": []any{"first"}},
			{"key": "bad", "type": "x", "depends_on": []any{object{"key": "first", "on": "failed"}}},
			{"key": "done", "type": "x", "depends_on": []any{object{"key": "first", "on": "finished"}}},
		}}), 201, "")
		return w, func(key string) string { return d.task(a, w.str("tasks."+key)).str("state") }
	}
	workflow := func(id string) reply { return d.want(d.call("GET", "/v1/workflows/"+id, a, nil), 200, "") }
	for _, c := range []struct {
		name            string
		first           object
		end             func(id, token string)
		good, bad, done string
		state           string
	}{
		{"succeeded", object{}, func(_, token string) { h.report(token, "succeeded", nil) }, "ready", "skipped", "ready", "succeeded"},
		{"failed", object{"on_attempts_exhausted": "fail"}, func(_, token string) { h.report(token, "failed", failure("invalid_input")) }, "skipped", "ready", "ready", "failed"},
		{"a dead letter", object{}, func(_, token string) { h.report(token, "failed", failure("invalid_input")) }, "pending", "ready", "ready", "failed"},
		{"cancelled", object{}, func(id, token string) {
			d.want(d.call("POST", "/v1/tasks/"+id+"/cancel", a, nil), 202, "")
			h.report(token, "cancelled", nil)
		}, "skipped", "skipped", "ready", "succeeded"},
	} {
		w, state := fan(c.first)
		id, token, _ := h.one()
		c.end(id, token)
		d.await(c.name+" to reach its edges", func() bool { return state("done") == "ready" })
		d.await(c.name+" to settle them all", func() bool { return state("good") == c.good && state("bad") == c.bad })
		_, tokens, _ := h.claim(10, 0)
		for _, token := range tokens {
			h.report(token, "succeeded", nil)
		}
		d.await(c.name+" to end its workflow", func() bool { return workflow(w.str("id")).str("state") != "running" })
		d.same(c.name, workflow(w.str("id")).str("state"), c.state)
		if c.name != "a dead letter" {
			continue
		}
		d.want(d.call("POST", "/v1/tasks/"+id+"/retry", a, object{"reason": "mended"}), 200, "")
		d.same("redriven", workflow(w.str("id")).str("state"), "running")
		for range 2 { // the first, then the one it frees
			_, token, _ := h.one()
			h.report(token, "succeeded", nil)
		}
		d.await("the end after the redrive", func() bool { return workflow(w.str("id")).str("state") == "succeeded" })
		d.same("its counts", workflow(w.str("id")).at("counts.succeeded"), 4.0)
	}
}

// A dependency that has ended already fires or kills its edge at once.
func TestLateDependants(t *testing.T) {
	d := open(t)
	_, a := d.tenant("northwind")
	_, b := d.tenant("southwind")
	ended := d.submit(a, object{"type": "x"})
	d.want(d.call("POST", "/v1/tasks/"+ended+"/cancel", a, nil), 200, "")
	for on, state := range map[string]string{"succeeded": "skipped", "failed": "skipped", "finished": "ready"} {
		r := d.want(d.call("POST", "/v1/tasks", a, object{"type": "y", "depends_on": []any{object{"task": ended, "on": on}}}), 201, "")
		d.same(on, []any{r.str("state"), r.at("remaining_dependencies")}, []any{state, 0.0})
	}
	d.want(d.call("POST", "/v1/tasks", b, object{"type": "y", "depends_on": []any{ended}}), 422, "validation_failed", "body.depends_on[0]")
	open := d.submit(a, object{"type": "x"})
	waits := d.want(d.call("POST", "/v1/tasks", a, object{"type": "y", "depends_on": []any{open}, "delay_seconds": 50}), 201, "")
	d.same("waiting", []any{waits.str("state"), waits.at("remaining_dependencies"), waits.at("run_at")}, []any{"pending", 1.0, nil})
	h := d.hand(a, object{"task_types": []string{"x"}})
	_, token, _ := h.one()
	h.report(token, "succeeded", nil)
	d.await("the delay after the dependency", func() bool { return d.task(a, waits.str("id")).str("state") == "scheduled" })
	if d.task(a, waits.str("id")).at("run_at") == nil {
		t.Error("the delay is not answered as run_at")
	}
}

func TestCancellingAWorkflow(t *testing.T) {
	d := open(t)
	_, a := d.tenant("northwind")
	h := d.hand(a, nil)
	w := d.want(d.call("POST", "/v1/workflows", a, object{"name": "w", "tasks": []object{{"key": "a", "type": "x"}, {"key": "b", "type": "x", "depends_on": []any{"a"}}}}), 201, "")
	_, token, _ := h.one()
	d.want(d.call("POST", "/v1/workflows/"+w.str("id")+"/cancel", a, object{"reason": "enough"}), 202, "")
	d.await("the signal", func() bool {
		beat := h.want(h.ask("/heartbeat", object{"leases": []any{object{"lease_token": token}}}), 200, "")
		return len(beat.list("leases.0.signals")) == 1
	})
	h.report(token, "cancelled", nil)
	d.await("the end", func() bool { return d.call("GET", "/v1/workflows/"+w.str("id"), a, nil).str("state") == "cancelled" })
	d.same("again", d.want(d.call("POST", "/v1/workflows/"+w.str("id")+"/cancel", a, nil), 200, "").str("state"), "cancelled")
}

func TestDeadLetters(t *testing.T) {
	d := open(t)
	_, a := d.tenant("northwind")
	_, b := d.tenant("southwind")
	h := d.hand(a, nil)
	var ids []string
	for i := range 6 {
		ids = append(ids, d.submit(a, object{"type": fmt.Sprint("t.", i%2), "payload": object{"n": i}}))
	}
	got, tokens, _ := h.claim(10, 0)
	for i, token := range tokens {
		h.report(token, "failed", object{"error": object{"class": "invalid_input", "message": "file " + fmt.Sprint(i) + " is bad", "stack": "at x"}, "usage": object{"tokens_in": 3}})
	}
	d.same("all claimed", len(got), 6)
	groups := d.want(d.call("GET", "/v1/dead-letters", a, nil), 200, "")
	d.same("groups", []any{len(groups.list("data")), groups.at("data.0.count"), groups.at("data.1.count")}, []any{2, 3.0, 3.0})
	print := groups.str("data.0.fingerprint")
	letters := d.want(d.call("GET", "/v1/dead-letters/tasks?fingerprint="+print, a, nil), 200, "")
	for _, path := range []string{"error.class", "error.message", "error.stack", "attempts.0.worker_id", "attempts.0.worker_version", "attempts.0.class", "attempts.0.usage", "input.payload_sha256", "input.bytes", "input.resources", "fingerprint", "reason"} {
		if letters.at("data.0."+path) == nil {
			t.Errorf("evidence without %s: %s", path, letters.text)
		}
	}
	d.same("a foreign tenant's letters", d.call("POST", "/v1/dead-letters/redrive", b, object{"task_ids": ids, "dry_run": true}).at("matched"), 0.0)
	d.want(d.call("POST", "/v1/dead-letters/discard", a, object{"task_ids": ids}), 422, "validation_failed", "body.reason")
	d.same("dry", d.want(d.call("POST", "/v1/dead-letters/redrive", a, object{"fingerprint": print, "dry_run": true}), 200, "").at("matched"), 3.0)
	act := func(verb string, body object) {
		t.Helper()
		r := d.want(d.call("POST", "/v1/dead-letters/"+verb, a, body), 202, "")
		where := r.header.Get("Location")
		d.await(verb+" to end", func() bool {
			now := d.want(d.call("GET", where, a, nil), 200, "")
			return now.at("done") == now.at("matched") && now.str("state") != "running"
		})
		d.want(d.call("GET", where, b, nil), 404, "not_found")
	}
	act("redrive", object{"fingerprint": print, "reason": "mended"})
	d.await("three ready again", func() bool { return len(d.call("GET", "/v1/tasks?state=ready", a, nil).list("data")) == 3 })
	act("discard", object{"task_ids": ids, "reason": "no use"})
	d.await("none left", func() bool { return len(d.call("GET", "/v1/dead-letters/tasks", a, nil).list("data")) == 0 })
	d.same("discarded", len(d.call("GET", "/v1/tasks?state=failed", a, nil).list("data")), 3)
}
