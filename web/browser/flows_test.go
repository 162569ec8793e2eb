package browser

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// fill writes into the fields of the page's form, as somebody who types does.
func (b *tab) fill(pairs ...string) {
	b.t.Helper()
	for i := 0; i+1 < len(pairs); i += 2 {
		js[bool](b, fmt.Sprintf(`(() => {
			const field = document.querySelector(%q);
			field.focus();
			field.value = %q;
			field.dispatchEvent(new Event("input", {bubbles: true}));
			field.dispatchEvent(new Event("change", {bubbles: true}));
			return true;
		})()`, `main [name="`+pairs[i]+`"]`, pairs[i+1]))
	}
}

// ask opens the small form of a button, fills it in and sends it.
func (b *tab) ask(label string, pairs ...string) {
	b.t.Helper()
	found := js[bool](b, fmt.Sprintf(`(() => {
		const fold = Array.from(document.querySelectorAll("main details.ask")).find(d => d.querySelector("summary").textContent.trim() === %q);
		if (!fold) return false;
		fold.open = true;
		fold.id = "asked";
		return true;
	})()`, label))
	if !found {
		b.t.Fatalf("there is no button %q: %s", label, js[string](b, `document.querySelector("main").innerText`))
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		b.do(chromedp.SendKeys(chromedp.CSS(`#asked [name="`+pairs[i]+`"]`), pairs[i+1]))
	}
	b.press(chromedp.Click(chromedp.CSS(`#asked button[type=submit]`)))
}

// says wants the page to show a text.
func (b *tab) says(texts ...string) {
	b.t.Helper()
	page := js[string](b, `document.querySelector("main").innerText`)
	for _, text := range texts {
		if !strings.Contains(strings.ToLower(page), strings.ToLower(text)) {
			b.t.Errorf("%s does not say %q: %s", js[string](b, `location.pathname`), text, page)
		}
	}
}

func TestAScheduleIsMadeEditedAndRunByHand(t *testing.T) {
	chromium(t)
	s := newStage(t)
	w := s.newTenant("acorn", "Acorn")
	s.member("owner@acorn.example", "owner", "acorn")
	b := s.newTab()
	b.signIn("owner@acorn.example")
	b.open("/schedules")
	b.press(chromedp.Click(chromedp.CSS(`main .head-acts a.btn-primary`)))
	b.fill("name", "nightly", "expression", "30 2 * * *", "timezone", "Europe/Lisbon", "task_type", "report.write", "task_payload", `{"day": "{{scheduled_for}}"}`)
	b.until("the next runs while typing", `document.querySelectorAll("#preview .next li").length === 10 && document.querySelector("#preview").innerText.includes("At 02:30")`)
	if js[bool](b, `document.querySelector("[name=every_seconds]").checkVisibility()`) {
		t.Error("the field of another kind is shown")
	}
	b.fill("kind", "interval", "every_seconds", "-1")
	b.until("the preview says what is wrong", `document.querySelector("#preview .bad") !== null`)
	b.fill("kind", "cron", "expression", "61 * * * *")
	b.refusals(true)
	b.press(chromedp.Click(chromedp.CSS(`#editor button[type=submit]`)))
	b.says("Nothing was saved", "61")
	b.oneHeading("the refused editor", "New schedule")
	b.fill("expression", "30 2 * * *")
	b.press(chromedp.Click(chromedp.CSS(`#editor button[type=submit]`)))
	b.refusals(false)
	b.says("The schedule is there.", "At 02:30", "Version 1", "Next run")
	b.blameless("making a schedule")

	path := js[string](b, `location.pathname`)
	b.open(path + "/edit")
	w.call("PATCH", "/v1/schedules/nightly", w.token, object{"expression": "45 3 * * *"})
	b.fill("description", "what I wanted to say")
	b.press(chromedp.Click(chromedp.CSS(`#editor button[type=submit]`)))
	b.says("Somebody saved this schedule while you were editing", "Version 2", "expression")
	b.forget() // the refusal itself
	if js[string](b, `document.querySelector("[name=description]").value`) != "what I wanted to say" {
		t.Error("what was typed is lost")
	}
	b.press(chromedp.Click(chromedp.CSS(`#editor button[type=submit]`)))
	b.says("saved as a new version", "what I wanted to say", "Version 3")
	b.ask("Pause", "reason", "the holidays")
	b.says("It is paused: the holidays.")
	b.ask("Run now")
	b.says("A run was made.", "manual", "dispatched")
	b.open("/schedules")
	shown := `document.querySelector(".bulk-acts").checkVisibility()`
	if js[bool](b, shown) {
		t.Error("nothing is chosen, and what to do with it is offered")
	}
	b.do(chromedp.KeyEvent("j"), chromedp.KeyEvent("x"))
	b.until("the row is chosen", shown+` && document.querySelector("[data-ticked]").textContent === "1 chosen" && document.querySelector("[data-tick-all]").checked`)
	js[bool](b, `(htmx.trigger("#rows", "refresh"), true)`)
	b.until("it stays so when the rows are drawn again", `document.querySelector("#rows [data-tick]:checked") !== null && `+shown)
	b.do(chromedp.Click(chromedp.CSS(`#bulk-all`)))
	b.until("what all would be is counted", `document.querySelector("#bulk [role=status]").textContent.includes("0 schedules would be paused, 1 resumed")`)
	b.do(chromedp.Click(chromedp.CSS(`#bulk-all`)))
	b.fill("reason", "back to work")
	b.press(chromedp.Click(chromedp.CSS(`#bulk button[value=resume]`)))
	b.says("1 schedule is resumed.")
	b.blameless("running it by hand")
}

