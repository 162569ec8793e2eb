package ui_test

import (
	"bufio"
	"context"
	"encoding/hex"
	"encoding/json"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"nightshift/models"
	"nightshift/scheduler/engine"
)

// night is a tenant with work in many states.
type night struct {
	*stage
	flow                        models.ID
	done, running, dead, ready  models.ID
	waiting, scheduled, outside models.ID
	worker                      *models.Worker
}

func newNight(t *testing.T) *night {
	n := &night{stage: newStage(t)}
	n.env = n.tenant("north", "North & Sons")
	n.tenant("south", "South")
	n.member("viewer@north.example", "viewer", "north")
	n.member("admin@north.example", "admin", "north")
	n.member("viewer@south.example", "viewer", "south")
	n.worker = n.register("lantern "+nasty, 0)
	n.flow = n.deps.Mint()
	made := make([]models.ID, 6)
	for i := range made {
		made[i] = n.deps.Mint()
	}
	n.done, n.dead, n.running, n.waiting, n.scheduled, n.ready = made[0], made[1], made[2], made[3], made[4], made[5]
	kind := func(name string) models.Class { return models.Class{Type: name} }
	n.submit(n.env, &engine.NewWorkflow{ID: n.flow, Name: "night <of> north", Input: json.RawMessage(`{"labels":{"night":"one"}}`)},
		engine.NewTask{ID: n.done, Class: kind("document.ingest"), Key: "ingest", Payload: json.RawMessage(`{"folder":"docs"}`)},
		engine.NewTask{ID: n.dead, Class: kind("document.chunk"), Key: "chunk", Payload: json.RawMessage(`{"name":"` + `</script>` + `"}`)},
		engine.NewTask{ID: n.running, Class: kind("text.embed"), Key: "embed", Lane: "compute", Input: json.RawMessage(`{"description":"vectors","labels":{"customer":"a"}}`)},
		engine.NewTask{ID: n.waiting, Class: kind("index.update"), Key: "index", DependsOn: []engine.Dependency{{Task: n.dead}, {Task: n.running, On: models.OnFinished}}},
	)
	leases := n.claim(n.worker, 3)
	if len(leases) != 3 {
		t.Fatalf("%d leases", len(leases))
	}
	for _, lease := range leases {
		switch lease.Row.ID {
		case n.done:
			n.settle(n.worker, lease, engine.Result{Outcome: models.AttemptSucceeded, Result: json.RawMessage(`{"documents":12}`), Usage: json.RawMessage(`{"cpu_seconds":1.5}`)})
		case n.dead:
			n.settle(n.worker, lease, engine.Result{Outcome: models.AttemptFailed, Error: &models.TaskError{Class: "invalid_input", Message: "not text: " + nasty, Stack: "at chunk.go:88"}})
		}
	}
	n.outside = n.submit(n.env, nil, engine.NewTask{ID: n.ready, Class: models.Class{Type: "llm.generate", Model: "huge"}, LimitKey: "account:42", KeyLimit: 1})[0]
	n.submit(n.env, nil, engine.NewTask{ID: n.scheduled, Class: kind("report.write"), RunAt: n.deps.Now().Add(models.Seconds(3600))})
	return n
}

func task(id models.ID) string { return id.Text(models.TaskPrefix) }

var (
	heading = regexp.MustCompile(`(?s)<h1[^>]*>(.*?)</h1>`)
	anyHref = regexp.MustCompile(`href="(/[^"#]*)`)
	groupOf = regexp.MustCompile(`name="fingerprint" value="([0-9a-f]{32})"`)
)

// TestPages shows one night to different people; none of these changes it.
func TestPages(t *testing.T) {
	n := newNight(t)
	for _, part := range []struct {
		name string
		test func(*testing.T)
	}{
		{"Every link leads to a page", n.everyLinkLeadsToAPage},
		{"Pages show what there is", n.pagesShowWhatThereIs},
		{"A reader is shown no buttons and forging fails", n.aReaderIsShownNoButtonsAndForgingFails},
		{"Another tenants things are not there", n.anotherTenantsThingsAreNotThere},
		{"A write must be meant", n.aWriteMustBeMeant},
		{"Regions are drawn again by themselves", n.regionsAreDrawnAgainByThemselves},
		{"A fingerprint filter finds its tasks", n.aFingerprintFilterFindsItsTasks},
		{"The stream hints", n.theStreamHints},
	} {
		t.Run(part.name, part.test)
	}
}

