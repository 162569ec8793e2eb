package acceptance

import (
	"sync"
	"testing"
)

// The same key and body answer as the first time, whatever became of it since; another body is refused.
func TestIdempotencyKeys(t *testing.T) {
	d := open(t)
	_, a := d.tenant("northwind")
	_, b := d.tenant("southwind")
	task := d.submit(a, map[string]any{"type": "a"})
	d.want(d.call("POST", "/v1/tasks/"+task+"/cancel", a, nil), 200, "")
	for path, body := range map[string]map[string]any{
		"/v1/tasks":                    {"type": "a"},
		"/v1/tasks/batch":              {"tasks": []any{map[string]any{"type": "a"}}},
		"/v1/tasks/" + task + "/retry": {"reason": "again"},
		"/v1/workflows":                {"name": "w", "tasks": []any{map[string]any{"key": "a", "type": "a"}}},
		"/v1/lanes":                    {"name": "mine", "kind": "io"},
		"/v1/environments":             {"name": "mine", "kind": "staging"},
		"/v1/api-keys":                 {"name": "mine", "scopes": []string{"tasks:read"}},
	} {
		first := d.want(d.call("POST", path, a, body, "Idempotency-Key", "one"), 201, "")
		second := d.want(d.call("POST", path, a, body, "Idempotency-Key", "one"), 201, "")
		if first.header.Get("Idempotent-Replayed") != "" || second.header.Get("Idempotent-Replayed") != "true" || first.text != second.text {
			t.Errorf("%s: %v %s, then %v %s", path, first.header, first.text, second.header, second.text)
		}
		d.same("Location of the replay", second.header.Get("Location"), first.header.Get("Location"))
		for _, name := range []string{"name", "reason", "type"} {
			if body[name] != nil {
				body[name] = "another"
			}
		}
		if path == "/v1/tasks/batch" {
			body["tasks"] = []any{map[string]any{"type": "another"}}
		}
		d.want(d.call("POST", path, a, body, "Idempotency-Key", "one"), 422, "idempotency_key_reused")
	}
	d.want(d.call("POST", "/v1/tasks", b, map[string]any{"type": "other"}, "Idempotency-Key", "one"), 201, "")
	d.want(d.call("POST", "/v1/tasks", a, map[string]any{"type": "a", "priority": 500}, "Idempotency-Key", "two"), 422, "validation_failed")
	d.want(d.call("POST", "/v1/tasks", a, map[string]any{"type": "a"}, "Idempotency-Key", "two"), 201, "")
	ids := make([]string, 12)
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() {
			ids[i] = d.call("POST", "/v1/tasks", a, map[string]any{"type": "a"}, "Idempotency-Key", "three").str("id")
		})
	}
	all.Wait()
	for _, id := range ids {
		d.same("of twelve at once", id, ids[0])
	}
}

// A business key returns its holder while that is live, dead or succeeded, and is free again afterwards.
func TestBusinessKeys(t *testing.T) {
	d := open(t)
	_, a := d.tenant("northwind")
	keyed := map[string]any{"type": "a", "idempotency_key": "invoice-7"}
	holder := d.submit(a, keyed)
	again := d.want(d.call("POST", "/v1/tasks", a, keyed), 200, "")
	if again.str("id") != holder || again.at("deduplicated") != true {
		t.Errorf("the holder: %s", again.text)
	}
	batch := d.want(d.call("POST", "/v1/tasks/batch", a, map[string]any{"tasks": []any{map[string]any{"type": "a"}, keyed}}), 201, "")
	if batch.str("data.1.id") != holder || batch.at("data.1.deduplicated") != true {
		t.Errorf("in a batch: %s", batch.text)
	}
	d.want(d.call("POST", "/v1/workflows", a, map[string]any{"name": "w", "tasks": []any{map[string]any{"key": "k", "type": "a", "idempotency_key": "invoice-7"}}}), 422, "validation_failed", "body.tasks[0].idempotency_key")
	h := d.hand(a, nil)
	ids, tokens, _ := h.claim(10, 0)
	for i, token := range tokens {
		if ids[i] == holder {
			h.report(token, "failed", failure("invalid_input"))
		} else {
			h.report(token, "succeeded", nil)
		}
	}
	d.same("dead", d.task(a, holder).str("state"), "dead_letter")
	d.same("held by a dead letter", d.want(d.call("POST", "/v1/tasks", a, keyed), 200, "").str("id"), holder)
	d.want(d.call("POST", "/v1/tasks/"+holder+"/discard", a, map[string]any{"reason": "gone"}), 200, "")
	if next := d.submit(a, keyed); next == holder {
		t.Error("a failed task holds its key")
	}
}
