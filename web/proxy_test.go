package web_test

import (
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/web"
)

// behind is a second front on the stage's dependencies: behind a proxy that ends TLS.
func (s *stage) behind() *web.Server {
	s.t.Helper()
	server, err := web.New(web.Options{Deps: s.deps, Secure: true, BehindProxy: true, Pages: testPages, Routes: []handlers.Route{{
		Method: "GET", Path: "/v1/trouble/ip", Scopes: []string{handlers.Public}, Doc: handlers.Doc{Tag: "Test", Summary: "who asks"},
		Handler: func(_ *handlers.Deps, c *fiber.Ctx) error { return c.SendString(handlers.ClientIP(c)) },
	}}})
	s.must(err)
	return server
}

func TestBehindAProxy(t *testing.T) {
	s := newStage(t)
	front := s.behind()
	for given, want := range map[string]string{
		"203.0.113.7":               "203.0.113.7",
		"10.0.0.1, 203.0.113.7":     "203.0.113.7", // the first is anybody's word
		"2001:db8::1":               "2001:db8::1",
		"203.0.113.7, <script>":     "0.0.0.0",
		"":                          "0.0.0.0",
		"203.0.113.7,198.51.100.20": "198.51.100.20",
	} {
		request := httptest.NewRequest("GET", "/v1/trouble/ip", nil)
		request.Header.Set("X-Forwarded-For", given)
		response, err := front.App.Test(request, 5000)
		s.must(err)
		text := make([]byte, 64)
		n, _ := response.Body.Read(text)
		if string(text[:n]) != want {
			t.Errorf("%q: %s, want %s", given, text[:n], want)
		}
		if response.Header.Get("Strict-Transport-Security") == "" {
			t.Error("no Strict-Transport-Security over TLS")
		}
	}
	form := url.Values{"email": {adminEmail}, "password": {adminWord}}
	request := httptest.NewRequest("POST", "/login", strings.NewReader(form.Encode()))
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := front.App.Test(request, 10_000)
	s.must(err)
	cookie := response.Header.Get("Set-Cookie")
	for _, part := range []string{"__Host-nightshift=", "; path=/", "; secure", "; HttpOnly", "; SameSite=Lax"} {
		if !strings.Contains(strings.ToLower(cookie), strings.ToLower(part)) {
			t.Errorf("the cookie %q lacks %q", cookie, part)
		}
	}
}

func TestRoutesWithoutScopeOrWordsAreRefused(t *testing.T) {
	s := newStage(t)
	good := handlers.Route{
		Method: "GET", Path: "/v1/x", Scopes: []string{handlers.Public}, Doc: handlers.Doc{Tag: "T", Summary: "S"},
		Handler: func(*handlers.Deps, *fiber.Ctx) error { return nil },
	}
	for name, spoil := range map[string]func(*handlers.Route){
		"no scope":   func(r *handlers.Route) { r.Scopes = nil },
		"no handler": func(r *handlers.Route) { r.Handler = nil },
		"no words":   func(r *handlers.Route) { r.Doc = handlers.Doc{} },
		"twice":      func(r *handlers.Route) { r.Path = "/livez" },
	} {
		bad := good
		spoil(&bad)
		if _, err := web.New(web.Options{Deps: s.deps, Routes: []handlers.Route{bad}}); err == nil {
			t.Errorf("a route with %s starts", name)
		}
	}
	if _, err := web.New(web.Options{Deps: s.deps, Routes: []handlers.Route{good}}); err != nil {
		t.Error(err)
	}
}
