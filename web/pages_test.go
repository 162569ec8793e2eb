package web_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// browser keeps its cookie, as browsers do.
type browser struct {
	*stage
	cookie string
}

func (b *browser) visit(method, path string, form url.Values, headers ...string) reply {
	b.t.Helper()
	request, err := http.NewRequestWithContext(b.t.Context(), method, b.url+path, strings.NewReader(form.Encode()))
	b.must(err)
	if form != nil {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if b.cookie != "" {
		request.Header.Set("Cookie", b.cookie)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	r := b.send(request)
	if set := r.header.Get("Set-Cookie"); set != "" {
		b.cookie, _, _ = strings.Cut(set, ";")
	}
	return r
}

func TestSigningInAndOut(t *testing.T) {
	s := newStage(t)
	s.tenant(s.root(), "northwind", "tasks:read")
	s.tenant(s.root(), "southwind", "tasks:read")
	b := &browser{stage: s}
	if r := b.visit("GET", "/", nil); r.status != 303 || r.header.Get("Location") != "/login" {
		t.Errorf("signed out: %d %s", r.status, r.header.Get("Location"))
	}
	if r := b.visit("GET", "/tasks?state=ready", nil); r.header.Get("Location") != "/login?next=%2Ftasks%3Fstate%3Dready" {
		t.Errorf("signed out, deep: %s", r.header.Get("Location"))
	}
	for accept, media := range map[string]string{"": "text/html; charset=utf-8", "*/*": "text/html; charset=utf-8", "application/json": "application/problem+json"} {
		if r := b.visit("GET", "/no-such-page", nil, "Accept", accept); r.status != 404 || r.header.Get("Content-Type") != media {
			t.Errorf("what is no page, signed out, for %q: %d %v", accept, r.status, r.header)
		}
	}
	if r := b.visit("POST", "/livez", nil); r.status != 405 || r.header.Get("Allow") != "GET, HEAD" {
		t.Errorf("a POST to /livez: %d, Allow %q", r.status, r.header.Get("Allow"))
	}
	login := b.visit("GET", "/login", nil)
	policy := login.header.Get("Content-Security-Policy")
	if login.status != 200 || !strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy, "'nonce-") || strings.Contains(policy, "unsafe") {
		t.Errorf("the login page: %d %s", login.status, policy)
	}
	words := url.Values{"email": {adminEmail}, "password": {"wrong"}}
	if r := b.visit("POST", "/login", words); r.status != 401 || b.cookie != "" {
		t.Errorf("a wrong password: %d", r.status)
	}
	words.Set("password", adminWord)
	if r := b.visit("POST", "/login", words, "Sec-Fetch-Site", "cross-site"); r.status != 403 {
		t.Errorf("a login from another site: %d", r.status)
	}
	if r := b.visit("POST", "/login", words, "Origin", "https://evil.example"); r.status != 403 {
		t.Errorf("a login of another origin: %d", r.status)
	}
	r := b.visit("POST", "/login", words, "Sec-Fetch-Site", "same-origin")
	set := r.header.Get("Set-Cookie")
	if r.status != 303 || !strings.Contains(set, "HttpOnly") || !strings.Contains(set, "SameSite=Lax") || !strings.HasPrefix(set, "nightshift=") {
		t.Fatalf("the login: %d %q", r.status, set)
	}
	home := b.visit("GET", "/", nil)
	if home.str("email") != adminEmail || home.str("tenant") != "northwind" || home.str("environment") != "production" {
		t.Errorf("the first page: %s", home.text)
	}
	if r := b.visit("GET", "/?tenant=southwind", nil); r.str("tenant") != "southwind" {
		t.Errorf("another tenant: %s", r.text)
	}
	if r := b.visit("GET", "/?tenant=nobody", nil); r.status != 404 {
		t.Errorf("an unknown tenant: %d", r.status)
	}
	if r := b.visit("POST", "/logout", url.Values{"csrf": {"guess"}}); r.status != 403 {
		t.Errorf("a logout without the form's word: %d", r.status)
	}
	if r := b.visit("GET", "/v1/whoami", nil); r.status != 401 {
		t.Errorf("a cookie opens the API: %d", r.status)
	}
	kept := b.cookie
	if r := b.visit("POST", "/logout", url.Values{"csrf": {home.str("csrf")}}); r.status != 303 {
		t.Errorf("the logout: %d %s", r.status, r.text)
	}
	b.cookie = kept
	if r := b.visit("GET", "/", nil); r.status != 303 {
		t.Errorf("the session lives after the logout: %d", r.status)
	}
	if strings.Contains(s.logged(), adminWord) {
		t.Error("the password stands in the log")
	}
}

func TestLoginsAreThrottled(t *testing.T) {
	s := newStage(t)
	b := &browser{stage: s}
	last := 0
	for n := 0; n < 40 && last != 429; n++ { // one comes back each 30 s
		last = b.visit("POST", "/login", url.Values{"email": {adminEmail}, "password": {"guess"}}).status
	}
	if last != 429 {
		t.Errorf("the last of many guesses: %d", last)
	}
	if r := b.visit("POST", "/login", url.Values{"email": {strings.Repeat("x", 2<<20)}}); r.status != 413 {
		t.Errorf("a large form: %d", r.status)
	}
}
