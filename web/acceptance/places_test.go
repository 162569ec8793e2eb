package acceptance

import (
	"slices"
	"strings"
	"testing"
)

// Who gets what: each case submits tasks and says which of them a worker is given, and why the others wait.
func TestWhatAWorkerIsGiven(t *testing.T) {
	d := open(t)
	_, a := d.tenant("northwind")
	type m = map[string]any
	for name, c := range map[string]struct {
		worker m
		tasks  []m
		gets   []int
		reason string // why the first of the others waits
		lacks  string
	}{
		"processors":  {m{"resources": m{"cpu": 4}}, []m{{"resources": m{"cpu": 8}}, {"resources": m{"cpu": 3}}, {"resources": m{"cpu": 2}}}, []int{1}, "no_capable_worker", "4 cpu of 8"},
		"memory":      {m{"resources": m{"memory_mb": 1000}}, []m{{"resources": m{"memory_mb": 2000}}, {"resources": m{"memory_mb": 900}}}, []int{1}, "no_capable_worker", "1000 MB"},
		"nothing":     {m{"resources": m{}}, []m{{"resources": m{"cpu": 1}}, {}}, []int{1}, "no_capable_worker", "cpu"},
		"cards":       {m{"resources": m{"gpus": []m{{"vram_mb": 24000}, {"vram_mb": 16000}}}}, []m{{"resources": m{"gpu": 1, "vram_mb": 40000}}, {"resources": m{"gpu": 3}}, {"resources": m{"gpu": 2, "vram_mb": 16000}}}, []int{2}, "no_capable_worker", "40000 MB"},
		"equal cards": {m{"resources": m{"gpu": 2, "vram_mb": 49152}}, []m{{"resources": m{"gpu": 1, "vram_mb": 24577}}, {"resources": m{"gpu": 2, "vram_mb": 24576}}}, []int{1}, "no_capable_worker", "24577 MB"},
		"models":      {m{"models": []string{"small"}}, []m{{"model": "large"}, {"model": "small"}}, []int{1}, "no_capable_worker", "large"},
		"labels":      {m{"labels": m{"region": "us"}}, []m{{"worker_selector": m{"region": "eu"}}, {"worker_selector": m{"region": "us"}}}, []int{1}, "no_capable_worker", "region"},
		"lanes":       {m{"lanes": []string{"io"}}, []m{{"lane": "compute"}, {"lane": "io"}}, []int{1}, "no_capable_worker", "lane"},
		"kinds":       {m{"kinds": []string{"io"}}, []m{{"lane": "realtime"}, {"lane": "io"}}, []int{1}, "no_capable_worker", ""},
		"slots":       {m{"slots": 1}, []m{{"priority": 10}, {"priority": 90}}, []int{1}, "workers_busy", "line"},
		"a key":       {m{}, []m{{"concurrency_key": "account", "concurrency_limit": 1, "priority": 90}, {"concurrency_key": "account", "concurrency_limit": 1}}, []int{0}, "concurrency_key", "account"},
		"kind order":  {m{"slots": 1}, []m{{"lane": "batch"}, {"lane": "compute"}, {"lane": "io"}, {"lane": "realtime"}}, []int{3}, "workers_busy", ""},
	} {
		kind := "kind-of." + strings.ReplaceAll(name, " ", "-")
		spec := m{"task_types": []string{kind}}
		for k, v := range c.worker {
			spec[k] = v
		}
		h := d.hand(a, spec)
		var ids []string
		for _, task := range c.tasks {
			task["type"] = kind
			ids = append(ids, d.submit(a, task))
		}
		got, tokens, r := h.claim(10, 0)
		var want []string
		for _, i := range c.gets {
			want = append(want, ids[i])
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %s", name, r.text)
		}
		for _, id := range ids {
			if slices.Contains(got, id) {
				continue
			}
			why := d.want(d.call("GET", "/v1/tasks/"+id+"/explain", a, nil), 200, "")
			if why.str("blocked_by.0.reason") != c.reason || !strings.Contains(why.str("blocked_by.0.detail"), c.lacks) {
				t.Errorf("%s: %s", name, why.text)
			}
			break
		}
		for _, token := range tokens {
			h.report(token, "succeeded", nil)
		}
		d.want(d.call("DELETE", "/v1/workers/"+h.id, a, nil), 204, "")
	}
}

// Gates hold what waits, say so, and let it go again; a suspended tenant's running attempts end as ever.
func TestGates(t *testing.T) {
	d := open(t)
	tenant, a := d.tenant("northwind")
	d.want(d.call("POST", "/v1/lanes", a, map[string]any{"name": "narrow", "kind": "io", "max_concurrent": 1, "task_types": []string{"n.*"}}), 201, "")
	h := d.hand(a, nil)
	for range 2 {
		made := d.want(d.call("POST", "/v1/tasks", a, map[string]any{"type": "n.a"}), 201, "")
		d.same("routed", []any{made.str("lane"), made.str("kind")}, []any{"narrow", "io"})
	}
	ids, tokens, _ := h.claim(5, 0)
	waits := d.call("GET", "/v1/tasks?state=ready", a, nil).str("data.0.id")
	held := func(reason string) {
		t.Helper()
		why := d.call("GET", "/v1/tasks/"+waits+"/explain", a, nil)
		d.same("held", why.str("blocked_by.0.reason"), reason)
		if got, _, _ := h.claim(5, 0); len(got) > 0 {
			t.Errorf("%s lets %v through", reason, got)
		}
	}
	d.same("one at a time", len(ids), 1)
	held("lane_limit")
	d.want(d.call("PATCH", "/v1/lanes/narrow", a, map[string]any{"max_concurrent": nil}), 200, "")
	for _, gate := range []struct{ shut, open, reason, token string }{
		{"/v1/lanes/narrow/pause", "/v1/lanes/narrow/resume", "lane_paused", a},
		{"/v1/environments/production/pause", "/v1/environments/production/resume", "environment_paused", a},
		{"/v1/tenants/" + tenant + "/suspend", "/v1/tenants/" + tenant + "/resume", "tenant_suspended", d.root},
	} {
		d.want(d.call("POST", gate.shut, gate.token, map[string]any{"reason": "a test"}), 200, "")
		held(gate.reason)
		if gate.reason == "tenant_suspended" {
			d.want(d.call("POST", "/v1/tasks", a, map[string]any{"type": "n.a"}), 403, "tenant_suspended")
			d.want(d.call("POST", "/v1/workflows", a, map[string]any{"name": "w", "tasks": []any{map[string]any{"key": "a", "type": "n.a"}}}), 403, "tenant_suspended")
			d.want(d.call("GET", "/v1/tasks", a, nil), 200, "")
			d.same("it may report", h.report(tokens[0], "succeeded", nil).at("results.0.accepted"), true)
		}
		d.want(d.call("POST", gate.open, gate.token, nil), 200, "")
	}
	if got, _, _ := h.claim(5, 5); !slices.Equal(got, []string{waits}) {
		t.Errorf("after all gates opened: %v", got)
	}
	d.want(d.call("POST", "/v1/lanes/narrow/drain", a, nil), 200, "")
	d.want(d.call("POST", "/v1/tasks", a, map[string]any{"type": "x", "lane": "narrow"}), 409, "state_conflict")
}