// Every link that a page shows leads to a page, for each kind of viewer.
func (n *night) everyLinkLeadsToAPage(t *testing.T) {
	for _, who := range []string{operator, "viewer@north.example"} {
		b, todo, known := n.signedIn(who), []string{"/"}, map[string]bool{"/": true}
		for len(todo) > 0 && len(known) < 300 {
			path := todo[0]
			todo = todo[1:]
			got := b.get(path)
			if got.status != 200 {
				t.Errorf("%s: %s answers %d", who, path, got.status)
				continue
			}
			if found := heading.FindAllString(got.html, -1); len(found) != 1 {
				t.Errorf("%s: %s has the headings %v", who, path, found)
			}
			if strings.Contains(got.html, "<script>alert") || strings.Contains(got.html, " style=") {
				t.Errorf("%s: %s writes a name or a style raw", who, path)
			}
			for _, link := range anyHref.FindAllStringSubmatch(got.html, -1) {
				next := html.UnescapeString(link[1])
				if !known[next] && !strings.HasPrefix(next, "/static/") && !strings.HasPrefix(next, "/docs") && !strings.HasPrefix(next, "/openapi") {
					known[next], todo = true, append(todo, next)
				}
			}
		}
		if len(known) < 25 {
			t.Errorf("%s: only %d pages were found", who, len(known))
		}
	}
}

func (n *night) pagesShowWhatThereIs(t *testing.T) {
	b := n.signedIn(operator)
	n.await("the saved counts", func() bool { return strings.Contains(b.get("/workflows").html, `1<span class="faint">/4`) })
	for path, want := range map[string][]string{
		"/":                                   {"night &lt;of&gt; north", "invalid_input", "not text:", "1</b> live", `title="1 pending"`, `title="1 scheduled"`, `title="1 succeeded"`},
		"/tasks":                              {"document.ingest", "llm.generate", "report.write", "scheduled"},
		"/tasks?q=state:dead_letter":          {"chunk", "invalid_input"},
		"/tasks?q=state:gone":                 {"There is no state “gone”."},
		"/tasks/" + task(n.done):              {"succeeded", "documents", "cpu seconds", "docs"},
		"/tasks/" + task(n.dead):              {"Waited for by", "index", "Redrive", "Discard", "at chunk.go:88", "&lt;/script&gt;"},
		"/tasks/" + task(n.running):           {"vectors", "customer", "Lease until", "Cancel"},
		"/tasks/" + task(n.waiting):           {"Why is it waiting?", "Waits for other tasks", "on finished", "embed"},
		"/tasks/" + task(n.outside):           {"No worker can run it", "account:42"},
		"/tasks/" + task(n.scheduled):         {"Its time has not come", "Run at"},
		"/workflows":                          {"night &lt;of&gt; north"},
		"/workflows/" + n.flow.Text("wf"):     {"dag-box", "ingest", "index", "Redrive failed", "night"},
		"/dead-letters":                       {"not text:", "Redrive", "1 task waits for a decision"},
		"/workers":                            {"minilm", "GPU 0", "1 / 8", "token-file"},
		"/workers/" + n.worker.ID.Text("wrk"): {"every tenant", "embed", "Drain"},
		"/lanes":                              {"realtime", "compute", "Pause", `href="/lanes/compute?`},
		"/lanes/compute":                      {"<h1>Lane</h1>", "What do its next tasks wait for?", "High-water mark", "Save", `action="/lanes/compute/edit?`},
		"/tenants":                            {"North &amp; Sons", "South", "New tenant", "Done today"},
		"/system":                             {"Epoch", "Replicas", n.url, "PostgreSQL", "Oldest transaction", "Connections"},
		"/start":                              {"/v1/tasks", "Get a token"},
	} {
		got := b.get(path)
		for _, text := range want {
			if !strings.Contains(got.html, text) {
				t.Errorf("%s (%d) does not show %q", path, got.status, text)
			}
		}
	}
}

