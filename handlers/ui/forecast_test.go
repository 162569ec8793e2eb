package ui_test

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

var moveForm = regexp.MustCompile(`action="(/schedules/sch_[0-9a-z]+/move)(?:\?[^"]*)?"`)

// The day ahead is drawn, names where schedules meet, and moves one where somebody says so.
func TestTheDayAheadIsDrawnAndASuggestionApplied(t *testing.T) {
	n := newNight(t)
	b := n.signedIn("admin@north.example")
	n.shows(b.get("/schedules"), 200, "No schedules")
	hour := (time.Now().UTC().Hour() + 3) % 24 // hours away from the moments at which a day is cut off
	for _, name := range []string{"one", "two"} {
		b.send("/schedules", nightly("name", name, "timezone", "UTC", "jitter_seconds", "0", "expression", fmt.Sprintf("30 %d * * *", hour)))
	}
	n.shows(b.get("/schedules"), 200, "fragment=forecast")
	got := b.get("/schedules?fragment=forecast")
	n.shows(got, 200, "The next 24 hours", fmt.Sprintf("%02d:30–%02d:31 UTC", hour, hour), "2 tasks at once, of 2 schedules", "peak 2 → 1", "<svg")
	rule := url.Values{"kind": {"cron"}, "timezone": {"UTC"}, "expression": {fmt.Sprintf("30 %d * * *", hour)}}
	n.shows(b.get("/schedules/quieter?"+rule.Encode()), 200, fmt.Sprintf("2 tasks at once are foreseen when it runs next, %02d:30 UTC", hour), fmt.Sprintf("Quieter: %02d:25 UTC, with 0.", hour))
	one := regexp.MustCompile(`href="/schedules/(sch_[0-9a-z]+)" title="[^"]*">one<`).FindStringSubmatch(b.get("/schedules").html)
	n.shows(b.send("/schedules/"+one[1]+"/edit", nightly("name", "one", "version", "1", "timezone", "UTC", "jitter_seconds", "0", "expression", fmt.Sprintf("30 %d * * *", (hour+2)%24))), 303, "Version 2")
	rule.Set("expression", fmt.Sprintf("30 %d * * *", (hour+2)%24))
	n.shows(b.get("/schedules/quieter?"+rule.Encode()), 200, "1 task is foreseen when it runs next")
	rule.Set("id", one[1])
	n.shows(b.get("/schedules/quieter?"+rule.Encode()), 200, "Nothing else is foreseen") // but itself
	n.shows(b.send("/schedules/"+one[1]+"/rollback", url.Values{"to": {"1"}, "version": {"2"}}), 303, "Version 3")
	rule.Set("expression", fmt.Sprintf("45 %d * * *", hour))
	n.shows(b.get("/schedules/quieter?"+rule.Encode()), 200, "Nothing else is foreseen")
	for _, none := range []string{"kind=cron&expression=61", "kind=event&event_name=sale", "kind=interval&every_seconds=864000", ""} {
		if got := b.get("/schedules/quieter?" + none); got.status != 200 || strings.Contains(got.html, "foreseen") {
			t.Errorf("%s: %d %s", none, got.status, got.html)
		}
	}
	form, to := moveForm.FindStringSubmatch(got.html), valueOf("move_to").FindStringSubmatch(got.html)
	if form == nil || to == nil {
		t.Fatalf("nothing is offered: %s", got.html)
	}
	viewer := n.signedIn("viewer@north.example")
	if seen := viewer.get("/schedules?fragment=forecast"); seen.status != 200 || strings.Contains(seen.html, "/move") || !strings.Contains(seen.html, "peak 2 → 1") {
		t.Errorf("a viewer is shown %s", seen.html)
	}
	if refused := viewer.send(form[1], url.Values{"move_to": {to[1]}}); refused.status != 403 {
		t.Errorf("a viewer moves a schedule: %d", refused.status)
	}
	if other := n.signedIn("viewer@south.example").get("/schedules?fragment=forecast"); strings.Contains(other.html, "one") || strings.Contains(other.html, "<svg") {
		t.Errorf("another tenant is shown %s", other.html)
	}
	n.shows(b.send(form[1], url.Values{"move_to": {"2020-01-01T00:00:00Z"}}), 303, "past")
	n.shows(b.send(form[1], url.Values{"move_to": {to[1]}}), 303, "The schedule is moved")
	if !slices.Contains(n.audited("north"), "schedule.move") {
		t.Errorf("the move is not in the audit: %v", n.audited("north"))
	}
	if after := b.get("/schedules?fragment=forecast"); !strings.Contains(after.html, "The next 24 hours") || strings.Contains(after.html, "/move") {
		t.Errorf("after the move: %s", after.html)
	}
}
