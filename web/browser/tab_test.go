package browser

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// tab is a page of a browser of its own, with everything that went wrong in it.
type tab struct {
	*stage
	ctx context.Context

	mu      sync.Mutex
	faults  []string
	refused bool // a page may answer that it can't read what it was asked
}

// chromium is where the browser is; without one the test is skipped, or fails where one is required.
func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("REQUIRE_BROWSER") == "1" {
		t.Fatal("no Chromium is installed, and REQUIRE_BROWSER=1 asks for one")
	}
	t.Skip("no Chromium is installed: the pages are not looked at (REQUIRE_BROWSER=1 makes this a failure)")
	return ""
}

func (s *stage) newTab() *tab {
	s.t.Helper()
	b := &tab{stage: s}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(chromium(s.t)), chromedp.WSURLReadTimeout(2*time.Minute), chromedp.NoSandbox, chromedp.DisableGPU)
	for _, flag := range []string{"disable-quic", "no-first-run", "disable-background-networking", "disable-component-update", "disable-sync"} {
		options = append(options, chromedp.Flag(flag, true))
	}
	options = append(options, chromedp.UserDataDir(s.t.TempDir()))
	whole, stop := context.WithTimeout(context.Background(), 10*time.Minute)
	allocator, end := chromedp.NewExecAllocator(whole, options...)
	ctx, closeTab := chromedp.NewContext(allocator)
	s.t.Cleanup(func() {
		_ = chromedp.Cancel(ctx)
		closeTab()
		end()
		stop()
	})
	b.begin(ctx)
	return b
}

// beside opens another tab of the same browser.
func (b *tab) beside() *tab {
	b.t.Helper()
	other := &tab{stage: b.stage}
	ctx, closeTab := chromedp.NewContext(b.ctx)
	b.t.Cleanup(closeTab)
	other.begin(ctx)
	return other
}

func (b *tab) begin(ctx context.Context) {
	b.t.Helper()
	b.ctx = ctx
	b.must(chromedp.Do(ctx, chromedp.EmulateViewport(1400, 900))) // the browser starts, and lives as long as its context
	b.must(chromedp.Listen(ctx, b.hear))
	_, err := chromedp.Call(ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{
		Source: `document.addEventListener("securitypolicyviolation", e => console.error("refused by the policy", e.violatedDirective, e.blockedURI, e.sample))`,
	})
	b.must(err)
}

// hear notes what should not happen on any page.
func (b *tab) hear(event any) {
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		text := e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			text += " " + e.ExceptionDetails.Exception.Description
		}
		b.fault("an exception: " + text)
	case *runtime.EventConsoleAPICalled:
		var said []string
		for _, arg := range e.Args {
			said = append(said, string(arg.Value))
		}
		if e.Type != "log" && e.Type != "info" && e.Type != "debug" {
			b.fault("the console: " + strings.Join(said, " "))
		}
	case *cdplog.EventEntryAdded:
		if b.mayRefuse() && strings.Contains(e.Entry.Text, "a status of 422") {
			return
		}
		if e.Entry.Level == "error" || e.Entry.Level == "warning" {
			b.fault("the log: " + e.Entry.Text + " " + e.Entry.URL)
		}
	case *network.EventLoadingFailed:
		if !e.Canceled && e.ErrorText != "net::ERR_ABORTED" {
			b.fault(fmt.Sprintf("a %s failed: %s %s", e.Type, e.ErrorText, e.BlockedReason))
		}
	case *network.EventResponseReceived:
		if e.Response.Status >= 400 && (e.Response.Status != 422 || !b.mayRefuse()) {
			b.fault(fmt.Sprintf("%d for %s", e.Response.Status, e.Response.URL))
		}
	case *page.EventJavascriptDialogOpening:
		b.fault("a dialog: " + e.Message)
		go func() {
			_, _ = chromedp.Call(b.ctx, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{})
		}()
	}
}

func (b *tab) mayRefuse() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.refused
}

func (b *tab) refusals(may bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refused = may
}

func (b *tab) fault(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.faults = append(b.faults, text)
}

// foreign lists what no page of ours holds: scripts, handlers and frames that came in with a text.
const foreign = `(() => {
	const found = window.__pwned === undefined ? [] : ["script ran: " + window.__pwned];
	for (const e of document.querySelectorAll("script:not([src]), iframe, math, main img, main style, [hx-on], [href^='javascript:' i], [action^='javascript:' i]"))
		found.push(e.outerHTML.slice(0, 120));
	for (const e of document.querySelectorAll("main *"))
		for (const a of e.attributes)
			if (/^(on|hx-on|style$|srcdoc)/i.test(a.name)) found.push(a.name + " of " + e.outerHTML.slice(0, 120));
	return found;
})()`

// blameless fails for what went wrong since it was asked last.
func (b *tab) blameless(where string) {
	b.t.Helper()
	for _, text := range js[[]string](b, foreign) {
		b.fault("somebody's " + text)
	}
	for _, text := range slices.Compact(b.forget()) {
		b.t.Errorf("%s: %s", where, text)
	}
}

// forget drops what went wrong so far.
func (b *tab) forget() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	faults := b.faults
	b.faults = nil
	return faults
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, time.Minute)
	defer cancel()
	b.must(chromedp.Do(ctx, steps...))
}

// js is what an expression gives in the page.
func js[T any](b *tab, expression string) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, time.Minute)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	b.must(err)
	return value
}

// open goes to a path of the replica and waits until the page is drawn.
func (b *tab) open(path string) {
	b.t.Helper()
	b.do(chromedp.Navigate(b.url + path))
}

// press does what leaves the page, and waits for the next one.
func (b *tab) press(step chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, time.Minute)
	defer cancel()
	if _, err := chromedp.Run(ctx, chromedp.WaitEvent(page.LoadEventFired, nil, step)); err != nil {
		b.t.Fatal(err)
	}
}

func (b *tab) signIn(email string) {
	b.t.Helper()
	b.open("/login")
	b.do(chromedp.SendKeys(chromedp.CSS(`input[name=email]`), email), chromedp.SendKeys(chromedp.CSS(`input[name=password]`), word))
	b.press(chromedp.Click(chromedp.CSS(`button[type=submit]`)))
	if at := js[string](b, `location.pathname`); at == "/login" {
		b.t.Fatalf("%s is not let in: %s", email, js[string](b, `document.body.innerText`))
	}
}

func (b *tab) signOut() {
	b.t.Helper()
	b.press(chromedp.Click(chromedp.CSS(`.side-body button[aria-label="Sign out"]`)))
}

func (b *tab) scheme(name string) {
	b.t.Helper()
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}},
	})
	b.must(err)
}

// until asks the page again until it is so.
func (b *tab) until(what, expression string) {
	b.t.Helper()
	if _, err := chromedp.Run(b.ctx, chromedp.Poll[bool](expression, chromedp.WithPollingTimeout(time.Minute), chromedp.WithPollingInterval(50*time.Millisecond))); err != nil {
		b.t.Fatalf("%s: %v; the page says: %s", what, err, js[string](b, `document.body.innerText`))
	}
}
