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
}

func samples(p func(name, path string) Page) []sample {
	busy := p("Tasks", "/tasks")
	busy.Notice = &Notice{Good: true, Text: "31 dead letters got new attempts."}
	return []sample{
		{"now", "Now", Now(p("Now", "/"), sampleNowView())},
		{"now-empty", "Now", Now(p("Now", "/"), NowView{Lanes: sampleTiles()[:1]})},
		{"tasks", "Tasks", Tasks(busy, sampleTasksView())},
		{"tasks-empty", "Tasks", Tasks(p("Tasks", "/tasks"), TasksView{})},
		{"tasks-wrong", "Tasks", Tasks(p("Tasks", "/tasks"), TasksView{Query: `state:gone "` + nasty, Wrong: "There is no state “gone”."})},
		{"task", "Task", Task(p("Task", "/tasks"), sampleTask())},
		{"task-dead", "Task", Task(p("Task", "/tasks"), sampleDeadTask())},
		{"workflows", "Workflows", Workflows(p("Workflows", "/workflows"), WorkflowsView{Rows: sampleWorkflows(), Next: "x"})},
		{"workflow", "Workflow", Workflow(p("Workflow", "/workflows"), sampleWorkflow(9))},
		{"workflow-large", "Workflow", Workflow(p("Workflow", "/workflows"), sampleWorkflow(2000))},
		{"workers", "Workers", Workers(p("Workers", "/workers"), sampleWorkers())},
		{"worker", "Worker", Worker(p("Worker", "/workers"), sampleWorkers().Workers[0])},
		{"dead-letters", "Dead letters", DeadLetters(p("Dead letters", "/dead-letters"), DeadLettersView{Groups: sampleDead(), Total: 48})},
		{"dead-letters-empty", "Dead letters", DeadLetters(p("Dead letters", "/dead-letters"), DeadLettersView{})},
		{"lanes", "Lanes", Lanes(p("Lanes", "/lanes"), sampleLanes())},
		{"tenants", "Tenants", Tenants(p("Tenants", "/tenants"), sampleTenants())},
		{"system", "System", System(p("System", "/system"), sampleSystem())},
		{"start", "Start here", Start(p("Start here", "/start"), StartView{Server: "https://nightshift.example"})},
		{"trouble", "There is nothing here", Trouble(p("Not found", ""), TroubleView{Status: 404, Heading: "There is nothing here", Text: "The page does not exist, or it belongs to somebody else.", Request: "0198f1c2"})},
		{"login", "Sign in", Login(LoginView{Wrong: "Email or password are wrong.", Email: "operator@nightshift.example", CSRF: "c"})},
		{"docs", "API docs", Docs()},
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
		if s.file == "login" {
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
