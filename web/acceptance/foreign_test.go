package acceptance

import (
	"strings"
	"testing"
)

// To the worker protocol too, what is another tenant's looks like what never was.
func TestForeignWorkersAndLeases(t *testing.T) {
	d := open(t)
	_, a := d.tenant("northwind")
	_, b := d.tenant("southwind")
	h, stranger := d.hand(a, nil), d.hand(b, nil)
	id := d.submit(a, object{"type": "x"})
	_, token, _ := h.one()
	alike := func(method, path, own, never string, body any, headers ...string) {
		t.Helper()
		ask := func(name string) (int, string) {
			r := d.call(method, strings.Replace(path, "ID", name, 1), b, body, append(headers, "X-Request-Id", "one-and-the-same")...)
			return r.status, strings.ReplaceAll(r.text, name, "ID")
		}
		status, foreign := ask(own)
		_, unknown := ask(never)
		if status != 404 || foreign != unknown {
			t.Errorf("%s %s: foreign %d %s, unknown %s", method, path, status, foreign, unknown)
		}
	}
	for path, body := range map[string]any{"": nil, "/claim": object{}, "/drain": object{}, "/heartbeat": object{"leases": []any{}}, "/results": object{"results": []any{object{"lease_token": token, "status": "succeeded"}}}} {
		method := "POST"
		if path == "" {
			method = "GET"
			alike("DELETE", "/v1/workers/ID", h.id, "wrk_01arz3ndektsv4rrffq69g5fav", nil)
		}
		alike(method, "/v1/workers/ID"+path, h.id, "wrk_01arz3ndektsv4rrffq69g5fav", body, "Nightshift-Session", stranger.session)
	}
	for action, body := range map[string]object{"complete": {}, "fail": failure("internal"), "heartbeat": {}, "checkpoint": {"checkpoint": 1}} {
		for _, lease := range []string{token, "lt_nobody"} {
			alike("POST", "/v1/tasks/ID/"+action, id, "task_01arz3ndektsv4rrffq69g5fav", body, "Nightshift-Lease", lease)
		}
	}
	d.same("a foreign lease in a beat", stranger.want(stranger.ask("/heartbeat", object{"leases": []any{object{"lease_token": token}}}), 200, "").str("leases.0.state"), "lost")
	d.same("and in a result", stranger.report(token, "succeeded", nil).str("results.0.code"), "lease_lost")
	d.same("after all that", d.task(a, id).str("state"), "running")
	// Nor does a lease that has ended tell a stranger what became of it, or take what he says it used.
	h.report(token, "succeeded", nil)
	other := d.submit(a, object{"type": "x"})
	_, back, _ := h.one()
	h.report(back, "released", nil)
	for _, ended := range []string{token, back} {
		r := stranger.want(stranger.ask("/results", object{"results": []any{object{"lease_token": ended, "status": "succeeded", "usage": object{"tokens_in": 777}}}}), 200, "")
		d.same("a foreign lease that has ended", strings.ReplaceAll(r.text, ended, ""), `{"results":[{"lease_token":"","accepted":false,"state":null,"code":"lease_lost","usage_recorded":false}]}`)
	}
	for _, task := range []string{id, other} {
		d.same("what strangers say is in nobody's books", d.task(a, task).at("cost.tokens_in"), 0.0)
	}
	d.want(d.call("POST", "/v1/tasks/"+other+"/cancel", a, nil), 200, "")
	if ids, _, _ := stranger.claim(10, 0); len(ids) > 0 {
		t.Errorf("a tenant's worker got %v of another", ids)
	}
	shared := d.hand(d.key("", "workers:register"), nil)
	d.submit(a, object{"type": "x"})
	d.submit(b, object{"type": "x"})
	if ids, _, _ := shared.claim(10, 0); len(ids) != 2 {
		t.Errorf("the platform's worker got %v", ids)
	}
}