func (n *night) aReaderIsShownNoButtonsAndForgingFails(t *testing.T) {
	b := n.signedIn("viewer@north.example")
	for _, path := range []string{"/tasks/" + task(n.dead), "/dead-letters", "/lanes", "/lanes/io", "/workers", "/workflows/" + n.flow.Text("wf")} {
		if got := b.get(path); strings.Count(got.html, `method="post"`) != strings.Count(got.html, `action="/logout"`) {
			t.Errorf("%s shows a reader a form", path)
		}
	}
	word := b.word()
	forged := map[string]url.Values{
		"/tasks/" + task(n.dead) + "/retry":               {},
		"/tasks/" + task(n.dead) + "/discard":             {"reason": {"x"}},
		"/tasks/" + task(n.running) + "/cancel":           {},
		"/workflows/" + n.flow.Text("wf") + "/cancel":     {},
		"/dead-letters/redrive":                           {"fingerprint": {strings.Repeat("0", 32)}},
		"/lanes/batch/pause":                              {},
		"/lanes/batch/edit":                               {"weight": {"9"}},
		"/workers/" + n.worker.ID.Text("wrk") + "/remove": {},
		"/tenants":               {"name": {"x"}, "slug": {"x"}, "weight": {"1"}},
		"/tenants/south/suspend": {},
	}
	for path, fields := range forged {
		fields.Set("csrf", word)
		if got := b.post(path, fields); got.status != 403 {
			t.Errorf("%s: a reader is answered %d", path, got.status)
		}
	}
	for _, path := range []string{"/tenants", "/system"} {
		if got := b.get(path); got.status != 403 {
			t.Errorf("%s: a tenant's reader is answered %d", path, got.status)
		}
	}
	if got := n.signedIn(operator).get("/tasks/" + task(n.dead)); !strings.Contains(got.html, "state-dead_letter") {
		t.Error("a forged request moved the task")
	}
}

func (n *night) anotherTenantsThingsAreNotThere(t *testing.T) {
	b := n.signedIn("viewer@south.example")
	for _, path := range []string{"/tasks/" + task(n.dead), "/workflows/" + n.flow.Text("wf"), "/?tenant=north", "/tasks?tenant=north&environment=production", "/tasks/task_nonsense", "/nothing"} {
		if got := b.get(path); got.status != 404 || strings.Contains(got.html, "not text") {
			t.Errorf("%s is answered %d", path, got.status)
		}
	}
	if got := b.get("/tasks"); strings.Contains(got.html, "document.ingest") {
		t.Error("the list shows another tenant's tasks")
	}
}

func (n *night) aWriteMustBeMeant(t *testing.T) {
	b := n.signedIn(operator)
	path, word := "/tasks/"+task(n.dead)+"/retry?tenant=north&environment=production", b.word()
	if got := b.post(path, url.Values{}); got.status != 403 {
		t.Errorf("without a token: %d", got.status)
	}
	if got := b.post(path, url.Values{"csrf": {word}}, "Sec-Fetch-Site", "cross-site"); got.status != 403 {
		t.Errorf("from another site: %d", got.status)
	}
	if got := b.post(path, url.Values{"csrf": {word}}, "Origin", "https://elsewhere.example"); got.status != 403 {
		t.Errorf("with another origin: %d", got.status)
	}
	if got := b.post(path, url.Values{"csrf": {n.signedIn(operator).word()}}); got.status != 403 {
		t.Errorf("with another session's token: %d", got.status)
	}
}

