package templates

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/a-h/templ"

	"nightshift/static"
)

var previewDir = flag.String("preview", "", "write every page, drawn with sample data, into this folder")

type sample struct {
	file string
	name string // what the h1 says
	page templ.Component

	writes bool // only who may write ever sees it
}

func samples(p func(name, path string) Page) []sample {
	busy := p("Tasks", "/tasks")
	busy.Notice = &Notice{Good: true, Text: "31 dead letters got new attempts."}
	return []sample{
		{file: "now", name: "Now", page: Now(p("Now", "/"), sampleNowView())},
		{file: "now-empty", name: "Now", page: Now(p("Now", "/"), NowView{Lanes: sampleTiles()[:1]})},
		{file: "tasks", name: "Tasks", page: Tasks(busy, sampleTasksView())},
		{file: "tasks-empty", name: "Tasks", page: Tasks(p("Tasks", "/tasks"), TasksView{})},
		{file: "tasks-wrong", name: "Tasks", page: Tasks(p("Tasks", "/tasks"), TasksView{Query: `state:gone "` + nasty, Wrong: "There is no state “gone”."})},
		{file: "task", name: "Task", page: Task(p("Task", "/tasks"), sampleTask())},
		{file: "task-dead", name: "Task", page: Task(p("Task", "/tasks"), sampleDeadTask())},
		{file: "workflows", name: "Workflows", page: Workflows(p("Workflows", "/workflows"), WorkflowsView{Rows: sampleWorkflows(), Next: "x"})},
		{file: "workflow", name: "Workflow", page: Workflow(p("Workflow", "/workflows"), sampleWorkflow(9))},
		{file: "workflow-large", name: "Workflow", page: Workflow(p("Workflow", "/workflows"), sampleWorkflow(2000))},
		{file: "workers", name: "Workers", page: Workers(p("Workers", "/workers"), sampleWorkers())},
		{file: "worker", name: "Worker", page: Worker(p("Worker", "/workers"), sampleWorkers().Workers[0])},
		{file: "dead-letters", name: "Dead letters", page: DeadLetters(p("Dead letters", "/dead-letters"), DeadLettersView{Groups: sampleDead(), Total: 48})},
		{file: "dead-letters-empty", name: "Dead letters", page: DeadLetters(p("Dead letters", "/dead-letters"), DeadLettersView{})},
		{file: "lane", name: "Lane", page: Lane(p("Lane", "/lanes"), sampleLane())},
		{file: "lanes", name: "Lanes", page: Lanes(p("Lanes", "/lanes"), sampleLanes())},
		{file: "schedules", name: "Schedules", page: Schedules(p("Schedules", "/schedules"), SchedulesView{Rows: []ScheduleRow{sampleSchedule().ScheduleRow}, Next: "x", Total: 312, Filter: map[string]string{"q": nasty, "state": "on"}, Forecast: sampleForecast()})},
		{file: "schedules-none", name: "Schedules", page: Schedules(p("Schedules", "/schedules"), SchedulesView{Filter: map[string]string{"q": nasty}})},
		{file: "schedules-empty", name: "Schedules", page: Schedules(p("Schedules", "/schedules"), SchedulesView{})},
		{file: "schedule", name: "Schedule", page: Schedule(p("Schedule", "/schedules"), sampleSchedule())},
		{file: "schedule-new", name: "New schedule", page: ScheduleEditor(p("New schedule", "/schedules"), sampleForm()), writes: true},
		{file: "schedule-backfill", name: "Backfill", page: Backfill(p("Backfill", "/schedules"), BackfillView{ID: "sch_1", Name: nasty, Words: nasty, Timezone: "UTC", Counted: true, Matched: 3, Some: []NextRun{{At: sampleNow, Local: nasty, Note: nasty}}}), writes: true},
		{file: "task-edited", name: "Run again", page: Retry(p("Run again", "/tasks"), RetryView{Task: "task_1", Type: nasty, State: "dead_letter", Payload: nasty, Checkpoint: true, Wrong: map[string]string{"payload": nasty}}), writes: true},
		{file: "settings", name: "Settings", page: Settings(p("Settings", "/settings"), sampleSettings())},
		{file: "environments", name: "Environments", page: Environments(p("Environments", "/environments"), EnvironmentsView{
			Rows:   []EnvironmentRow{{Name: "production", Kind: "production", Current: true, Freezes: []Freeze{{From: sampleNow, To: sampleNow, Reason: nasty}}}, {Name: "staging", Kind: "staging", Paused: true, Reason: nasty}},
			Form:   EnvironmentForm{Name: nasty, Wrong: map[string]string{"name": nasty}},
			Freeze: FreezeForm{Values: map[string]string{"reason": nasty}, Wrong: map[string]string{"starts_at": nasty, "reason": nasty}}, Timezone: nasty,
		})},
		{file: "activity", name: "Activity", page: Activity(p("Activity", "/activity"), ActivityView{
			Filter: map[string]string{"action": nasty}, Next: "x", Rows: []ActivityRow{{
				ID: "audit-1", At: sampleNow, Who: nasty, WhoID: "usr_1", Action: "lane.pause", Object: "io", Path: "/lanes", Reason: nasty, IP: "127.0.0.1",
				Changes: []Change{{Name: "reason", Before: "null", After: nasty}},
			}},
		})},
		{file: "tenants", name: "Tenants", page: Tenants(p("Tenants", "/tenants"), sampleTenants())},
		{file: "system", name: "System", page: System(p("System", "/system"), sampleSystem())},
		{file: "start", name: "Start here", page: Start(p("Start here", "/start"), StartView{Server: "https://nightshift.example"})},
		{file: "trouble", name: "There is nothing here", page: Trouble(p("Not found", ""), TroubleView{Status: 404, Heading: "There is nothing here", Text: "The page does not exist, or it belongs to somebody else.", Request: "0198f1c2"})},
		{file: "login", name: "Sign in", page: Login(LoginView{Wrong: "Email or password are wrong.", Email: "operator@nightshift.example", CSRF: "c"})},
		{file: "docs", name: "API docs", page: Docs(sampleDocs())},
	}
}

