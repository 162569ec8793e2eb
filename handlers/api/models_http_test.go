package api_test

import (
	"fmt"
	"strings"
	"testing"
)

func TestModelsOverHTTP(t *testing.T) {
	s := newStage(t)
	whole := `{"provider":"openai","task_types":["llm.*"],"input_usd_per_million":0.15,"output_usd_per_million":0.6,"cached_usd_per_million":0.075,"context_tokens":128000,
		"quality":{"default":0.86,"llm.classify":0.95},"latency_ms":900,"vram_mb":null,"batch_discount":0.5,
		"off_peak":[{"cron":"0 22 * * *","duration_seconds":21600,"timezone":"Europe/Berlin","factor":0.5}],
		"fallbacks":["large"],"max_concurrent":8,"tokens_per_minute":100000,"enabled":true}`
	made := s.want(s.call("PUT", "/v1/models/small", s.acme, whole), 201, "")
	if made.header.Get("Location") != "/v1/models/small" || made.header.Get("ETag") != `"1"` || made.str("name") != "small" || made.body["platform"] != false {
		t.Errorf("made: %s", made.text)
	}
	read := s.want(s.call("GET", "/v1/models/small", s.acme, nil), 200, "")
	if read.text != made.text {
		t.Errorf("read %s, made %s", read.text, made.text)
	}
	for _, name := range strings.Fields(`provider task_types input_usd_per_million output_usd_per_million cached_usd_per_million context_tokens quality
		latency_ms vram_mb batch_discount off_peak fallbacks max_concurrent tokens_per_minute enabled`) {
		if _, there := read.body[name]; !there {
			t.Errorf("%s is not answered", name)
		}
	}
	if read.num("input_usd_per_million") != 0.15 || read.num("cached_usd_per_million") != 0.075 || read.at("quality").num("llm.classify") != 0.95 || read.rows("off_peak")[0].num("factor") != 0.5 {
		t.Errorf("read: %s", read.text)
	}
	s.want(s.call("PUT", "/v1/models/small", s.acme, `{"provider":"openai"}`, "If-Match", `"7"`), 412, "stale")
	again := s.want(s.call("PUT", "/v1/models/small", s.acme, `{"provider":"openai"}`, "If-Match", `"1"`), 200, "")
	if again.num("version") != 2 || again.num("input_usd_per_million") != 0 || again.body["max_concurrent"] != nil || again.body["enabled"] != true || len(again.rows("fallbacks")) != 0 {
		t.Errorf("a PUT keeps what it does not name: %s", again.text)
	}
	s.refused(s.call("PUT", "/v1/models/small", s.acme, `{"input_usd_per_million":1e-9}`), "body.input_usd_per_million")
	for location, bad := range map[string]string{
		"body.provider": `{"provider":"No Name"}`, "body.task_types[0]": `{"task_types":["A B"]}`, "body.input_usd_per_million": `{"input_usd_per_million":-1}`,
		"body.output_usd_per_million": `{"output_usd_per_million":"much"}`, "body.cached_usd_per_million": `{"cached_usd_per_million":1e9}`,
		"body.context_tokens": `{"context_tokens":0}`, "body.quality.default": `{"quality":{"default":1.2}}`, "body.quality.No Name": `{"quality":{"No Name":0.2}}`,
		"body.latency_ms": `{"latency_ms":-1}`, "body.vram_mb": `{"vram_mb":1.5}`, "body.batch_discount": `{"batch_discount":2}`,
		"body.off_peak[0].factor": `{"off_peak":[{"cron":"0 22 * * *","duration_seconds":60,"factor":-1}]}`, "body.off_peak[0]": `{"off_peak":[{"cron":"often","duration_seconds":60,"factor":0.5}]}`,
		"body.off_peak[0].duration_seconds": `{"off_peak":[{"cron":"0 22 * * *","factor":0.5}]}`,
		"body.fallbacks[0]":                 `{"fallbacks":["small"]}`, "body.fallbacks[1]": `{"fallbacks":["a","a"]}`, "body.max_concurrent": `{"max_concurrent":-1}`,
		"body.tokens_per_minute": `{"tokens_per_minute":0}`, "body.enabled": `{"enabled":"yes"}`, "body.speed": `{"speed":1}`,
	} {
		s.refused(s.call("PUT", "/v1/models/small", s.acme, bad), location)
	}
	s.want(s.call("PUT", "/v1/models/Not%20A%20Name", s.acme, `{}`), 404, "not_found")
	s.want(s.call("PUT", "/v1/models/small", s.acme, nil), 400, "invalid_json")
	s.want(s.call("GET", "/v1/models/nowhere", s.acme, nil), 404, "not_found")
	s.want(s.call("DELETE", "/v1/models/nowhere", s.acme, nil), 404, "not_found")
	reader := s.scoped(s.acme, nil, "tasks:read")
	s.want(s.call("GET", "/v1/models/small", reader, nil), 200, "")
	s.want(s.call("POST", "/v1/models/route", reader, `{"type":"a"}`), 200, "")
	s.want(s.call("PUT", "/v1/models/small", s.scoped(s.acme, nil, "admin:read", "tasks:write"), `{}`), 403, "scope_required")
	s.want(s.call("DELETE", "/v1/models/small", s.acme, nil, "If-Match", `"1"`), 412, "stale")
	s.want(s.call("DELETE", "/v1/models/small", s.acme, nil), 204, "")
	audit := s.want(s.call("GET", "/v1/audit?object=small", s.acme, nil), 200, "").rows("data")
	if len(audit) != 3 || audit[0].str("action") != "model.delete" || audit[1].at("before").num("max_concurrent") != 8 {
		t.Errorf("the audit has %v", audit)
	}
}