func TestDecidingOnDeadLetters(t *testing.T) {
	n := newNight(t)
	b := n.signedIn("admin@north.example")
	word := b.word()
	path := "/tasks/" + task(n.dead)
	if got := b.post(path+"/discard", url.Values{"csrf": {word}}); got.status != 303 || !strings.Contains(b.get(got.location).html, "Reason is required.") {
		t.Errorf("discarding without a reason: %d", got.status)
	}
	fingerprint := groupOf.FindStringSubmatch(b.get("/dead-letters").html)
	if fingerprint == nil {
		t.Fatal("the page has no group")
	}
	got := b.post("/dead-letters/redrive", url.Values{"csrf": {word}, "fingerprint": {fingerprint[1]}, "reason": {"fixed"}})
	if got.status != 303 || !strings.Contains(b.get(got.location).html, "1 dead letter gets new attempts.") {
		t.Errorf("redriving: %d to %s", got.status, got.location)
	}
	if again := b.get(got.location); strings.Contains(again.html, "dead letter gets new attempts") {
		t.Error("the notice is shown twice")
	}
	n.await("the redriven task", func() bool { return !strings.Contains(b.get(path).html, "state-dead_letter") })
	if got := b.post("/dead-letters/discard", url.Values{"csrf": {word}, "fingerprint": {fingerprint[1]}, "reason": {"no"}}); !strings.Contains(b.get(got.location).html, "no dead letters any more") {
		t.Error("discarding an empty group says nothing")
	}
	if got := b.post("/tasks/"+task(n.running)+"/cancel", url.Values{"csrf": {word}, "reason": {"enough"}}); got.status != 303 || !strings.Contains(b.get(got.location).html, "state-cancel_requested") {
		t.Errorf("cancelling a running task: %d", got.status)
	}
	if got := b.post("/workers/"+n.worker.ID.Text("wrk")+"/drain", url.Values{"csrf": {word}}); got.status != 403 {
		t.Errorf("a tenant's admin drains a shared worker: %d", got.status)
	}
}

func TestPausingALaneAndMakingATenant(t *testing.T) {
	n := newNight(t)
	b := n.signedIn(operator)
	word, scope := b.word(), "?tenant=north&environment=production"
	if got := b.post("/lanes/batch/pause"+scope, url.Values{"csrf": {word}, "reason": {"model change"}}); got.status != 303 {
		t.Fatalf("pausing: %d", got.status)
	}
	if page := b.get("/lanes" + scope).html; !strings.Contains(page, "chip-paused") || !strings.Contains(page, "model change") {
		t.Error("the lane is not shown as paused")
	}
	if got := b.post("/lanes/batch/resume"+scope, url.Values{"csrf": {word}}); got.status != 303 || strings.Contains(b.get("/lanes"+scope).html, "chip-paused") {
		t.Error("the lane is still paused")
	}
	bad := b.post("/tenants", url.Values{"csrf": {word}, "name": {""}, "slug": {"Bad Slug"}, "weight": {"-1"}, "timezone": {"Mars/Base"}})
	if bad.status != 422 || strings.Count(bad.html, "field-wrong") != 4 {
		t.Errorf("a bad tenant: %d with %d faults", bad.status, strings.Count(bad.html, "field-wrong"))
	}
	if taken := b.post("/tenants", url.Values{"csrf": {word}, "name": {"N"}, "slug": {"north"}, "weight": {"1"}}); taken.status != 409 {
		t.Errorf("a taken slug: %d", taken.status)
	}
	if got := b.post("/tenants", url.Values{"csrf": {word}, "name": {"East " + nasty}, "slug": {"east.1"}, "weight": {"2.5"}, "timezone": {"Europe/Lisbon"}}); got.status != 303 || !strings.Contains(b.get("/tenants").html, "east.1") {
		t.Errorf("making a tenant: %d", got.status)
	}
	if got := b.post("/tenants/east.1/suspend", url.Values{"csrf": {word}}); got.status != 303 || !strings.Contains(b.get("/tenants").html, "suspended") {
		t.Error("the tenant is not suspended")
	}
}

// Each region of a page can be drawn again by itself, and is then the same element.
func (n *night) regionsAreDrawnAgainByThemselves(t *testing.T) {
	b := n.signedIn(operator)
	region := regexp.MustCompile(`<div id="([a-z]+)" data-live="[^"]+"[^>]* hx-get="([^"]+)"`)
	seen := 0
	for _, path := range []string{"/", "/tasks", "/tasks/" + task(n.running), "/workflows", "/workflows/" + n.flow.Text("wf"), "/dead-letters", "/lanes", "/workers", "/workers/" + n.worker.ID.Text("wrk"), "/tenants", "/system"} {
		found := region.FindAllStringSubmatch(b.get(path).html, -1)
		if len(found) == 0 {
			t.Errorf("%s has no live region", path)
		}
		for _, r := range found {
			seen++
			got := b.get(html.UnescapeString(r[2]))
			if got.status != 200 || !strings.HasPrefix(got.html, `<div id="`+r[1]+`"`) || strings.Contains(got.html, "<html") {
				t.Errorf("%s: the region %s is answered %d %.60s", path, r[1], got.status, got.html)
			}
		}
	}
	if seen < 18 {
		t.Errorf("only %d regions", seen)
	}
}

