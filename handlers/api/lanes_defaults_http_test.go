package api_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// What a lane has by default its tasks get that say nothing themselves, by whatever way they come; what they got stays theirs.
func TestLanesHaveDefaults(t *testing.T) {
	s := newStage(t)
	a := s.admin("acme")
	given := map[string]any{
		"timeout": map[string]any{"soft_seconds": 20, "hard_seconds": 40, "total_seconds": 400}, "expires_in_seconds": 5000.5,
		"retry_policy": map[string]any{"max_attempts": 7, "backoff": "fixed", "initial_delay_seconds": 600, "classes": map[string]any{"timeout": map[string]any{"max_attempts": 2}}},
	}
	const shown = `{"expires_in_seconds":5001,"retry_policy":{"backoff":"fixed","classes":{"timeout":{"max_attempts":2}},"initial_delay_seconds":600,"jitter":true,"max_attempts":7,"max_delay_seconds":600},"timeout":{"hard_seconds":40,"soft_seconds":20,"total_seconds":400}}`
	made := s.want(s.call("POST", "/v1/lanes", a, map[string]any{"name": "strict", "kind": "io", "defaults": given}), 201, "")
	read := s.want(s.call("GET", "/v1/lanes/strict", a, nil), 200, "")
	for _, r := range []reply{made, read} {
		if text, err := json.Marshal(r.body["defaults"]); err != nil || string(text) != shown {
			t.Errorf("shown: %s", r.text)
		}
	}
	terms := func(r reply) string {
		return strings.TrimSpace(fmt.Sprintln(r.at("timeout").body["soft_seconds"], r.at("timeout").body["hard_seconds"], r.at("timeout").body["total_seconds"], r.body["expires_in_seconds"], r.at("retry_policy").body["max_attempts"], r.at("retry_policy").body["backoff"]))
	}
	const all, own, usual = "20 40 400 5001 7 fixed", "<nil> 10 400 60 2 linear", "<nil> 300 <nil> <nil> 3 exponential"
	says := map[string]any{"type": "t", "lane": "strict", "timeout": map[string]any{"hard_seconds": 10}, "expires_in_seconds": 60, "retry_policy": map[string]any{"max_attempts": 2, "backoff": "linear"}}
	plain := map[string]any{"type": "t", "lane": "strict"}
	for want, body := range map[string]map[string]any{all: plain, own: says} {
		if dry := s.want(s.call("POST", "/v1/tasks?dry_run=true", a, body), 200, ""); terms(dry) != want {
			t.Errorf("dry: %s, want %s: %s", terms(dry), want, dry.text)
		}
		r := s.want(s.call("POST", "/v1/tasks", a, body), 201, "")
		stands := s.want(s.call("GET", "/v1/tasks/"+r.str("id"), a, nil), 200, "")
		if terms(r) != want || terms(stands) != want || r.body["max_attempts"] != stands.body["max_attempts"] || stands.str("expires_at") == "" {
			t.Errorf("%s and %s, want %s: %s", terms(r), terms(stands), want, stands.text)
		}
	}
	many := make([]string, 1200) // so many are written by the replica
	for i := range many {
		many[i] = `{"key":"k` + fmt.Sprint(i) + `","type":"t","lane":"strict","delay_seconds":9000}`
	}
	flow := s.want(s.call("POST", "/v1/workflows?return=minimal", a, `{"name":"n","tasks":[`+strings.Join(many, ",")+`]}`), 201, "").str("id")
	var rows []reply
	s.await("the body to be in", func() bool {
		rows = s.call("GET", "/v1/tasks?limit=500&state=scheduled&workflow_id="+flow, a, nil).rows("data")
		return len(rows) == 500
	})
	for _, r := range rows[:3] {
		if terms(r) != all {
			t.Errorf("of a large body: %s: %s", terms(r), r.text)
		}
	}
	// The policy is what decides: fixed ten minutes, not the usual second.
	w := s.register(s.acme, nil)
	s.want(s.call("POST", "/v1/lanes", a, map[string]any{"name": "slow", "kind": "io", "defaults": map[string]any{"retry_policy": map[string]any{"initial_delay_seconds": 600, "backoff": "fixed", "jitter": false}}}), 201, "")
	late := s.want(s.call("POST", "/v1/tasks", a, map[string]any{"type": "slow", "lane": "slow", "priority": 100}), 201, "").str("id")
	for {
		lease := w.claim(1, 5)[0]
		if w.report(map[string]any{"lease_token": lease.str("lease_token"), "status": "failed", "error": map[string]any{"class": "network"}}); lease.str("task_id") == late {
			break
		}
	}
	failed := s.want(s.call("GET", "/v1/tasks/"+late, a, nil), 200, "")
	next, err := time.Parse(time.RFC3339, failed.str("next_attempt_at"))
	at, err2 := time.Parse(time.RFC3339, failed.str("updated_at"))
	if err != nil || err2 != nil || next.Sub(at) != 600*time.Second {
		t.Errorf("after a failure: %s", failed.text)
	}
	// An edit merges, and touches nobody that is there.
	before := s.want(s.call("POST", "/v1/tasks", a, plain), 201, "").str("id")
	merged := s.want(s.call("PATCH", "/v1/lanes/strict", a, `{"defaults":{"timeout":{"soft_seconds":null,"hard_seconds":30},"retry_policy":{"max_attempts":9},"expires_in_seconds":null}}`), 200, "")
	if terms(merged.at("defaults")) != "<nil> 30 400 <nil> 9 fixed" {
		t.Errorf("merged: %s", merged.text)
	}
	if r := s.call("GET", "/v1/tasks/"+before, a, nil); terms(r) != all {
		t.Errorf("one that was there: %s", r.text)
	}
	if r := s.want(s.call("POST", "/v1/tasks", a, plain), 201, ""); terms(r) != "<nil> 30 400 <nil> 9 fixed" {
		t.Errorf("after the edit: %s", r.text)
	}
	gone := s.want(s.call("PATCH", "/v1/lanes/strict", a, `{"defaults":null}`), 200, "")
	if r := s.want(s.call("POST", "/v1/tasks", a, plain), 201, ""); gone.body["defaults"] != nil || terms(r) != usual {
		t.Errorf("without defaults: %s and %s", gone.text, r.text)
	}
	for at, bad := range map[string]string{
		"body.defaults.timeout.soft_seconds": `{"timeout":{"soft_seconds":9,"hard_seconds":3}}`, "body.defaults.timeout.hard_seconds": `{"timeout":{"hard_seconds":0}}`,
		"body.defaults.expires_in_seconds": `{"expires_in_seconds":-1}`, "body.defaults.retry_policy.backoff": `{"retry_policy":{"backoff":"wild"}}`,
		"body.defaults.retry_policy.max_attempts": `{"retry_policy":{"max_attempts":0}}`, "body.defaults.retry_policy.classes.nosuch": `{"retry_policy":{"classes":{"nosuch":{"max_attempts":1}}}}`,
		"body.defaults.retry_policy.max_delay_seconds": `{"retry_policy":{"initial_delay_seconds":9,"max_delay_seconds":3}}`, "body.defaults.more": `{"more":1}`,
	} {
		s.refused(s.call("PATCH", "/v1/lanes/strict", a, `{"defaults":`+bad+`}`), at)
	}
}