// The platform's models are seen by all, a tenant's own wins for it, and nobody sees another tenant's.
func TestModelsOfThePlatformAndOfTenants(t *testing.T) {
	s := newStage(t)
	for i, name := range []string{"c", "a", "b"} {
		s.want(s.call("PUT", "/v1/models/"+name, s.root, fmt.Sprintf(`{"provider":"p","input_usd_per_million":%d}`, i+1)), 201, "")
	}
	s.want(s.call("PUT", "/v1/models/b", s.acme, `{"provider":"own","input_usd_per_million":9}`), 201, "")
	s.want(s.call("PUT", "/v1/models/d", s.root, `{"provider":"own"}`, "Nightshift-Tenant", "acme"), 201, "")
	names := func(token, query string) string {
		t.Helper()
		var out []string
		for cursor := ""; ; {
			page := s.want(s.call("GET", "/v1/models?limit=2"+query+cursor, token, nil), 200, "")
			for _, row := range page.rows("data") {
				out = append(out, row.str("name")+":"+row.str("provider"))
			}
			if page.body["next_cursor"] == nil {
				return strings.Join(out, " ")
			}
			cursor = "&cursor=" + page.str("next_cursor")
		}
	}
	if got := names(s.acme, ""); got != "a:p b:own c:p d:own" {
		t.Errorf("one tenant sees %s", got)
	}
	if got := names(s.acme, "&order=desc"); got != "d:own c:p b:own a:p" {
		t.Errorf("backwards %s", got)
	}
	if got := names(s.blue, ""); got != "a:p b:p c:p" {
		t.Errorf("another sees %s", got)
	}
	if got := names(s.root, ""); got != "a:p b:p c:p" {
		t.Errorf("the platform sees %s", got)
	}
	if got := s.want(s.call("GET", "/v1/models?count=true", s.acme, nil), 200, ""); got.at("total").num("value") != 4 {
		t.Errorf("counted: %s", got.text)
	}
	s.want(s.call("GET", "/v1/models/d", s.blue, nil), 404, "not_found")
	s.want(s.call("DELETE", "/v1/models/d", s.blue, nil), 404, "not_found")
	s.want(s.call("DELETE", "/v1/models/a", s.acme, nil), 404, "not_found") // it is the platform's
	s.want(s.call("GET", "/v1/models/a", s.blue, nil), 200, "")
	s.want(s.call("DELETE", "/v1/models/b", s.acme, nil), 204, "")
	if got := s.want(s.call("GET", "/v1/models/b", s.acme, nil), 200, ""); got.str("provider") != "p" || got.body["platform"] != true {
		t.Errorf("without its own it sees %s", got.text)
	}
	s.taggedModels()
	if r := s.want(s.call("POST", "/v1/models/route", s.root, `{"type":"a"}`), 200, ""); r.str("chosen") != "c" || len(r.rows("ranking")) != 3 {
		t.Errorf("of the platform's: %s", r.text)
	}
}