func TestSigningInAndOut(t *testing.T) {
	n := newStage(t)
	b := n.browser()
	if answer, err := b.client.Head(n.url + "/login"); err != nil || answer.StatusCode != 200 {
		t.Errorf("HEAD: %v %v", answer, err)
	}
	if got := b.get("/tasks?q=lane:io"); got.status != 303 || got.location != "/login?next=%2Ftasks%3Fq%3Dlane%3Aio" {
		t.Errorf("signed out: %d to %s", got.status, got.location)
	}
	if got := b.post("/login", url.Values{"email": {operator}, "password": {"wrong"}}); got.status != 401 || !strings.Contains(got.html, "wrong.") {
		t.Errorf("a wrong password: %d", got.status)
	}
	for next, want := range map[string]string{"/tasks?q=lane:io": "/tasks?q=lane:io", "//evil.example": "/", "https://evil.example": "/", `/\evil.example`: "/"} {
		if got := b.post("/login", url.Values{"email": {operator}, "password": {word}, "next": {next}}); got.status != 303 || got.location != want {
			t.Errorf("next %q: %d to %q", next, got.status, got.location)
		}
	}
	if got := b.get("/"); got.status != 303 || got.location != "/tenants" {
		t.Errorf("without a tenant the first page sends to %q (%d)", got.location, got.status)
	}
	if got := b.get("/tenants"); !strings.Contains(got.html, "No tenants") {
		t.Error("the empty list does not say what to do")
	}
	if got := b.post("/logout", url.Values{"csrf": {b.word()}}); got.status != 303 || b.get("/tenants").status != 303 {
		t.Errorf("signing out: %d", got.status)
	}
}

// The stream tells what moved, never to whom it is no business.
func (n *night) theStreamHints(t *testing.T) {
	listen := func(who string) *bufio.Scanner {
		b := n.signedIn(who)
		ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
		t.Cleanup(stop)
		request, err := http.NewRequestWithContext(ctx, "GET", n.url+"/ui/stream", nil)
		n.must(err)
		b.client.Timeout = 0
		answer, err := b.client.Do(request)
		n.must(err)
		t.Cleanup(func() { answer.Body.Close() })
		if got := answer.Header.Get("Content-Type"); answer.StatusCode != 200 || got != "text/event-stream" {
			t.Fatalf("the stream answers %d %s", answer.StatusCode, got)
		}
		lines := bufio.NewScanner(answer.Body)
		lines.Scan() // retry
		return lines
	}
	mine, theirs := listen("viewer@north.example"), listen("viewer@south.example")
	hint := func(lines *bufio.Scanner) string {
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				return data
			}
		}
		t.Fatalf("the stream ended: %v", lines.Err())
		return ""
	}
	n.hub.Take(models.Event{Env: n.env, Name: "task.succeeded", At: n.deps.Now(), Task: n.done, State: "succeeded"})
	n.hub.Take(models.Event{Name: "worker.joined", At: n.deps.Now(), Worker: n.worker.ID})
	if got := hint(mine) + hint(mine); !strings.Contains(got, task(n.done)) || !strings.Contains(got, "workers") {
		t.Errorf("the tenant hears %s", got)
	}
	if got := hint(theirs); strings.Contains(got, "task_") || !strings.Contains(got, "workers") {
		t.Errorf("another tenant hears %s", got)
	}
	if page := n.signedIn(operator).get("/?tenant=north&fragment=recent").html; !strings.Contains(page, "ingest") || !strings.Contains(page, "succeeded") {
		t.Errorf("what happened last is not shown: %s", page)
	}
}

func (n *night) aFingerprintFilterFindsItsTasks(t *testing.T) {
	b := n.signedIn("admin@north.example")
	found := groupOf.FindStringSubmatch(b.get("/dead-letters").html)
	if found == nil {
		t.Fatal("no group")
	}
	if _, err := hex.DecodeString(found[1]); err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(`id="row-(task_[^"]+)"`).FindAllStringSubmatch(b.get("/tasks?q="+url.QueryEscape("state:dead_letter fingerprint:"+found[1])).html, -1)
	if len(rows) != 1 || !slices.Contains(rows[0], task(n.dead)) {
		t.Errorf("found %v", rows)
	}
}
