package acceptance

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
)

func TestLists(t *testing.T) {
	d := open(t)
	_, a := d.tenant("northwind")
	_, b := d.tenant("southwind")
	var made []string
	for i := range 7 {
		made = append(made, d.submit(a, map[string]any{"type": fmt.Sprint("t.", i%2), "labels": map[string]any{"customer": string(rune('a' + i%2))}}))
	}
	ids := func(query string) (out []string, r reply) {
		t.Helper()
		r = d.want(d.call("GET", "/v1/tasks?"+query, a, nil), 200, "")
		for i := range r.list("data") {
			out = append(out, r.str(fmt.Sprintf("data.%d.id", i)))
		}
		return out, r
	}
	oldest, _ := ids("order=asc")
	d.same("oldest first", oldest, made)
	newest, _ := ids("type=t.0,t.1&state=ready&state=running")
	slices.Reverse(newest)
	d.same("newest first", newest, made)
	first, page := ids("limit=3&count=true")
	d.same("the count", page.at("total"), map[string]any{"value": 7.0, "relation": "eq"})
	cursor := page.str("next_cursor")
	all := first
	for next := cursor; next != ""; {
		more, r := ids("limit=3&cursor=" + next)
		all, next = append(all, more...), r.str("next_cursor")
	}
	slices.Reverse(all)
	d.same("page by page", all, made)
	if some, _ := ids("label.customer=a"); len(some) != 4 {
		t.Errorf("by label: %v", some)
	}
	if _, r := ids("limit=9999"); len(r.list("data")) != 7 || strings.Contains(r.text, `"payload"`) {
		t.Errorf("rows: %.300s", r.text)
	}
	if _, r := ids("limit=1&include=payload,result"); !strings.Contains(r.text, `"payload"`) || !strings.Contains(r.text, `"result"`) {
		t.Errorf("with more: %.300s", r.text)
	}
	for _, query := range []string{"limit=0", "limit=-1", "limit=", "limit=1.5", "limit=1,2", "limit=1&limit=2", "order=up", "count=perhaps", "colour=red", "Limit=1", "type=%00", "type=%ff", "label=x"} {
		name, _, _ := strings.Cut(query, "=")
		d.want(d.call("GET", "/v1/tasks?"+query, a, nil), 400, "invalid_query", "query."+name)
	}
	d.want(d.call("GET", "/v1/tasks?state=sleepy", a, nil), 422, "validation_failed", "query.state")
	d.want(d.call("GET", "/v1/tasks?kind=sleepy", a, nil), 422, "validation_failed", "query.kind")
	forged := []string{"x", strings.Repeat("a", 5000), cursor + "a", cursor[1:]}
	for i := range len(cursor) - 1 { // the last letter has bits to spare
		other := byte('A')
		if cursor[i] == other {
			other = 'B'
		}
		forged = append(forged, cursor[:i]+string(other)+cursor[i+1:])
	}
	for _, f := range forged {
		d.want(d.call("GET", "/v1/tasks?limit=3&cursor="+url.QueryEscape(f), a, nil), 400, "invalid_cursor")
	}
	for _, query := range []string{"&type=t.0", "&order=asc"} {
		d.want(d.call("GET", "/v1/tasks?limit=3&cursor="+cursor+query, a, nil), 400, "invalid_cursor")
	}
	d.want(d.call("GET", "/v1/workflows?limit=3&cursor="+cursor, a, nil), 400, "invalid_cursor")
	d.want(d.call("GET", "/v1/tasks?limit=3&cursor="+cursor, b, nil), 400, "invalid_cursor")
	d.want(d.call("GET", "/v1/tasks?limit=3&cursor="+cursor, d.root, nil, "Nightshift-Tenant", "northwind"), 200, "")
}

func TestEditsHonourIfMatch(t *testing.T) {
	d := open(t)
	_, a := d.tenant("northwind")
	task := "/v1/tasks/" + d.submit(a, map[string]any{"type": "a"})
	read := d.want(d.call("GET", task, a, nil), 200, "").header.Get("ETag")
	d.want(d.call("PATCH", task, a, map[string]any{"priority": 60}, "If-Match", `"1"`), 412, "stale")
	next := d.want(d.call("PATCH", task, a, map[string]any{"priority": 60}, "If-Match", read), 200, "")
	d.want(d.call("PATCH", task, a, map[string]any{"priority": 70}, "If-Match", read), 412, "stale")
	d.want(d.call("PATCH", task, a, map[string]any{"priority": 70}, "If-Match", next.header.Get("ETag")), 200, "")
	d.want(d.call("POST", "/v1/lanes", a, map[string]any{"name": "mine", "kind": "io"}), 201, "")
	d.want(d.call("POST", "/v1/lanes", a, map[string]any{"name": "mine", "kind": "io"}), 409, "state_conflict")
	for path, token := range map[string]string{"/v1/lanes/mine": a, "/v1/tenants/northwind": d.root, "/v1/kinds/io": d.root} {
		old := d.want(d.call("GET", path, token, nil), 200, "").header.Get("ETag")
		if !strings.HasPrefix(old, `"`) {
			t.Errorf("%s has the ETag %q", path, old)
		}
		d.want(d.call("PATCH", path, token, map[string]any{"weight": 3}, "If-Match", `"another"`), 412, "stale")
		edited := d.want(d.call("PATCH", path, token, map[string]any{"weight": 3}, "If-Match", old), 200, "")
		if edited.header.Get("ETag") == old || edited.at("weight") != 3.0 {
			t.Errorf("%s after the edit: %s %s", path, edited.header.Get("ETag"), edited.text)
		}
		d.want(d.call("PATCH", path, token, map[string]any{"weight": 4}, "If-Match", old), 412, "stale")
		d.want(d.call("PATCH", path, token, map[string]any{"weight": 0}), 422, "validation_failed", "body.weight")
		d.want(d.call("PATCH", path, token, map[string]any{"colour": 0}), 422, "validation_failed", "body.colour")
	}
	d.want(d.call("DELETE", "/v1/lanes/mine", a, nil, "If-Match", `"another"`), 412, "stale")
	d.want(d.call("DELETE", "/v1/lanes/nowhere", a, nil, "If-Match", `"another"`), 404, "not_found")
	d.want(d.call("DELETE", "/v1/lanes/batch", a, nil), 409, "state_conflict")
	d.want(d.call("DELETE", "/v1/lanes/mine", a, nil), 204, "")
}
