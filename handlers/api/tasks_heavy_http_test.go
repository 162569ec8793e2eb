package api_test

import (
	"fmt"
	"strings"
	"testing"
)

// Few tasks may weigh as much as many: they are written to the side like many, so that nobody waits for them.
func TestHeavyBodiesAreWrittenInParts(t *testing.T) {
	s := newStage(t)
	payload := strings.Repeat("x", 200_000)
	list := func(n int, more string) string {
		tasks := make([]string, n)
		for i := range tasks {
			tasks[i] = fmt.Sprintf(`{"type":"heavy","payload":{"n":%d,"text":%q}%s}`, i, payload, strings.ReplaceAll(more, "N", fmt.Sprint(i)))
		}
		return strings.Join(tasks, ",")
	}
	light := s.want(s.call("POST", "/v1/tasks/batch", s.acme, `{"tasks":[`+list(2, "")+`]}`), 201, "").rows("data")
	many := s.want(s.call("POST", "/v1/tasks/batch", s.acme, `{"tasks":[`+list(11, "")+`]}`, "Idempotency-Key", "once"), 201, "")
	if rows := many.rows("data"); light[0].str("state") != "ready" || len(rows) != 11 || rows[10].str("state") != "pending" {
		t.Errorf("one command of 0.4 MB, parts of 2.2 MB: %s", many.text)
	}
	if again := s.want(s.call("POST", "/v1/tasks/batch", s.acme, `{"tasks":[`+list(11, "")+`]}`, "Idempotency-Key", "once"), 201, ""); again.text != many.text {
		t.Errorf("again: %s", again.text)
	}
	flow := s.want(s.call("POST", "/v1/workflows", s.acme, `{"name":"n","tasks":[`+list(11, `,"key":"kN"`)+`,{"key":"last","type":"last","depends_on":["k0","k10"]}],"lane":"io","priority":60}`), 201, "")
	last := flow.at("tasks").str("last")
	w := s.register(s.acme, map[string]any{"task_types": []string{"heavy"}})
	seen, all := map[string]int{}, 0
	s.await("all of them", func() bool {
		leases := w.claim(8, 1)
		for _, lease := range leases {
			if p := lease.at("payload"); len(p.str("text")) == len(payload) {
				all++
				seen[fmt.Sprintf("%v %v", lease.str("type"), p.num("n"))]++
			}
		}
		w.report(dones(leases)...)
		return all >= 24 && s.task(s.acme, last).str("state") == "ready"
	})
	if all != 24 || seen["heavy 1"] != 3 || seen["heavy 2"] != 2 || len(seen) != 11 {
		t.Errorf("each once of each body: %v", seen)
	}
	if task := s.task(s.acme, last); task.str("lane") != "io" || task.num("priority") != 60 {
		t.Errorf("what the workflow says behind its tasks: %s", task.text)
	}
	// Tasks that are bound to what is there go into one command, which has an end.
	s.want(s.call("POST", "/v1/tasks/batch", s.acme, `{"tasks":[`+list(11, `,"idempotency_key":"kN"`)+`]}`), 201, "")
	s.refused(s.call("POST", "/v1/tasks/batch", s.acme, `{"tasks":[`+list(42, `,"idempotency_key":"lN"`)+`]}`), "body.tasks")
	parent := s.submit(s.acme, map[string]any{"type": "parent", "priority": 100}).str("id")
	lease := s.register(s.acme, map[string]any{"task_types": []string{"parent"}, "instance_id": "p"}).claim(1, 5)[0]
	s.refused(s.call("POST", "/v1/tasks/"+parent+"/children", s.acme, `{"tasks":[`+list(42, `,"key":"cN"`)+`]}`, "Nightshift-Lease", lease.str("lease_token")), "body.tasks")
}

func dones(leases []reply) []map[string]any {
	out := make([]map[string]any, len(leases))
	for i, lease := range leases {
		out[i] = done(lease, nil)
	}
	return out
}
