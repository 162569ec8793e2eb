package ui_test

import (
	"html"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// nightly is a schedule as the editor sends it.
func nightly(more ...string) url.Values {
	form := url.Values{
		"name": {"nightly"}, "kind": {"cron"}, "expression": {"30 2 * * *"}, "timezone": {"Europe/Lisbon"}, "dst_gap": {"skip"}, "dst_overlap": {"both"},
		"misfire_policy": {"catch_up"}, "misfire_grace_seconds": {"90"}, "catch_up_limit": {"7"}, "overlap_policy": {"queue_one"}, "jitter_seconds": {"5"},
		"calendar_exclude": {"2030-12-25\n2030-12-26"}, "end_at": {"2040-01-02T03:04"}, "enabled": {"yes"}, "description": {"sums up " + nasty},
		"task_type": {"report.write"}, "task_lane": {"batch"}, "task_priority": {"70"}, "task_payload": {`{"day": "{{scheduled_for}}"}`},
		"task_more": {`{"labels": {"customer": "a"}}`}, "runbook_url": {"https://runbooks.example/nightly"},
	}
	for i := 0; i+1 < len(more); i += 2 {
		form.Set(more[i], more[i+1])
	}
	return form
}

// send posts a form and gives what is shown then: the answer itself, or the page behind the redirect.
func (b *browser) send(path string, form url.Values) seen {
	b.s.t.Helper()
	if form = maps.Clone(form); form == nil {
		form = url.Values{}
	}
	form.Set("csrf", b.word())
	got := b.post(path, form)
	if got.status == 303 {
		got.html = b.get(got.location).html
	}
	got.html = html.UnescapeString(got.html)
	return got
}

func (s *stage) shows(got seen, status int, texts ...string) {
	s.t.Helper()
	if got.status != status {
		s.t.Errorf("answered %d, not %d: %s", got.status, status, mainOf(got.html))
	}
	for _, text := range texts {
		if !strings.Contains(got.html, text) {
			s.t.Errorf("the page does not show %q: %s", text, mainOf(got.html))
		}
	}
}

// mainOf is a page without its frame.
func mainOf(page string) string { return page[max(0, strings.Index(page, "<main")):] }

var valueOf = func(name string) *regexp.Regexp {
	return regexp.MustCompile(`name="` + name + `"[^>]* value="([^"]*)"`)
}

func TestAScheduleFromTheEditorToItsRuns(t *testing.T) {
	n := newNight(t)
	b := n.signedIn("admin@north.example")
	n.shows(b.get("/schedules"), 200, "No schedules", "New schedule")
	n.shows(b.get("/schedules/new"), 200, "0 2 * * *", "Europe/Lisbon", `hx-get="/schedules/preview`)
	made := b.send("/schedules", nightly())
	n.shows(made, 303, "The schedule is there.", "At 02:30", "Europe/Lisbon", "catch up, after 90 s", "2030-12-25, 2030-12-26", "sums up "+nasty, "Version 1", "report.write")
	path := made.location
	if strings.Contains(b.get(path).html, "<script>alert") {
		t.Error("the description is written raw")
	}
	n.shows(b.get("/schedules"), 200, "nightly", "At 02:30")

	// The editor shows what was said, and saving it again says the same.
	edit := b.get(path + "/edit")
	n.shows(edit, 200, `value="30 2 * * *"`, `value="2040-01-02T03:04:00"`, `value="70"`, "{{scheduled_for}}", "customer")
	again := nightly("version", "1")
	n.shows(b.send(path+"/edit", again), 303, "saved as a new version", "Version 2")
	if page := b.get(path).html; !strings.Contains(page, "Version 2") || strings.Contains(page, `id="version-2"`) {
		t.Error("saving the same says that something changed")
	}

	// Somebody who began with version 1 is told what the other one changed, and may save over it.
	n.shows(b.send(path+"/edit", nightly("version", "2", "expression", "45 3 * * *")), 303, "Version 3", "At 03:45")
	if page := b.get(path).html; strings.Contains(page, ">changes<") || strings.Contains(page, "changes, ") {
		t.Error("a version says that what it changed has changed")
	}
	late := b.send(path+"/edit", nightly("version", "2", "description", "mine"))
	n.shows(late, 412, "Somebody saved this schedule", "Version 3", "45 3 * * *", "admin@north.example", "mine")
	if found := valueOf("version").FindStringSubmatch(late.html); found == nil || found[1] != "3" {
		t.Errorf("the editor goes on with version %v", found)
	}
	n.shows(b.send(path+"/edit", nightly("version", "3", "description", "mine")), 303, "Version 4", "At 02:30")

	n.shows(b.send(path+"/rollback", url.Values{"to": {"3"}, "version": {"4"}}), 303, "Version 3 is the newest again.", "Version 5", "At 03:45")
	n.shows(b.send(path+"/rollback", url.Values{"to": {"1"}, "version": {"4"}}), 303, "Somebody else changed this meanwhile")
	n.shows(b.send(path+"/pause", url.Values{"reason": {"holidays"}}), 303, "It is paused: holidays.", "Resume")
	n.shows(b.send(path+"/trigger", url.Values{}), 303, "A run was made.", "manual", "dispatched")
	n.shows(b.send(path+"/resume", url.Values{}), 303, "The schedule goes on.")
	n.shows(b.send(path+"/delete", url.Values{"reason": {"  "}}), 303, "Reason is needed", "nightly")
	n.shows(b.send(path+"/delete", url.Values{"reason": {"not needed any more"}}), 303, "The schedule is gone", "No schedules")
	for _, action := range []string{"schedule.create", "schedule.edit", "schedule.rollback", "schedule.pause", "schedule.trigger", "schedule.resume", "schedule.delete"} {
		if !slices.Contains(n.audited("north"), action) {
			t.Errorf("%s is not in the audit: %v", action, n.audited("north"))
		}
	}
}

func TestWhatIsWrongWithAScheduleStandsAtItsField(t *testing.T) {
	n := newNight(t)
	b := n.signedIn("admin@north.example")
	wrong := regexp.MustCompile(`(?s)name="([a-z_]+)"[^>]*>[^<]*(?:</textarea>\s*)?(?:<option[^>]*>[^<]*</option>\s*)*(?:</select>\s*)?(?:<span class="field-note">[^<]*</span>)?<span class="field-wrong">(.*?)</span>`)
	for field, c := range map[string][3]string{
		"name":                  {"name", "A/b", "Must match"},
		"expression":            {"expression", "61 * * * *", "61"},
		"timezone":              {"timezone", "Mars/Base", "Mars/Base"},
		"misfire_grace_seconds": {"misfire_grace_seconds", "soon", "whole number"},
		"catch_up_limit":        {"catch_up_limit", "1e9", "from 0 to 1000"},
		"calendar_exclude":      {"calendar_exclude", "yesterday", "no date"},
		"end_at":                {"end_at", "never", "RFC 3339"},
		"runbook_url":           {"runbook_url", "javascript:alert(1)", "no URL"},
		"task_type":             {"task_type", "", "not be empty"},
		"task_lane":             {"task_lane", "nowhere/", ""},
		"task_priority":         {"task_priority", "900", "100"},
		"task_payload":          {"task_payload", `{"a"`, "no JSON"},
		"task_more":             {"task_more", `{"nonsense": 1}`, "onsense: there is no such field"},
	} {
		got := b.send("/schedules", nightly(c[0], c[1]))
		found := map[string]string{}
		for _, m := range wrong.FindAllStringSubmatch(got.html, -1) {
			found[m[1]] = m[2]
		}
		if got.status != 422 || found[field] == "" || !strings.Contains(found[field], c[2]) {
			t.Errorf("%s %q: %d, told at %v", c[0], c[1], got.status, found)
		}
		if !strings.Contains(got.html, c[1]) || !strings.Contains(got.html, "Nothing was saved") {
			t.Errorf("%s: what was typed is lost", c[0])
		}
	}
	n.shows(b.send("/schedules", url.Values{"as": {"json"}, "json": {`{"name": "x", "kind": "cron", "expression": "* *"`}}), 422, "This is no JSON")
	n.shows(b.send("/schedules", url.Values{"as": {"json"}, "json": {`{"name": "x", "kind": "cron", "wat": 1}`}}), 422, "wat: there is no such field")
	n.shows(b.send("/schedules", url.Values{"as": {"json"}, "json": {`{"name": "as-json", "kind": "interval", "every_seconds": 3600, "task": {"type": "x"}}`}}), 303, "Every hour")
	n.shows(b.get("/schedules"), 200, "as-json")
}

func TestTheEditorSaysWhenARuleFires(t *testing.T) {
	n := newNight(t)
	b := n.signedIn("admin@north.example")
	ask := func(pairs ...string) seen {
		values := url.Values{}
		for i := 0; i+1 < len(pairs); i += 2 {
			values.Set(pairs[i], pairs[i+1])
		}
		got := b.get("/schedules/preview?" + values.Encode())
		got.html = html.UnescapeString(got.html)
		return got
	}
	n.shows(ask("kind", "cron", "expression", "30 2 * * *", "timezone", "Africa/Lusaka"), 200, "At 02:30", "00:30 UTC")
	n.shows(ask("kind", "cron", "expression", "30 1 * * *", "timezone", "Europe/Lisbon"), 200, "Europe/Lisbon: the clock goes from")
	n.shows(ask("kind", "interval", "every_seconds", "600"), 200, "Every 10 minutes")
	n.shows(ask("kind", "interval", "every_seconds", "600", "interval_from", "end"), 200, "from the end of the run before")
	n.shows(ask("kind", "once", "run_at", "2040-05-06T07:08", "timezone", "Europe/Lisbon"), 200, "Sun 6 May 2040 07:08 +01:00")
	n.shows(ask("kind", "cron", "expression", "1--100000000 * * * *"), 200, `class="card-in bad"`)
	n.shows(ask("kind", "cron", "expression", "0 0 30 2 *"), 200, "never fires")
	n.shows(ask("kind", "cron", "expression", nasty), 200, `class="card-in bad"`)
	n.shows(ask("kind", "cron"), 200, "Say when")
	n.shows(ask("kind", "event"), 200, "Say when")
	n.shows(ask("kind", "event", "event_name", "sale", "event_debounce_seconds", "1.5"), 200, "When triggers named sale have been quiet for 1.5 seconds", "follows no clock")
	n.shows(ask("kind", "event", "event_name", "sale", "timezone", "Mars/Base"), 200, "Mars/Base", `class="card-in bad"`)
	n.shows(ask("kind", "event", "event_name", nasty), 200, "follows no clock")
	n.shows(ask("kind", "drain"), 200, "Say when")
	n.shows(ask("kind", "drain", "drain_queue", "mail", "partitions", "4"), 200, "the queue mail", "at most 4 partitions")
}

func TestTheEditorKnowsEveryKindAndEveryWork(t *testing.T) {
	n := newNight(t)
	b := n.signedIn("admin@north.example")
	flow := `{"name": "etl", "tasks": [{"key": "load", "type": "load"}, {"key": "sum", "type": "sum", "depends_on": ["load"]}]}`
	event := nightly("name", "on-sale", "kind", "event", "event_name", "sale", "event_debounce_seconds", "2.5", "event_max_events", "9", "work", "workflow", "workflow", flow,
		"partitions", "2", "flexible_seconds", "60", "complete_within_seconds", "600", "task_type", "")
	made := b.send("/schedules", event)
	n.shows(made, 303, "The schedule is there.", "When triggers named sale have been quiet for 2.5 seconds", "when there are 9 of them", "etl", "Partitions")
	n.shows(b.get(made.location+"/edit"), 200, `value="sale"`, `value="2.5"`, `value="9"`, `<option value="workflow" selected>`, `<option value="event" selected>`, "depends_on", `name="partitions" inputmode="numeric" value="2"`)
	event.Set("version", "1")
	n.shows(b.send(made.location+"/edit", event), 303, "saved as a new version")
	if page := b.get(made.location).html; strings.Contains(page, `id="version-2"`) {
		t.Error("saving the same says that something changed")
	}
	drain := nightly("name", "mailer", "kind", "drain", "drain_queue", "mail", "drain_batch_size", "20")
	made = b.send("/schedules", drain)
	n.shows(made, 303, "As soon as the queue mail holds something", "20 items a portion", "when something comes")
	drain.Set("version", "1")
	drain.Set("kind", "cron")
	n.shows(b.send(made.location+"/edit", drain), 303, "At 02:30") // its kind may change
	for field, c := range map[string][]string{
		"event_name":             {"kind", "event", "event_name", "A b"},
		"event_debounce_seconds": {"kind", "event", "event_name", "a", "event_debounce_seconds", "soon"},
		"event_max_events":       {"kind", "event", "event_name", "a", "event_max_events", "0"},
		"drain_queue":            {"kind", "drain"},
		"drain_max_items":        {"kind", "drain", "drain_queue", "a", "drain_max_items", "10001"},
		"partitions":             {"partitions", "1001"},
		"flexible_seconds":       {"flexible_seconds", "-1"},
	} {
		got := b.send("/schedules", nightly(append(c, "name", "x")...))
		if at := strings.Index(got.html, `name="`+field+`"`); got.status != 422 || at < 0 || !strings.Contains(got.html[at:at+900], "field-wrong") {
			t.Errorf("%s: %d, and nothing stands at it", field, got.status)
		}
	}
	for text, want := range map[string]string{
		"": "needed", `{"name": "x"`: "no JSON object", `[]`: "no JSON object", `{"name": "x", "tasks": [{"key": "a"}]}`: "tasks[0].type",
		`{"name": "x", "tasks": [{"key": "a", "type": "a", "depends_on": ["b"]}]}`: "depends_on",
	} {
		got := b.send("/schedules", nightly("name", "x", "work", "workflow", "workflow", text))
		if at := strings.Index(got.html, `name="workflow"`); got.status != 422 || at < 0 || !strings.Contains(got.html[at:], want) {
			t.Errorf("the workflow %q: %d", text, got.status)
		}
	}
}

func TestFreezesAreSetAndLifted(t *testing.T) {
	n := newNight(t)
	b := n.signedIn("admin@north.example")
	n.shows(b.get("/environments"), 200, "New freeze", "(UTC)")
	add := func(from, to, reason string) seen {
		return b.send("/freezes", url.Values{"environment": {"production"}, "starts_at": {from}, "ends_at": {to}, "reason": {reason}})
	}
	n.shows(add("2050-06-01T00:00", "2050-06-02T00:00", "moving house"), 303, "fires in that time", "moving house")
	n.shows(add("2050-12-24T00:00", "2050-12-27T00:00", ""), 303, "fires in that time")
	n.shows(b.get("/schedules/new"), 200, "Freezes", "Wed 1 Jun 00:00")
	yearly := url.Values{"kind": {"cron"}, "expression": {"0 12 1 6 *"}, "start_at": {"2050-01-01T00:00"}}
	n.shows(b.get("/schedules/preview?"+yearly.Encode()), 200, "Wed 1 Jun 2050 12:00", "left out: frozen until 2050-06-02T00:00:00Z: moving house")
	for _, c := range [][4]string{
		{"2051-01-02T00:00", "2051-01-01T00:00", "ends_at", "after starts_at"},
		{"soon", "2051-01-01T00:00", "starts_at", "no moment"},
		{"2050-06-01T12:00", "2050-06-03T00:00", "starts_at", "overlap"},
	} {
		got := add(c[0], c[1], "")
		if at := strings.Index(got.html, `name="`+c[2]+`"`); got.status != 422 || at < 0 || !strings.Contains(got.html[at:], c[3]) || !strings.Contains(got.html, c[0]) {
			t.Errorf("%v: %d %s", c, got.status, got.html)
		}
	}
	n.shows(b.send("/environments/production/thaw", url.Values{"starts_at": {"2050-06-01T00:00:00Z"}}), 303, "The freeze is lifted.")
	if page := b.get("/environments").html; strings.Contains(page, "moving house") || !strings.Contains(page, "Freezes") {
		t.Error("the wrong freeze was lifted")
	}
	viewer := n.signedIn("viewer@north.example")
	for at, form := range map[string]url.Values{"/freezes": {"environment": {"production"}}, "/environments/production/thaw": {}} {
		if got := viewer.send(at, form); got.status != 403 {
			t.Errorf("a viewer posts to %s: %d", at, got.status)
		}
	}
}

func TestABackfillCountsFirst(t *testing.T) {
	n := newNight(t)
	b := n.signedIn("admin@north.example")
	path := b.send("/schedules", nightly()).location
	n.shows(b.get(path+"/backfill"), 200, "Count first", "Europe/Lisbon")
	n.shows(b.get(path+"/backfill?from=2026-03-01T00:00&to=2026-03-03T23:00&overlap=allow"), 200, "3 occurrences", "Make 3 runs")
	n.shows(b.get(path+"/backfill?from=2026-03-03T00:00&to=2026-03-01T00:00"), 422, "must not be before from")
	n.shows(b.get(path+"/backfill?from=soon&to=2026-03-01T00:00"), 422, "no moment")
	n.shows(b.send(path+"/backfill", url.Values{"from": {"2026-03-01T00:00"}, "to": {"2026-03-03T23:00"}, "overlap": {"allow"}}), 303, "3 runs are made up")
	n.await("the runs", func() bool { return strings.Count(b.get(path).html, `<span class="chip">backfill</span>`) == 3 })
}

// Ticked schedules, or all that match a filter, are paused and resumed with a reason; each leaves its row in the audit.
func TestSchedulesArePausedAndResumedTogether(t *testing.T) {
	n := newNight(t)
	b := n.signedIn("admin@north.example")
	for _, name := range []string{"report-a", "report-b", "other"} {
		n.shows(b.send("/schedules", nightly("name", name)), 303, "The schedule is there.")
	}
	list := b.get("/schedules")
	n.shows(list, 200, "all that match (3)", "all on this page", `data-tick `)
	id := func(name string) string {
		found := regexp.MustCompile(`href="/schedules/(sch_[0-9a-z]+)" title="[^"]*">` + name + `<`).FindStringSubmatch(list.html)
		if found == nil {
			t.Fatalf("%s is not listed: %s", name, mainOf(list.html))
		}
		return found[1]
	}
	paused := func() (names []string) {
		for _, m := range regexp.MustCompile(`title="sch_[0-9a-z]+">([^<]+)</a>`).FindAllStringSubmatch(b.get("/schedules?state=paused").html, -1) {
			names = append(names, m[1])
		}
		slices.Sort(names)
		return names
	}
	n.shows(b.send("/schedules/bulk", url.Values{"do": {"pause"}}), 303, "Tick from 1")
	n.shows(b.send("/schedules/bulk", url.Values{"do": {"delete"}, "id": {id("other")}}), 303, "whether to pause or to resume")
	n.shows(b.send("/schedules/bulk", url.Values{"do": {"pause"}, "id": {id("report-a"), id("other")}, "reason": {"holidays " + nasty}}), 303, "2 schedules are paused.", "holidays "+nasty)
	if got := paused(); !slices.Equal(got, []string{"other", "report-a"}) {
		t.Errorf("paused are %v", got)
	}
	n.shows(b.get("/schedules/count"), 200, "1 schedule would be paused, 2 resumed.")
	n.shows(b.get("/schedules/count?q=report&state=paused"), 200, "0 schedules would be paused, 1 resumed.")
	n.shows(b.send("/schedules/bulk", url.Values{"do": {"pause"}, "all": {"yes"}, "state": {"paused"}}), 303, "None of those that match is to be paused")
	n.shows(b.send("/schedules/bulk", url.Values{"do": {"pause"}, "all": {"yes"}, "q": {"report"}, "reason": {"for now"}}), 303, "1 schedule is paused.", "report-b")
	n.shows(b.send("/schedules/bulk", url.Values{"do": {"resume"}, "all": {"yes"}, "kind": {"cron"}}), 303, "3 schedules are resumed.")
	if got := paused(); len(got) != 0 {
		t.Errorf("still paused are %v", got)
	}
	n.shows(b.send("/schedules/bulk", url.Values{"do": {"pause"}, "id": {id("other"), "sch_nonsense"}}), 303, "1 schedule is paused. 1 could not be reached")
	n.shows(b.get("/schedules?q=report-a"), 200, "1 schedule<", `value="report-a"`)
	n.shows(b.get("/schedules?q=nothing&kind=drain"), 200, "Nothing matches")
	reasons := 0
	for _, action := range n.audited("north") {
		if action == "schedule.pause" {
			reasons++
		}
	}
	if reasons != 4 {
		t.Errorf("%d pauses are in the audit, of 4", reasons)
	}
}

// The list says how the last run stands, and of those that came to nothing why.
func TestTheListTellsOfMisses(t *testing.T) {
	n := newNight(t)
	b := n.signedIn("admin@north.example")
	path := b.send("/schedules", nightly("overlap_policy", "skip")).location
	n.shows(b.send(path+"/trigger", url.Values{}), 303, "A run was made.")
	n.shows(b.send(path+"/trigger", url.Values{}), 303, "Nothing runs, skipped overlap: the run before it has not ended")
	n.shows(b.get("/schedules"), 200, "1 missed: skipped overlap: the run before it has not ended", "skipped overlap")
}

// Somebody who may only read sees schedules without a button, and forging fails; another tenant sees none.
func TestWhoMayChangeSchedules(t *testing.T) {
	n := newNight(t)
	path := n.signedIn("admin@north.example").send("/schedules", nightly()).location
	viewer := n.signedIn("viewer@north.example")
	for _, at := range []string{"/schedules", path} {
		got := viewer.get(at)
		if got.status != 200 || !strings.Contains(got.html, "nightly") || strings.Count(got.html, `method="post"`) != strings.Count(got.html, `action="/logout"`) || strings.Contains(got.html, "/edit") {
			t.Errorf("%s for a viewer: %d", at, got.status)
		}
	}
	for _, at := range []string{"/schedules/new", path + "/edit", path + "/backfill", "/schedules/preview", "/schedules/quieter", "/schedules/count"} {
		if got := viewer.get(at); got.status != 403 {
			t.Errorf("a viewer opens %s: %d", at, got.status)
		}
	}
	for _, at := range []string{"/schedules", path + "/edit", path + "/pause", path + "/resume", path + "/trigger", path + "/backfill", path + "/rollback", path + "/move", path + "/delete", "/schedules/bulk"} {
		if got := viewer.send(at, nightly("version", "1")); got.status != 403 {
			t.Errorf("a viewer posts to %s: %d", at, got.status)
		}
	}
	south := n.signedIn("viewer@south.example")
	if got := south.get(path); got.status != 404 {
		t.Errorf("another tenant sees it: %d", got.status)
	}
	if got := viewer.get("/schedules/sch_nonsense"); got.status != 404 {
		t.Errorf("one that is not there: %d", got.status)
	}
}
