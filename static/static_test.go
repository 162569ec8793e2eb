package static

import (
	"compress/gzip"
	"io"
	"net/http/httptest"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v2"
)

func served(t *testing.T, url string, header ...string) (status int, get func(string) string, body []byte) {
	t.Helper()
	app := fiber.New(fiber.Config{Immutable: true})
	app.Get(Prefix+"*", Handler)
	request := httptest.NewRequest("GET", url, nil)
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	answer, err := app.Test(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err = io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, answer.Header.Get, body
}

func TestEveryFileIsServedForEverUnderItsFingerprint(t *testing.T) {
	for url, want := range All() {
		status, get, body := served(t, url)
		if status != 200 || string(body) != string(want) {
			t.Errorf("%s: status %d, %d bytes of %d", url, status, len(body), len(want))
		}
		if !strings.Contains(get("Cache-Control"), "immutable") || get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: headers %q, %q", url, get("Cache-Control"), get("X-Content-Type-Options"))
		}
		if get("Content-Type") != contentTypes[path.Ext(url)] {
			t.Errorf("%s: content type %q", url, get("Content-Type"))
		}
	}
}

func TestPackedAnswersUnpackToTheSame(t *testing.T) {
	url := URL("tabler.min.css")
	_, get, body := served(t, url, "Accept-Encoding", "gzip")
	if get("Content-Encoding") != "gzip" {
		t.Fatal("a browser that takes gzip did not get it")
	}
	reader, err := gzip.NewReader(strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	if string(plain) != string(All()[url]) {
		t.Error("the packed answer unpacks to something else")
	}
}

func TestNothingOutsideTheTableIsServed(t *testing.T) {
	for _, url := range []string{"app.css", "app.0000000000.css", "../static.go", "%2e%2e/static.go", "vendor/tabler.min.css", "licenses/htmx.txt", ""} {
		if status, _, _ := served(t, Prefix+url); status != 404 {
			t.Errorf("%q is answered with %d", url, status)
		}
	}
}

// Style sheets and scripts may point only at this site: no CDN, no eval.
func TestNothingIsFetchedFromElsewhere(t *testing.T) {
	outside := regexp.MustCompile(`url\(["']?(https?:)?//|@import|src=["']https?:`)
	ours := regexp.MustCompile(`\beval\(|new Function|innerHTML|https?://`)
	for url, body := range All() {
		if path.Ext(url) == ".css" && outside.Match(body) {
			t.Errorf("%s fetches from elsewhere: %s", url, outside.Find(body))
		}
	}
	for _, name := range []string{"app.js", "live.js", "theme.js", "docs.js"} {
		if found := ours.Find(All()[URL(name)]); found != nil {
			t.Errorf("%s holds %s", name, found)
		}
	}
}

func TestFontsAreNamedByFingerprintInTheStyle(t *testing.T) {
	css := string(All()[URL("app.css")])
	for _, font := range []string{"inter.woff2", "jetbrains-mono.woff2"} {
		if !strings.Contains(css, URL(font)) {
			t.Errorf("app.css does not name %s", URL(font))
		}
	}
}