// taggedModels puts a tenant's own over the platform's by the tag that was read: it is none of a version of its own.
func (s *stage) taggedModels() {
	s.t.Helper()
	read := func() string {
		return s.want(s.call("GET", "/v1/models/a", s.acme, nil), 200, "").header.Get("ETag")
	}
	before := read()
	if before != `"platform-1"` || s.want(s.call("GET", "/v1/models/a", s.root, nil), 200, "").header.Get("ETag") != `"1"` {
		s.t.Errorf("the platform's is tagged %s", before)
	}
	for _, tag := range []string{`"1"`, `"platform-2"`, `"platform-x"`} {
		s.want(s.call("PUT", "/v1/models/a", s.acme, `{"provider":"own"}`, "If-Match", tag), 412, "stale")
	}
	s.want(s.call("PUT", "/v1/models/a", s.root, `{"provider":"p","input_usd_per_million":2}`, "If-Match", before), 412, "stale")
	s.want(s.call("PUT", "/v1/models/a", s.root, `{"provider":"p","input_usd_per_million":2}`, "If-Match", `"1"`), 200, "")
	s.want(s.call("PUT", "/v1/models/a", s.acme, `{"provider":"own"}`, "If-Match", before), 412, "stale") // the platform has changed it
	s.want(s.call("DELETE", "/v1/models/a", s.acme, nil, "If-Match", read()), 404, "not_found")
	own := s.want(s.call("PUT", "/v1/models/a", s.acme, `{"provider":"own"}`, "If-Match", read()), 201, "")
	if own.header.Get("ETag") != `"1"` || own.body["platform"] != false || read() != `"1"` {
		s.t.Errorf("its own: %s %s", own.header.Get("ETag"), own.text)
	}
	s.want(s.call("PUT", "/v1/models/a", s.acme, `{"provider":"own"}`, "If-Match", `"platform-2"`), 412, "stale")
	s.want(s.call("DELETE", "/v1/models/a", s.acme, nil, "If-Match", `"platform-2"`), 412, "stale")
	s.want(s.call("PUT", "/v1/models/a", s.acme, `{"provider":"own"}`, "If-Match", `"1"`), 200, "")
	s.want(s.call("DELETE", "/v1/models/a", s.acme, nil, "If-Match", `"2"`), 204, "")
}

func (s *stage) threeModels() {
	s.t.Helper()
	for name, put := range map[string]string{
		"small":  `{"provider":"p","input_usd_per_million":1,"output_usd_per_million":1,"quality":{"default":0.7}}`,
		"middle": `{"provider":"p","input_usd_per_million":3,"output_usd_per_million":3,"quality":{"default":0.85,"llm.classify":0.6},"context_tokens":8000}`,
		"large":  `{"provider":"p","input_usd_per_million":9,"output_usd_per_million":9,"quality":{"default":0.97},"latency_ms":4000}`,
	} {
		s.want(s.call("PUT", "/v1/models/"+name, s.acme, put), 201, "")
	}
}

