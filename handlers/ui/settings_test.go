package ui_test

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

var secretOf = regexp.MustCompile(`CLIENT_ID=(key_[0-9a-z]+)\s+CLIENT_SECRET=([^\s<]+)`)

// goodFor says whether a client id and secret get a token.
func (s *stage) goodFor(id, secret string) bool {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), "POST", s.url+"/v1/auth/token", strings.NewReader("grant_type=client_credentials"))
	s.must(err)
	request.SetBasicAuth(id, secret)
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := (&http.Client{Timeout: time.Minute}).Do(request)
	s.must(err)
	defer answer.Body.Close()
	return answer.StatusCode == 200
}

func TestKeysAreMadeRotatedAndRevoked(t *testing.T) {
	n := newNight(t)
	b := n.signedIn("admin@north.example")
	n.shows(b.get("/settings"), 200, "No keys", "New key", "submit and decide on them")
	form := url.Values{"name": {"importer " + nasty}, "scopes": {"tasks:read", "tasks:write"}, "once": {"form-1"}}
	made := b.send("/settings/keys", form)
	found := secretOf.FindStringSubmatch(made.html)
	if made.status != 200 || found == nil || !n.goodFor(found[1], found[2]) || made.header.Get("Cache-Control") != "no-store" {
		t.Fatalf("making a key: %d %s", made.status, mainOf(made.html))
	}
	if again := secretOf.FindStringSubmatch(b.send("/settings/keys", form).html); !slices.Equal(again, found) {
		t.Errorf("sent twice it made %v, not %v", again, found)
	}
	if page := b.get("/settings").html; strings.Contains(page, found[2]) || !strings.Contains(page, "importer a/b") || strings.Contains(page, "<script>alert") {
		t.Error("the secret is shown again, or the key is not listed as text")
	}
	rotated := b.send("/settings/keys/"+found[1]+"/rotate", url.Values{"overlap": {"1"}})
	fresh := secretOf.FindStringSubmatch(rotated.html)
	if fresh == nil || fresh[2] == found[2] || !n.goodFor(fresh[1], fresh[2]) || !n.goodFor(found[1], found[2]) {
		t.Errorf("rotating: %s", mainOf(rotated.html))
	}
	n.shows(b.send("/settings/keys/"+found[1]+"/rotate", url.Values{"overlap": {"1000"}}), 303, "Overlap seconds must")
	n.shows(b.send("/settings/keys/"+found[1]+"/revoke", nil), 303, "The key is revoked", "No keys")
	if n.goodFor(fresh[1], fresh[2]) {
		t.Error("a revoked key still gets a token")
	}
	for _, action := range []string{"api_key.create", "api_key.rotate", "api_key.revoke"} {
		if !slices.Contains(n.audited("north"), action) {
			t.Errorf("%s is not in the audit", action)
		}
	}
	n.shows(b.send("/settings/keys", url.Values{"name": {""}, "expires_at": {"1999-01-01T00:00"}}), 422, "At least one scope.", "It has passed.", "field-wrong")
	// A key gives no more than its maker may: a tenant's admin makes none for the platform.
	n.shows(b.send("/settings/keys", url.Values{"name": {"x"}, "scopes": {"platform"}}), 403, "You may not do this")
}

