package ui_test

import (
	"net/url"
	"strings"
	"testing"
)

// A replica that has just started has heard of nothing; what happened before is stored.
func TestTheFirstPageKnowsWhatHappenedBeforeItsReplica(t *testing.T) {
	n := newNight(t)
	b := n.signedIn("admin@north.example")
	page := mainOf(b.get("/?fragment=recent").html)
	for _, text := range []string{"ingest", "succeeded", "dead lettered: invalid_input", "started"} {
		if !strings.Contains(page, text) {
			t.Errorf("what happened last does not tell %q: %s", text, page)
		}
	}
	if south := n.signedIn("viewer@south.example").get("/?fragment=recent").html; !strings.Contains(south, "Nothing has happened yet") {
		t.Errorf("another tenant is told %s", south)
	}
	if got := b.get("/?fragment=next").html; !strings.Contains(got, "No schedules") {
		t.Errorf("without a schedule: %s", got)
	}
	b.send("/schedules", nightly())
	b.send("/schedules", url.Values{"as": {"json"}, "json": {`{"name": "sooner", "kind": "interval", "every_seconds": 60, "task": {"type": "x"}}`}})
	next := b.get("/?fragment=next").html
	if sooner, later := strings.Index(next, "sooner"), strings.Index(next, ">nightly<"); sooner < 0 || later < sooner {
		t.Errorf("the next runs are not in order: %s", next)
	}
}
