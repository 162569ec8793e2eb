package ui_test

import (
	"html"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"nightshift/models"
	"nightshift/models/postgres"
	"nightshift/scheduler/engine"
)

// audited are the actions of the tenant's audit, oldest first.
func (n *night) audited(slug string) (actions []string) {
	n.t.Helper()
	tenant, err := n.deps.World.Tenant(n.t.Context(), slug)
	n.must(err)
	rows, _, err := n.deps.World.Audit(n.t.Context(), postgres.AuditList{Tenant: tenant.Number, RowList: postgres.RowList{Limit: 200}})
	n.must(err)
	for _, row := range rows {
		if row.Actor.Kind == "user" && strings.HasPrefix(row.Actor.ID, "usr_") {
			actions = append(actions, row.Action)
		}
	}
	return actions
}

// Each button does what it says, and leaves an audit row of the person who pressed it.
// lane is the form of a lane as it is drawn, with what was typed over it.
func lane(typed ...string) url.Values {
	form := url.Values{"weight": {"1"}, "elastic": {"false"}, "high_water": {"1000"}}
	for i := 0; i < len(typed); i += 2 {
		form.Set(typed[i], typed[i+1])
	}
	return form
}

func TestEveryButtonActsAndIsAudited(t *testing.T) {
	n := newNight(t)
	b := n.signedIn("admin@north.example")
	word := b.word()
	held := n.submit(n.env, nil,
		engine.NewTask{Class: models.Class{Type: "a"}, NeedsApproval: true}, engine.NewTask{Class: models.Class{Type: "b"}, NeedsApproval: true})
	flow, dead := "/workflows/"+n.flow.Text("wf"), "/tasks/"+task(n.dead)
	for _, step := range []struct {
		path   string
		fields url.Values
		shows  string // on the page behind the redirect
		action string
	}{
		{"/tasks/" + task(held[0]) + "/edit", url.Values{"priority": {"90"}}, "<dd>90</dd>", "task.edit"},
		{"/tasks/" + task(held[0]) + "/edit", url.Values{"priority": {"900"}}, "Priority must be", ""},
		{"/tasks/" + task(held[0]) + "/edit", url.Values{"priority": {"<b>"}}, "Priority must be", ""},
		{"/tasks/" + task(held[0]) + "/approve", url.Values{"reason": {"read it"}}, "The task may start.", "task.approve"},
		{"/tasks/" + task(held[1]) + "/reject", nil, "Reason is required.", ""},
		{"/tasks/" + task(held[1]) + "/reject", url.Values{"reason": {"no"}}, "state-cancelled", "task.reject"},
		{flow + "/pause", url.Values{"reason": {"wait"}}, "state-paused", "workflow.pause"},
		{flow + "/resume", nil, "state-running", "workflow.resume"},
		{flow + "/skip", url.Values{"reason": {"x"}}, "Name the task by its key.", ""},
		{flow + "/rerun", url.Values{"from": {"no such"}}, "there is no task with the key", ""},
		{flow + "/rerun", url.Values{"from": {"ingest"}}, "This is a new workflow, from ingest on.", ""},
		{dead + "/retry", url.Values{"edited": {"1"}, "payload": {`{"name": "better"}`}}, "better", "task.redrive"},
		{flow + "/skip", url.Values{"key": {"chunk"}, "reason": {"known"}}, "chunk is passed over", "task.skip"},
		{"/tasks/" + task(n.done) + "/retry", nil, "This is a new task", ""},
		{"/tasks/" + task(n.ready) + "/retry", nil, "only a dead letter", ""},
		{"/lanes/io/drain", url.Values{"reason": {"moves"}}, "chip-draining", "lane.drain"},
		{"/lanes/io/resume", nil, "The lane io goes on.", "lane.resume"},
		{"/lanes/nowhere/pause", nil, "there is no lane", ""},
		{"/lanes/nowhere/edit", url.Values{"weight": {"2"}}, "there is no lane", ""},
		{"/lanes/compute/edit", lane("version", "1", "weight", "3", "max_concurrent", "7", "task_types", "llm.*, text.embed", "open_windows", `[{"cron": "0 22 * * *", "duration_seconds": 60, "timezone": "UTC"}]`), "The lane compute is changed.", "lane.edit"},
		{"/lanes/compute/edit", lane("max_concurrent", "", "version", "1"), "Somebody else changed this", ""},
	} {
		if step.fields == nil {
			step.fields = url.Values{}
		}
		step.fields.Set("csrf", word)
		got := b.post(step.path, step.fields)
		if got.status != 303 {
			t.Errorf("%s: %d %s", step.path, got.status, got.html)
			continue
		}
		if page := html.UnescapeString(b.get(got.location).html); !strings.Contains(strings.ToLower(page), strings.ToLower(step.shows)) {
			t.Errorf("%s %v: the page does not show %q: %s", step.path, step.fields, step.shows, noticeOf(page))
		}
		if actions := n.audited("north"); step.action != "" && !slices.Contains(actions, step.action) {
			t.Errorf("%s is not in the audit: %v", step.action, actions)
		}
	}
	for field, typed := range map[string]string{"weight": "NaN", "max_concurrent": "1.5", "open_windows": "{", "yields_to": "nowhere"} {
		form := lane("version", "2", field, typed)
		form.Set("csrf", word)
		if got := b.post("/lanes/compute/edit", form); got.status != 422 || !strings.Contains(got.html, "field-wrong") || !strings.Contains(got.html, html.EscapeString(typed)) {
			t.Errorf("%s %q: %d, told at no field", field, typed, got.status)
		}
	}
}