func TestEnvironmentsAreMadeAndPaused(t *testing.T) {
	n := newNight(t)
	b := n.signedIn("admin@north.example")
	n.shows(b.get("/environments"), 200, "production", "you look at it")
	n.shows(b.send("/environments", url.Values{"name": {"Bad Name"}, "kind": {"moon"}}), 422, "Bad Name", "field-wrong", "none of")
	n.shows(b.send("/environments", url.Values{"name": {"staging"}, "kind": {"staging"}}), 303, "staging is there")
	n.shows(b.send("/environments", url.Values{"name": {"staging"}, "kind": {"staging"}}), 422, "field-wrong")
	n.shows(b.send("/environments/staging/pause", url.Values{"reason": {"a move"}}), 303, "Nothing of staging starts", "a move", "chip-paused")
	n.shows(b.send("/environments/staging/edit", url.Values{"kind": {"development"}}), 303, "staging is changed")
	n.shows(b.send("/environments/staging/resume", nil), 303, "staging goes on")
	n.shows(b.send("/environments/nowhere/resume", nil), 303, "nowhere")
	for _, action := range []string{"environment.create", "environment.pause", "environment.edit", "environment.resume"} {
		if !slices.Contains(n.audited("north"), action) {
			t.Errorf("%s is not in the audit", action)
		}
	}
}

func TestTheActivityTellsWhoDidWhat(t *testing.T) {
	n := newNight(t)
	b := n.signedIn("admin@north.example")
	b.send("/lanes/io/pause", url.Values{"reason": {"because " + nasty}})
	b.send("/lanes/io/resume", nil)
	b.send("/tasks/"+task(n.running)+"/cancel", nil)
	n.shows(b.get("/activity"), 200, "admin@north.example", "lane.pause", "lane.resume", "task.cancel", "because a/b", `href="/tasks/`+task(n.running), "127.0.0.1")
	if page := b.get("/activity?action=lane.pause").html; strings.Contains(page, ">lane.resume<") || !strings.Contains(page, "because") {
		t.Error("the filter shows other actions")
	}
	if page := b.get("/activity?actor=admin@north.example&object=" + task(n.running)).html; !strings.Contains(page, "task.cancel") || strings.Contains(page, ">lane.pause<") {
		t.Error("the filters by person and object do not hold")
	}
	n.shows(b.get("/activity?actor=nobody@north.example"), 200, "Nothing here")
	n.shows(b.get("/activity?cursor=forged"), 400)
	if page := n.signedIn("viewer@south.example").get("/activity").html; strings.Contains(page, ">lane.pause<") {
		t.Error("another tenant's activity is shown")
	}
}

// A viewer sees these pages without a button, and forging fails.
func TestWhoMayChangeSettings(t *testing.T) {
	n := newNight(t)
	admin := n.signedIn("admin@north.example")
	key := secretOf.FindStringSubmatch(admin.send("/settings/keys", url.Values{"name": {"k"}, "scopes": {"tasks:read"}}).html)
	if key == nil {
		t.Fatal("no key")
	}
	viewer := n.signedIn("viewer@north.example")
	for _, at := range []string{"/settings", "/environments", "/activity"} {
		if got := viewer.get(at); got.status != 200 || strings.Count(got.html, `method="post"`) != strings.Count(got.html, `action="/logout"`) {
			t.Errorf("%s for a viewer: %d", at, got.status)
		}
	}
	for _, at := range []string{
		"/settings/keys", "/settings/keys/" + key[1] + "/rotate", "/settings/keys/" + key[1] + "/revoke", "/environments", "/environments/production/pause",
		"/environments/production/resume", "/environments/production/edit", "/lanes/io/drain", "/tasks/" + task(n.ready) + "/approve", "/tasks/" + task(n.ready) + "/edit",
		"/workflows/" + n.flow.Text("wf") + "/pause", "/workflows/" + n.flow.Text("wf") + "/rerun", "/workflows/" + n.flow.Text("wf") + "/skip",
	} {
		if got := viewer.send(at, url.Values{"name": {"x"}, "scopes": {"tasks:read"}}); got.status != 403 {
			t.Errorf("a viewer posts to %s: %d", at, got.status)
		}
	}
	if other := n.signedIn(operator).send("/settings/keys/"+key[1]+"/revoke?tenant=south", nil); strings.Contains(other.html, "The key is revoked") {
		t.Error("a key is revoked from another tenant")
	}
	if !n.goodFor(key[1], key[2]) {
		t.Error("the key is gone")
	}
}
