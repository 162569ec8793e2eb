package browser

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

type link struct{ Name, Href string }

// links are the pages that the navigation offers.
func (b *tab) links() []link {
	b.t.Helper()
	return js[[]link](b, `Array.from(document.querySelectorAll(".side-body .side-nav a[data-jump]"),
		a => ({Name: a.querySelector("span").textContent, Href: a.getAttribute("href")}))`)
}

// overflow is by how much the page is wider than the window, and what is.
func (b *tab) overflow() string {
	b.t.Helper()
	return js[string](b, `(() => {
		const width = document.documentElement.clientWidth;
		if (document.documentElement.scrollWidth <= width) return "";
		const wide = Array.from(document.querySelectorAll("body *")).filter(e => e.getBoundingClientRect().right > width + 1);
		return document.documentElement.scrollWidth + " of " + width + ": " + wide.slice(0, 4).map(e => e.tagName + "." + e.className).join(", ");
	})()`)
}

func (b *tab) oneHeading(page, want string) {
	b.t.Helper()
	if got := js[[]string](b, `Array.from(document.querySelectorAll("h1")).filter(h => h.checkVisibility()).map(h => h.textContent.trim())`); len(got) != 1 || want != "" && got[0] != want {
		b.t.Errorf("%s has the headings %q", page, got)
	}
}

func TestEveryPageOpens(t *testing.T) {
	chromium(t)
	s := newStage(t)
	w := s.newTenant("acorn", "Acorn")
	w.fill(plain)
	s.newTenant("birch", "Birch")
	b := s.newTab()
	b.signIn(operator)
	b.open("/?tenant=acorn")
	pages := b.links()
	if len(pages) < 9 {
		t.Fatalf("the navigation offers %v", pages)
	}
	for _, at := range []string{"/tasks/" + w.dead[0], "/workflows/" + w.workflow, "/workers/" + w.worker} {
		pages = append(pages, link{Href: at + "?tenant=acorn"})
	}
	for scheme, width := range map[string]int64{"light": 1400, "dark": 390} {
		b.scheme(scheme)
		b.do(chromedp.EmulateViewport(width, 844))
		for _, at := range pages {
			where := fmt.Sprintf("%s, %s, %d wide", at.Href, scheme, width)
			b.open(at.Href)
			b.oneHeading(where, at.Name)
			if got := js[string](b, `document.documentElement.dataset.theme`); got != scheme {
				t.Errorf("%s is drawn %s", where, got)
			}
			if over := b.overflow(); over != "" {
				t.Errorf("%s is too wide: %s", where, over)
			}
			b.blameless(where)
		}
	}
	paper := `getComputedStyle(document.body).backgroundColor`
	b.scheme("dark")
	b.until("a dark page", `document.documentElement.dataset.theme === "dark"`)
	dark := js[string](b, paper)
	b.scheme("light")
	b.until("the page follows the system's theme", fmt.Sprintf(`%s !== %q`, paper, dark))
	b.do(chromedp.EmulateViewport(1400, 900))
	b.open("/docs")
	if drawn := js[int](b, `document.querySelectorAll(".docs-op").length`); drawn < 60 {
		t.Errorf("the API's description has %d entries", drawn)
	}
	b.oneHeading("/docs", "API docs")
	b.do(chromedp.SendKeys(chromedp.CSS(`[data-docs-find]`), "schedules preview"))
	b.until("the filter leaves one endpoint", `document.querySelectorAll("main .docs-op[data-docs-op]:not([hidden])").length === 1`)
	b.open("/docs#post_tasks")
	b.until("the endpoint of the address is open", `document.getElementById("post_tasks").open`)
	b.blameless("/docs")
}

func TestAPageMovesByItself(t *testing.T) {
	chromium(t)
	s := newStage(t)
	w := s.newTenant("acorn", "Acorn")
	b := s.newTab()
	b.signIn(operator)
	for _, path := range []string{"/tasks?tenant=acorn", "/?tenant=acorn"} {
		b.open(path)
		b.until("the stream", `document.querySelector("[data-live-state=on]") !== null`)
		js[bool](b, `window.stays = true`)
		kind := strings.Map(func(r rune) rune {
			if r < 'a' || r > 'z' {
				return -1
			}
			return r
		}, path) + ".appears"
		w.call("POST", "/v1/tasks", w.token, object{"type": kind})
		b.until(path+" shows the new task", fmt.Sprintf(`document.querySelector("main").innerText.includes(%q)`, kind))
		if !js[bool](b, `window.stays === true`) {
			t.Errorf("%s was loaded again", path)
		}
		b.blameless(path)
	}
	// Two tabs share one stream.
	b.open("/tasks?tenant=acorn")
	other := b.beside()
	other.open("/tasks?tenant=acorn")
	other.until("the stream", `document.querySelector("[data-live-state=on]") !== null`)
	w.call("POST", "/v1/tasks", w.token, object{"type": "both.show"})
	for _, one := range []*tab{b, other} {
		one.until("both tabs show the new task", `document.querySelector("main").innerText.includes("both.show")`)
		one.blameless("two tabs")
	}
}