func TestATaskIsApprovedAndAWorkflowRerun(t *testing.T) {
	chromium(t)
	s := newStage(t)
	w := s.newTenant("acorn", "Acorn")
	w.fill(plain)
	s.member("owner@acorn.example", "owner", "acorn")
	held := str(w.call("POST", "/v1/tasks", w.token, object{"type": "text.publish", "needs_approval": true}), "id")
	b := s.newTab()
	b.signIn("owner@acorn.example")
	b.open("/tasks/" + held)
	b.says("Needs an approval")
	b.ask("Approve", "reason", "read it")
	b.says("The task may start.")
	b.open("/tasks/" + w.dead[0])
	b.ask("Rerun from here")
	b.says("This is a new workflow")
	if at := js[string](b, `location.pathname`); !strings.HasPrefix(at, "/workflows/wf_") || at == "/workflows/"+w.workflow {
		t.Errorf("the rerun leads to %s", at)
	}
	b.open("/workflows/" + w.workflow)
	b.ask("Pause", "reason", "a look")
	b.says("Nothing more of it starts.", "paused")
	b.open("/activity")
	b.says("task.approve", "workflow.pause", "a look", "owner@acorn.example")
	b.blameless("approving and rerunning")
}

func TestAKeyIsShownOnce(t *testing.T) {
	chromium(t)
	s := newStage(t)
	s.newTenant("acorn", "Acorn")
	s.member("owner@acorn.example", "owner", "acorn")
	b := s.newTab()
	b.signIn("owner@acorn.example")
	b.open("/settings")
	b.do(chromedp.Click(chromedp.CSS(`main .fold-card > summary`)))
	b.fill("name", "importer")
	b.press(chromedp.Click(chromedp.CSS(`main .fold-card button[type=submit]`)))
	b.says("importer is there", "shown this once")
	text := js[string](b, `document.querySelector(".card-good code").textContent`)
	id, secret, _ := strings.Cut(strings.TrimPrefix(text, "CLIENT_ID="), "\nCLIENT_SECRET=")
	if s.token(id, secret) == "" {
		t.Errorf("the key gets no token: %s", text)
	}
	if status, _ := s.send(http.MethodPost, "/v1/auth/token", "", url.Values{"grant_type": {"client_credentials"}, "client_id": {id}, "client_secret": {"wrong"}}); status != 401 {
		t.Errorf("a wrong secret: %d", status)
	}
	b.open("/settings")
	if strings.Contains(js[string](b, `document.documentElement.innerHTML`), secret) {
		t.Error("the secret is shown again")
	}
	b.blameless("making a key")
}

// Every field has a label, every button a name, every picture a text, and what has the focus shows it.
func TestPagesCanBeUsedByAll(t *testing.T) {
	chromium(t)
	s := newStage(t)
	w := s.newTenant("acorn", "Acorn")
	w.fill(plain)
	w.call("POST", "/v1/schedules", w.token, object{"name": "nightly", "kind": "cron", "expression": "0 2 * * *", "task": object{"type": "x"}})
	b := s.newTab()
	b.signIn(operator)
	b.open("/?tenant=acorn")
	pages := b.links()
	for _, at := range []string{"/schedules/nightly", "/schedules/nightly/edit", "/schedules/nightly/backfill", "/tasks/" + w.dead[0], "/tasks/" + w.dead[0] + "/retry", "/workflows/" + w.workflow} {
		pages = append(pages, link{Href: at + "?tenant=acorn"})
	}
	pages = append(pages, link{Href: "/docs"})
	for _, at := range pages {
		b.open(at.Href)
		for _, text := range js[[]string](b, unusable) {
			t.Errorf("%s: %s", at.Href, text)
		}
		b.do(chromedp.KeyEvent("\t"))
		if !js[bool](b, `document.activeElement !== document.body && getComputedStyle(document.activeElement).outlineStyle !== "none"`) {
			t.Errorf("%s: the focus does not show at %s", at.Href, js[string](b, `document.activeElement.outerHTML.slice(0, 100)`))
		}
	}
	b.blameless("the pages")
}

const unusable = `(() => {
	const found = [], say = (what, e) => found.push(what + ": " + e.outerHTML.slice(0, 140));
	const named = e => (e.textContent.trim() || e.getAttribute("aria-label") || e.title || "") !== "";
	for (const e of document.querySelectorAll("input:not([type=hidden]), select, textarea"))
		if (!(e.labels && e.labels.length) && !e.getAttribute("aria-label")) say("a field without a label", e);
	for (const e of document.querySelectorAll("button, a[href], summary")) if (!named(e)) say("nameless", e);
	for (const e of document.querySelectorAll("svg")) if (e.getAttribute("aria-hidden") !== "true" && !e.getAttribute("aria-label") && e.getAttribute("role") === "img") say("a picture without a text", e);
	for (const e of document.querySelectorAll("main th")) if (!e.scope) say("a heading of a table without its direction", e);
	const ids = Array.from(document.querySelectorAll("[id]"), e => e.id);
	for (const id of new Set(ids.filter((id, i) => ids.indexOf(id) !== i))) found.push("the id is there twice: " + id);
	return found;
})()`