var noticeText = regexp.MustCompile(`(?s)<div class="notice.*?</div>`)

func noticeOf(page string) string { return noticeText.FindString(page) }

// A payload that can't be read is told at its field, and what was typed is kept.
func TestAnEditedPayloadIsKeptWhenItIsRefused(t *testing.T) {
	n := newNight(t)
	b := n.signedIn("admin@north.example")
	path := "/tasks/" + task(n.dead) + "/retry"
	if page := b.get(path); page.status != 200 || !strings.Contains(page.html, "&lt;/script&gt;") {
		t.Errorf("the form: %d", page.status)
	}
	got := b.post(path, url.Values{"csrf": {b.word()}, "edited": {"1"}, "payload": {`{"a": ` + nasty}, "reason": {"try <b>"}})
	if got.status != 422 || !strings.Contains(got.html, "This is no JSON") || !strings.Contains(html.UnescapeString(got.html), `{"a": `+nasty) || !strings.Contains(got.html, "try &lt;b&gt;") {
		t.Errorf("a broken payload: %d %s", got.status, got.html)
	}
	if page := n.signedIn("viewer@north.example").get(path); page.status != 403 {
		t.Errorf("a viewer is shown the form: %d", page.status)
	}
}

// Redriving a group: how many it would reach, a sample of them, at a pace.
func TestRedrivingAGroup(t *testing.T) {
	n := newNight(t)
	b := n.signedIn("admin@north.example")
	found := groupOf.FindStringSubmatch(b.get("/dead-letters").html)
	if found == nil {
		t.Fatal("no group")
	}
	if got := b.get("/dead-letters/count?fingerprint=" + found[1]); got.status != 200 || !strings.Contains(got.html, "1 dead letter of this group") {
		t.Errorf("counting: %d %s", got.status, got.html)
	}
	if got := n.signedIn("viewer@north.example").get("/dead-letters/count?fingerprint=" + found[1]); got.status != 403 {
		t.Errorf("a viewer counts: %d", got.status)
	}
	send := func(fields url.Values) string {
		fields.Set("csrf", b.word())
		fields.Set("fingerprint", found[1])
		return noticeOf(html.UnescapeString(b.get(b.post("/dead-letters/redrive", fields).location).html))
	}
	for _, c := range []struct {
		fields url.Values
		want   string
	}{
		{url.Values{"sample": {"0"}}, "Sample must be"},
		{url.Values{"rate": {"fast"}}, "Rate per second must be"},
		{url.Values{"payload_patch": {"{"}}, "no JSON"},
		{url.Values{"sample": {"1"}, "rate": {"2.5"}, "payload_patch": {`{"name": "mended"}`}}, "1 dead letter gets new attempts."},
	} {
		if got := send(c.fields); !strings.Contains(got, c.want) {
			t.Errorf("%v: %s", c.fields, got)
		}
	}
	n.await("the new payload", func() bool { return strings.Contains(b.get("/tasks/"+task(n.dead)).html, "mended") })
}

// A running task that has passed its soft timeout says so.
func TestASoftTimeoutIsShown(t *testing.T) {
	n := newNight(t)
	n.submit(n.env, nil, engine.NewTask{Class: models.Class{Type: "slow"}, SoftSeconds: 1, Priority: 100})
	var slow models.ID
	for _, lease := range n.claim(n.worker, 5) {
		if lease.Type == "slow" {
			slow = lease.Row.ID
		}
	}
	b := n.signedIn(operator)
	n.await("the warning", func() bool {
		return strings.Contains(b.get("/tasks/"+task(slow)).html, "longer than its soft timeout of 1 s")
	})
	if !strings.Contains(b.get("/tasks").html, "over its soft timeout") {
		t.Error("the list does not say it")
	}
}