func TestDeadLettersAreRedrivenWithAReason(t *testing.T) {
	chromium(t)
	s := newStage(t)
	w := s.newTenant("acorn", "Acorn")
	w.fill(plain)
	b := s.newTab()
	b.signIn(operator)
	b.open("/dead-letters?tenant=acorn")
	b.do(chromedp.Click(chromedp.CSS(`.dead-acts details.ask summary`)),
		chromedp.SendKeys(chromedp.CSS(`.dead-acts details.ask[open] input[name=reason]`), "the disk was emptied"))
	b.press(chromedp.Click(chromedp.CSS(`.dead-acts details.ask[open] button[type=submit]`)))
	b.until("the page tells what became of it", `document.querySelector(".notice-good") !== null`)
	for _, id := range w.dead {
		s.await("new attempts", func() bool { return w.state(id) == "ready" })
	}
	b.until("no dead letter is left", `document.querySelectorAll(".dead").length === 0`)
	b.open("/tasks/" + w.dead[0] + "?tenant=acorn")
	b.blameless("the redrive")
}

func TestSigningOutEndsTheSession(t *testing.T) {
	chromium(t)
	s := newStage(t)
	s.newTenant("acorn", "Acorn")
	b := s.newTab()
	b.signIn(operator)
	b.signOut()
	for _, path := range []string{"", "/tasks", "/system"} {
		if path != "" {
			b.open(path)
		}
		if at := js[string](b, `location.pathname`); at != "/login" {
			t.Errorf("after signing out %q leads to %s", path, at)
		}
	}
	b.oneHeading("/login", "Sign in")
	b.blameless("/login")
	// What these tests rely on: a script that got into a page is refused, and noticed.
	js[bool](b, `document.body.append(Object.assign(document.createElement("script"), {textContent: "window.__pwned = true"})), true`)
	var seen string
	s.await("the refusal of a script", func() bool {
		seen += strings.Join(b.forget(), "\n")
		return strings.Contains(seen, "refused by the policy")
	})
	if js[bool](b, `window.__pwned === true`) {
		t.Error("a script that got into a page ran")
	}
}

// A viewer sees what there is and no button that would fail; forging the request fails too.
func TestAViewerSeesNoButtons(t *testing.T) {
	chromium(t)
	s := newStage(t)
	w := s.newTenant("acorn", "Acorn")
	w.fill(plain)
	s.member("viewer@acorn.example", "viewer", "acorn")
	s.member("owner@acorn.example", "owner", "acorn")
	buttons := `document.querySelectorAll("main details.ask, main form[method=post]").length`
	places := []string{"/", "/schedules", "/settings", "/environments", "/activity", "/tasks/" + w.dead[0], "/workflows/" + w.workflow, "/dead-letters", "/lanes", "/workers", "/workers/" + w.worker}
	seen := map[string]int{}
	b := s.newTab()
	for _, email := range []string{"viewer@acorn.example", "owner@acorn.example"} {
		b.signIn(email)
		for _, path := range places {
			b.open(path)
			b.oneHeading(path, "")
			seen[email] += js[int](b, buttons)
		}
		for _, at := range b.links() {
			if at.Href == "/tenants" || at.Href == "/system" {
				t.Errorf("%s is offered %s", email, at.Href)
			}
		}
		b.blameless(email)
		if email == "viewer@acorn.example" {
			b.open("/dead-letters")
			forged := js[int](b, `fetch("/dead-letters/redrive", {method: "POST", body: new URLSearchParams({
				csrf: document.querySelector("[name=csrf]").value, fingerprint: document.querySelector(".dead").id.replace(/^[a-z]+-/, ""), reason: "forged"
			})}).then(r => r.status)`)
			if forged != 403 || w.state(w.dead[0]) != "dead_letter" {
				t.Errorf("a forged redrive gave %d, and the task is %s", forged, w.state(w.dead[0]))
			}
			b.forget() // the refusal itself
			b.signOut()
		}
	}
	if seen["viewer@acorn.example"] != 0 || seen["owner@acorn.example"] == 0 {
		t.Errorf("buttons seen: %v", seen)
	}
}