// A soft timeout comes before the hard one, wherever the hard one is from: what says otherwise is refused, by whatever way it comes.
func TestASoftTimeoutComesFirst(t *testing.T) {
	s := newStage(t)
	a := s.admin("acme")
	s.want(s.call("POST", "/v1/lanes", a, `{"name":"strict","kind":"io","defaults":{"timeout":{"hard_seconds":40}}}`), 201, "")
	for lane, hard := range map[string]int{"strict": 40, "realtime": 60, "io": 300} { // the lane's own, or its kind's
		task := func(soft int, more string) string {
			return fmt.Sprintf(`{"type":"t","lane":%q,"timeout":{"soft_seconds":%d}%s}`, lane, soft, more)
		}
		for path, c := range map[string]struct{ body, at string }{
			"/v1/tasks":       {task(hard+1, ""), "body"},
			"/v1/tasks/batch": {`{"tasks":[` + task(hard, "") + `,` + task(hard+1, "") + `]}`, "body.tasks[1]"},
			"/v1/workflows":   {`{"name":"n","tasks":[` + task(hard+1, `,"key":"k"`) + `]}`, "body.tasks[0]"},
			"/v1/batches":     {`{"name":"n","items":[1],"task":` + task(hard+1, "") + `}`, "body.task"},
		} {
			r := s.call("POST", path, a, c.body)
			if s.refused(r, c.at+".timeout.soft_seconds"); !strings.Contains(r.text, fmt.Sprint(hard, " s")) {
				t.Errorf("%s in %s: %s", path, lane, r.text)
			}
		}
		dry := s.want(s.call("POST", "/v1/tasks?dry_run=true", a, task(hard+1, "")), 200, "")
		if rows := dry.rows("refusals"); len(rows) != 1 || !strings.Contains(rows[0].text+dry.text, "body.timeout.soft_seconds") {
			t.Errorf("dry in %s: %s", lane, dry.text)
		}
		at := s.want(s.call("POST", "/v1/tasks", a, task(hard, "")), 201, "").at("timeout")
		if at.num("soft_seconds") != float64(hard) || at.num("hard_seconds") != float64(hard) {
			t.Errorf("at the hard timeout in %s: %v", lane, at.body)
		}
		s.want(s.call("POST", "/v1/tasks", a, strings.Replace(task(hard+1, ""), `"soft_seconds"`, fmt.Sprintf(`"hard_seconds":%d,"soft_seconds"`, hard+1), 1)), 201, "")
	}
	many := make([]string, 1200) // so many are written by the replica
	for i := range many {
		many[i] = fmt.Sprintf(`{"type":"t","lane":"strict","delay_seconds":9000,"timeout":{"soft_seconds":%d}}`, 20+i/1199*21)
	}
	s.refused(s.call("POST", "/v1/tasks/batch", a, `{"tasks":[`+strings.Join(many, ",")+`]}`), "body.tasks[1199].timeout.soft_seconds")
	// Of a lane's own defaults it holds too, when its kind changes as well.
	s.refused(s.call("POST", "/v1/lanes", a, `{"name":"late","kind":"realtime","defaults":{"timeout":{"soft_seconds":61}}}`), "body.defaults.timeout.soft_seconds")
	s.want(s.call("POST", "/v1/lanes", a, `{"name":"late","kind":"io","defaults":{"timeout":{"soft_seconds":61}}}`), 201, "")
	s.refused(s.call("PATCH", "/v1/lanes/late", a, `{"kind":"realtime"}`), "body.defaults.timeout.soft_seconds")
	s.refused(s.call("PATCH", "/v1/lanes/late", a, `{"defaults":{"timeout":{"hard_seconds":60}}}`), "body.defaults.timeout.soft_seconds")
}