func TestARouteOverHTTP(t *testing.T) {
	s := newStage(t)
	none := s.want(s.call("POST", "/v1/models/route", s.acme, `{"type":"llm.sum","model":{"auto":true}}`), 200, "")
	if chosen, there := none.body["chosen"]; !there || chosen != nil || len(none.rows("ranking")) != 0 || none.str("reason") == "" {
		t.Errorf("without models: %s", none.text)
	}
	s.threeModels()
	for body, want := range map[string]string{
		`{"type":"llm.sum"}`: "small",
		`{"type":"llm.sum","model":{"auto":true,"quality_target":0.8}}`:                                                           "middle",
		`{"type":"llm.classify","model":{"auto":true,"quality_target":0.8}}`:                                                      "large",
		`{"type":"llm.sum","model":{"auto":true,"quality_target":0.8},"resources":{"tokens":9000}}`:                               "large",
		`{"type":"llm.sum","model":{"auto":true,"quality_target":0.9,"max_latency_ms":1000}}`:                                     "",
		`{"type":"llm.sum","model":{"auto":true,"candidates":["large"]},"lane":"realtime","payload":{"prompt":"…"},"priority":3}`: "large",
		`{"type":"llm.sum","model":"middle"}`:                                                                                     "middle",
		`{"type":"llm.sum","model":"unheard"}`:                                                                                    "unheard",
	} {
		got := s.want(s.call("POST", "/v1/models/route", s.acme, body), 200, "")
		if got.str("chosen") != want {
			t.Errorf("%s: %s", body, got.text)
		}
		if rows := got.rows("ranking"); want != "" && want != "unheard" {
			first := rows[0]
			if first.str("model") != want || first.num("cost_usd") <= 0 || first.num("quality_low") <= 0 || first.str("why") == "" {
				t.Errorf("%s ranks %s", body, got.text)
			}
		}
	}
	gone := s.want(s.call("POST", "/v1/models/route", s.acme, `{"type":"llm.sum","model":{"auto":true,"quality_target":0.8,"candidates":["unheard","small","large"]}}`), 200, "").rows("ranking")
	if len(gone) != 3 || gone[0].str("model") != "large" || gone[1].str("model") != "small" || gone[2].str("model") != "unheard" || gone[2].str("why") == "" {
		t.Fatalf("candidates of which one does not exist: %v", gone)
	}
	for _, name := range []string{"cost_usd", "quality_low"} {
		if v, there := gone[2].body[name]; !there || v != nil || gone[1].body[name] == nil {
			t.Errorf("%s of one that does not exist: %v", name, gone)
		}
	}
	s.refused(s.call("POST", "/v1/models/route", s.acme, `{"model":{"auto":true}}`), "body.type")
	s.refused(s.call("POST", "/v1/models/route", s.acme, `{"type":"a","model":{"auto":true,"quality_target":2}}`), "body.model.quality_target")
	s.refused(s.call("POST", "/v1/models/route", s.acme, `{"type":"a","lane":"nowhere"}`), "body.lane")
	if rows := s.want(s.call("GET", "/v1/tasks", s.acme, nil), 200, "").rows("data"); len(rows) != 0 {
		t.Errorf("a route made %v", rows)
	}
	dry := s.want(s.call("POST", "/v1/tasks?dry_run=true", s.acme, `{"type":"llm.sum","model":{"auto":true,"quality_target":0.8}}`), 200, "")
	if dry.str("model") != "middle" || dry.num("estimated_cost_usd") <= 0 {
		t.Errorf("dry: %s", dry.text)
	}
}

