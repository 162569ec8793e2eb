package api_test

import (
	"fmt"
	"testing"
	"time"
)

func TestUsageOverHTTP(t *testing.T) {
	s := newStage(t)
	w := s.register(s.acme, nil)
	reader := s.scoped(s.acme, nil, "usage:read")
	if rows := s.want(s.call("GET", "/v1/usage", reader, nil), 200, "").rows("data"); len(rows) != 0 {
		t.Errorf("nothing was used: %v", rows)
	}
	for i := range 4 {
		s.submit(s.acme, map[string]any{"type": fmt.Sprintf("t%d", i%2), "lane": []string{"io", "batch"}[i/2], "priority": 90 - i})
		lease := w.claim(1, 0)[0]
		report := done(lease, nil)
		if i == 3 {
			report = failed(lease, "invalid_input")
		}
		report["usage"] = map[string]any{"model": "small", "tokens_in": 10 + i, "tokens_out": 5, "cost_usd": 0.25}
		w.report(report)
	}
	today := time.Now().UTC().Format("2006-01-02")
	sum := s.want(s.call("GET", "/v1/usage", reader, nil), 200, "").rows("data")
	tasks, in, out, cost := 0.0, 0.0, 0.0, 0.0
	for _, r := range sum { // one, or two over midnight
		tasks, in, out, cost = tasks+r.num("tasks"), in+r.num("tokens_in"), out+r.num("tokens_out"), cost+r.num("cost_usd")
		if len(r.str("day")) != len(today) {
			t.Errorf("a day: %s", r.text)
		}
	}
	if tasks != 4 || in != 46 || out != 20 || cost != 1 {
		t.Errorf("all: %v tasks, %v, %v, $%v", tasks, in, out, cost)
	}
	for by, want := range map[string]string{
		"type": "[t0 2 0.5] [t1 2 0.5]", "lane": "[batch 2 0.5] [io 2 0.5]", "model": "[small 4 1]", "type,lane": "[t0 1 0.25] [t0 1 0.25] [t1 1 0.25] [t1 1 0.25]",
	} {
		got := ""
		for _, r := range s.want(s.call("GET", "/v1/usage?group_by="+by, reader, nil), 200, "").rows("data") {
			name := r.str("type") + r.str("model")
			if by == "lane" {
				name = r.str("lane")
			}
			got += fmt.Sprintf(" [%s %v %v]", name, r.num("tasks"), r.num("cost_usd"))
			if _, day := r.body["day"]; day {
				t.Errorf("by %s a day is answered", by)
			}
		}
		if got != " "+want {
			t.Errorf("by %s:%s", by, got)
		}
	}
	if rows := s.want(s.call("GET", "/v1/usage?to=2020-01-01T00:00:00Z", reader, nil), 200, "").rows("data"); len(rows) != 0 {
		t.Errorf("long ago: %v", rows)
	}
	for span, want := range map[string]float64{
		"from=2020-01-01&to=2020-01-31": 0, "to=2020-01-01": 0, "from=2020-01-01": 4, "from=1970-01-01T00:00:00Z": 4, "from=2020-01-01T00:00:00+01:00": 4,
		"from=2020-01-01&to=" + time.Now().UTC().AddDate(0, 0, 1).Format(time.DateOnly): 4,
	} {
		tasks := 0.0
		for _, r := range s.want(s.call("GET", "/v1/usage?group_by=type&"+span, reader, nil), 200, "").rows("data") {
			tasks += r.num("tasks")
		}
		if tasks != want {
			t.Errorf("%s: %v tasks", span, tasks)
		}
	}
	s.want(s.call("GET", "/v1/usage?from=2020-01-31&to=2020-01-31", reader, nil), 200, "") // all of that day
	s.refused(s.call("GET", "/v1/usage?from=2020-02-30", reader, nil), "query.from")
	if rows := s.want(s.call("GET", "/v1/usage", s.blue, nil), 200, "").rows("data"); len(rows) != 0 {
		t.Errorf("another tenant's: %v", rows)
	}
	s.refused(s.call("GET", "/v1/usage?group_by=week", reader, nil), "query.group_by")
	s.refused(s.call("GET", "/v1/usage?from=yesterday", reader, nil), "query.from")
	s.refused(s.call("GET", "/v1/usage?from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z", reader, nil), "query.from")
	s.want(s.call("GET", "/v1/usage?by=day", reader, nil), 400, "invalid_query")
	s.want(s.call("GET", "/v1/usage", s.scoped(s.acme, nil, "tasks:read"), nil), 403, "scope_required")
	s.want(s.call("GET", "/v1/usage", s.root, nil), 400, "tenant_required")
}

// What a worker reports of a priced model without a cost costs its tokens, wherever it is summed or shown.
func TestTokensWithoutACostAreShownWithTheirPrice(t *testing.T) {
	s := newStage(t)
	admin := s.scoped(s.acme, nil, "admin:read", "admin:write", "usage:read")
	s.want(s.call("PUT", "/v1/models/owl", admin, map[string]any{"provider": "outside", "input_usd_per_million": 2, "output_usd_per_million": 4}), 201, "")
	budget := s.want(s.call("POST", "/v1/budgets", admin, map[string]any{"scope": "tenant", "period": "total", "limit_usd": 5, "timezone": "UTC"}), 201, "").str("id")
	w := s.register(s.acme, nil)
	id := s.submit(s.acme, map[string]any{"type": "t", "model": "owl"}).str("id")
	report := done(w.claim(1, 5)[0], nil)
	report["usage"] = map[string]any{"tokens_in": 100_000, "tokens_out": 50_000}
	w.report(report)
	if got := s.want(s.call("GET", "/v1/budgets/"+budget, admin, nil), 200, "").num("spent_usd"); got != 0.4 {
		t.Errorf("spent $%v", got)
	}
	if rows := s.want(s.call("GET", "/v1/usage?group_by=model", admin, nil), 200, "").rows("data"); len(rows) != 1 || rows[0].num("cost_usd") != 0.4 {
		t.Errorf("used: %v", rows)
	}
	if rows := s.want(s.call("GET", "/v1/tasks/"+id+"/attempts", s.acme, nil), 200, "").rows("data"); len(rows) != 1 || rows[0].at("usage").num("cost_usd") != 0.4 {
		t.Errorf("attempts: %v", rows)
	}
}
