package browser

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
)

// hostile are texts that would do something where they are not taken as text.
var hostile = []string{
	`<script>window.__pwned=1</script>`, `"><img src=x onerror="window.__pwned=2">`, `' onmouseover='window.__pwned=3' autofocus onfocus='window.__pwned=3`,
	`javascript:window.__pwned=4`, `<svg/onload=window.__pwned=5>`, `</textarea></title></style><script>window.__pwned=6</script>`,
	`{{constructor.constructor('window.__pwned=7')()}}`, `${window.__pwned=8}`, `<a href="javascript:window.__pwned=9">x</a>`,
	`<iframe srcdoc="<script>parent.__pwned=10</script>"></iframe>`, `<div hx-get="/system" hx-trigger="load" hx-on:load="window.__pwned=11">`,
	`<details open ontoggle=window.__pwned=12>`, `<!--><script>window.__pwned=13</script>-->`, `<math><mtext><img src=x onerror=window.__pwned=14>`,
	`a/b?c=d&e=f#g`, `..%2F..%2Fsystem`, `%3Cscript%3Ewindow.__pwned=15%3C/script%3E`, "\u202egnp.exe\u202c مرحبا", strings.Repeat("very-long", 22),
	`<style>body{display:none}</style>`, "back\\slash `tick` 'single' \"double\" &amp; &lt;",
}

func TestHostileTextsStayTexts(t *testing.T) {
	chromium(t)
	s := newStage(t)
	w := s.newTenant("acorn", hostile[0])
	text := func(i int) string { return hostile[i%len(hostile)] }
	w.fill(words{workflow: text(1), label: text(2), description: text(3), failure: text(4), reason: text(5)})
	b := s.newTab()
	b.signIn(operator)
	paths := w.provoke(text)
	b.open("/?tenant=acorn")
	for _, at := range b.links() {
		paths = append(paths, at.Href)
	}
	for _, path := range paths {
		b.refusals(strings.Contains(path, "q="))
		b.open(path)
		b.oneHeading(path, "")
		if over := b.overflow(); over != "" {
			t.Errorf("%s is too wide: %s", path, over)
		}
		b.blameless(path)
	}
	for _, path := range []string{"/workflows", "/dead-letters", "/lanes", "/workers", "/tenants", "/schedules", "/activity"} {
		b.open(path + "?tenant=acorn")
		for at, status := range js[map[string]int](b, followed) {
			if status != 200 {
				t.Errorf("the link %s of %s gives %d", at, path, status)
			}
		}
		b.blameless("the links of " + path)
	}
}

// followed opens what a page links to, and answers with what came.
const followed = `(async () => {
	const out = {};
	for (const a of document.querySelectorAll("main a[href^='/']")) out[a.getAttribute("href")] = 0;
	await Promise.all(Object.keys(out).map(async at => { out[at] = (await fetch(at)).status; }));
	return out;
})()`

// provoke puts every hostile text into every field that takes one, and answers pages that show them.
func (w *world) provoke(text func(int) string) (paths []string) {
	w.t.Helper()
	for i := range hostile {
		w.call("POST", "/v1/schedules", w.token, object{
			"name": fmt.Sprintf("evil-%d", i), "kind": "interval", "every_seconds": 86400, "description": text(i), "owner": text(i + 1), "runbook_url": "https://x.example/" + url.PathEscape(text(i)),
			"task": object{"type": "text.summarize", "payload": object{text(i): text(i + 1)}, "labels": object{"customer": text(i)}},
		})
		w.call("POST", fmt.Sprintf("/v1/schedules/evil-%d/pause", i), w.token, object{"reason": text(i)})
		slug := fmt.Sprintf("evil-%d", i)
		w.call("POST", "/v1/tenants", w.root, object{"name": text(i), "slug": slug})
		w.call("POST", "/v1/lanes", w.token, object{"name": slug, "kind": "io", "description": text(i)})
		w.call("POST", "/v1/lanes/"+slug+"/pause", w.token, object{"reason": text(i)})
		flow := w.call("POST", "/v1/workflows", w.token, object{"name": text(i), "tasks": []object{{
			"key": text(i), "type": "text.summarize", "lane": slug, "description": text(i + 1),
			"labels": object{"customer": text(i), "other": text(i + 2)}, "payload": object{text(i): text(i + 1), "all": hostile},
		}, {"key": "then", "type": "text.summarize", "depends_on": []string{text(i)}}}})
		if first, _ := flow["tasks"].(object)[text(i)].(string); i%3 == 0 { // it shows the next texts too
			paths = append(paths, "/tasks/"+first+"?tenant=acorn", "/workflows/"+str(flow, "id")+"?tenant=acorn", "/tasks?tenant=acorn&q="+url.QueryEscape(text(i)))
		}
	}
	w.call("POST", "/v1/api-keys", w.root, object{"name": text(2)[:40], "scopes": []string{"tasks:read"}}, "Nightshift-Tenant", w.slug)
	paths = append(paths, "/schedules/evil-0?tenant=acorn", "/schedules/evil-7?tenant=acorn", "/schedules/evil-5/edit?tenant=acorn", "/schedules/evil-5/edit?tenant=acorn&as=json",
		"/schedules/new?tenant=acorn&from=evil-1", "/tasks/"+w.dead[0]+"/retry?tenant=acorn", "/schedules/evil-3/backfill?tenant=acorn")
	return append(paths, "/tasks/"+w.dead[0]+"?tenant=acorn", "/workflows/"+w.workflow+"?tenant=acorn", "/workers/"+w.worker+"?tenant=acorn")
}