func TestATaskGetsAModelOverHTTP(t *testing.T) {
	s := newStage(t)
	s.threeModels()
	made := s.submit(s.acme, map[string]any{"type": "llm.sum", "model": map[string]any{"auto": true, "quality_target": 0.8, "candidates": []string{"middle", "large"}}})
	for _, v := range []reply{made, s.task(s.acme, made.str("id"))} {
		m := v.at("model")
		if m.str("chosen") != "middle" || m.str("reason") == "" || m.at("requested").body["auto"] != true || m.at("requested").num("quality_target") != 0.8 || v.at("cost").num("estimated_usd") <= 0 {
			t.Errorf("its model: %s", v.text)
		}
		if _, there := m.at("requested").body["max_latency_ms"]; !there {
			t.Errorf("what was not wanted is null: %s", v.text)
		}
	}
	plain := s.submit(s.acme, map[string]any{"type": "llm.sum", "model": "small"})
	if m := plain.at("model"); m.str("requested") != "small" || m.str("chosen") != "small" {
		t.Errorf("by name: %s", plain.text)
	}
	w := s.register(s.acme, map[string]any{"task_types": []string{"llm.*"}})
	models := map[string]string{}
	for _, task := range w.claim(5, 0) {
		models[task.str("task_id")] = task.str("model")
		s.want(s.call("POST", "/v1/workers/"+w.id+"/results", s.acme, map[string]any{"results": []any{map[string]any{
			"lease_token": task.str("lease_token"), "status": "failed", "error": map[string]any{"class": "quality_too_low", "message": "it missed the point"},
		}}}, "Nightshift-Session", w.session), 200, "")
	}
	if models[made.str("id")] != "middle" || models[plain.str("id")] != "small" {
		t.Fatalf("claimed: %v", models)
	}
	s.await("the next better model", func() bool {
		v := s.task(s.acme, made.str("id"))
		return v.str("state") == "ready" && v.at("model").str("chosen") == "large"
	})
	attempts := s.want(s.call("GET", "/v1/tasks/"+made.str("id")+"/attempts", s.acme, nil), 200, "").rows("data")
	if len(attempts) != 1 || attempts[0].str("model") != "middle" {
		t.Errorf("attempts: %v", attempts)
	}
	s.want(s.call("POST", "/v1/tasks/"+made.str("id")+"/quality", s.acme, `{"score":0.2,"source":"people"}`), 200, "")

	waits := s.submit(s.acme, map[string]any{"type": "llm.sum", "model": map[string]any{"auto": true, "quality_target": 0.99}})
	if waits.str("state") != "ready" || waits.at("model").body["chosen"] != nil || waits.at("model").str("reason") == "" || waits.rows("blocked_by")[0].str("reason") != "model_unavailable" {
		t.Errorf("no model fits: %s", waits.text)
	}
	why := s.want(s.call("GET", "/v1/tasks/"+waits.str("id")+"/explain", s.acme, nil), 200, "").rows("blocked_by")
	if len(why) == 0 || why[0].str("reason") != "model_unavailable" || !strings.Contains(why[0].str("detail"), "0.99 is wanted") {
		t.Errorf("explained by %v", why)
	}
	s.want(s.call("PUT", "/v1/models/best", s.acme, `{"provider":"p","quality":{"default":1}}`), 201, "")
	s.await("a model for it", func() bool { return s.task(s.acme, waits.str("id")).at("model").str("chosen") == "best" })

	ended := s.submit(s.acme, map[string]any{"type": "other", "model": map[string]any{"auto": true, "quality_target": 0.8}})
	s.want(s.call("POST", "/v1/tasks/"+ended.str("id")+"/cancel", s.acme, map[string]any{"reason": "again"}), 200, "")
	again := s.want(s.call("POST", "/v1/tasks/"+ended.str("id")+"/retry", s.acme, `{}`), 201, "")
	if again.at("model").at("requested").num("quality_target") != 0.8 {
		t.Errorf("tried again: %s", again.text)
	}
	list := s.want(s.call("GET", "/v1/tasks?type=other", s.acme, nil), 200, "").rows("data")
	if len(list) != 2 || list[0].at("model").at("requested").body["auto"] != true {
		t.Errorf("listed: %v", list)
	}
}

// A body too large for one command chooses models too, and what it wants stands beside its tasks.
func TestALargeBodyGetsModelsOverHTTP(t *testing.T) {
	s := newStage(t)
	s.threeModels()
	tasks := make([]any, 1_200)
	for i := range tasks {
		target := 0.0
		if i%2 == 1 {
			target = 0.9
		}
		tasks[i] = map[string]any{"type": "llm.sum", "model": map[string]any{"auto": true, "quality_target": target}}
	}
	rows := s.want(s.call("POST", "/v1/tasks/batch", s.acme, map[string]any{"tasks": tasks}), 201, "").rows("data")
	s.await("all to be ready", func() bool { return s.task(s.acme, rows[1_199].str("id")).str("state") == "ready" })
	for i, want := range map[int]string{0: "small", 1: "large", 1_198: "small", 1_199: "large"} {
		if m := s.task(s.acme, rows[i].str("id")).at("model"); m.str("chosen") != want || m.at("requested").body["auto"] != true {
			t.Errorf("number %d: %v", i, m.body)
		}
	}
	s.want(s.call("DELETE", "/v1/models/small", s.acme, nil), 204, "")
	s.await("another model for the rest", func() bool {
		return s.task(s.acme, rows[0].str("id")).at("model").str("chosen") == "middle" && s.task(s.acme, rows[1_198].str("id")).at("model").str("chosen") == "middle"
	})
}