func draw(t *testing.T, page templ.Component) string {
	t.Helper()
	var out bytes.Buffer
	if err := page.Render(context.Background(), &out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

var (
	h1          = regexp.MustCompile(`(?s)<h1[^>]*>(.*?)</h1>`)
	inlineStyle = regexp.MustCompile(`<[^>]+\sstyle=|<style`)
	inlineCode  = regexp.MustCompile(`<[a-z][^>]*\son[a-z]+=|<script>|javascript:`)
	postForm    = regexp.MustCompile(`(?s)<form[^>]*method="post"[^>]*action="([^"]*)"[^>]*>(.*?)</form>`)
	anyLink     = regexp.MustCompile(`(?:href|src|action|hx-get)="([^"]*)"`)
)

func TestPagesLiveUnderTheStrictPolicy(t *testing.T) {
	for _, s := range samples(samplePage) {
		html := draw(t, s.page)
		if found := h1.FindAllStringSubmatch(html, -1); len(found) != 1 || found[0][1] != s.name {
			t.Errorf("%s: want one h1 %q, found %v", s.file, s.name, found)
		}
		if found := inlineStyle.FindString(html); found != "" {
			t.Errorf("%s: inline style: %s", s.file, found)
		}
		if found := inlineCode.FindString(html); found != "" {
			t.Errorf("%s: inline script: %s", s.file, found)
		}
		if strings.Contains(html, "<script>alert") || strings.Contains(html, `e"><script`) {
			t.Errorf("%s: a name was written unescaped", s.file)
		}
		for _, found := range anyLink.FindAllStringSubmatch(html, -1) {
			if !strings.HasPrefix(found[1], "/") && !strings.HasPrefix(found[1], "#") {
				t.Errorf("%s: the link %q leaves the site", s.file, found[1])
			}
			if strings.ContainsAny(found[1], "<> \"") || strings.Contains(found[1], "a/b") {
				t.Errorf("%s: the link %q is not whole", s.file, found[1])
			}
		}
	}
}

func TestFormsCarryTheTokenOfTheSession(t *testing.T) {
	signOut := 0
	for _, s := range samples(samplePage) {
		for _, form := range postForm.FindAllStringSubmatch(draw(t, s.page), -1) {
			if !strings.Contains(form[2], `name="csrf" value="c`) {
				t.Errorf("%s: the form to %s has no token", s.file, form[1])
			}
			if form[1] == "/logout" {
				signOut++
			}
		}
	}
	if signOut == 0 {
		t.Error("no page has a form to sign out")
	}
}

func TestAReaderSeesNoButtonThatWouldFail(t *testing.T) {
	reading := func(name, path string) Page { return reader(samplePage(name, path)) }
	for _, s := range samples(reading) {
		if s.file == "login" || s.writes {
			continue
		}
		for _, form := range postForm.FindAllStringSubmatch(draw(t, s.page), -1) {
			if form[1] != "/logout" {
				t.Errorf("%s: a reader is shown the form to %s", s.file, form[1])
			}
		}
	}
}

func TestNavigationNamesOnlyWhatTheViewerMayOpen(t *testing.T) {
	for _, entry := range reader(samplePage("Now", "/")).Entries() {
		if entry.Platform {
			t.Errorf("a tenant's viewer is shown %s", entry.Name)
		}
	}
	keys := map[string]string{}
	for _, entry := range Navigation() {
		if keys[entry.Key] != "" {
			t.Errorf("g %s jumps to both %s and %s", entry.Key, keys[entry.Key], entry.Name)
		}
		keys[entry.Key] = entry.Name
	}
}

// TestPreview writes the pages with their assets where -preview says.
func TestPreview(t *testing.T) {
	if *previewDir == "" {
		t.Skip("no -preview folder named")
	}
	before := nasty
	nasty = "handbook-7"
	t.Cleanup(func() { nasty = before })
	for _, s := range samples(samplePage) {
		write(t, s.file+".html", []byte(draw(t, s.page)))
	}
	reading := func(name, path string) Page { return reader(samplePage(name, path)) }
	write(t, "task-reader.html", []byte(draw(t, samples(reading)[5].page)))
	for url, body := range static.All() {
		write(t, url, body)
	}
}

func write(t *testing.T, name string, body []byte) {
	t.Helper()
	path := filepath.Join(*previewDir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, body, 0o644); err != nil {
		t.Fatal(err)
	}
}
