package web_test

import (
	"strings"
	"testing"
)

// No route of the contract takes a parameter that it does not name: one sent is refused, never ignored, whatever the route
// does. A dry run that is not built must not run wet.
func TestUnknownParametersAreRefused(t *testing.T) {
	s := newStage(t)
	root := s.root()
	_, _, token := s.tenant(root, "northwind", scopesOf()...)
	n := 0
	for _, r := range allRoutes(s.deps.DB) {
		if !strings.HasPrefix(r.Path, "/v1/") || len(r.Doc.Query) > 0 || r.Path == "/v1/auth/token" {
			continue
		}
		bearer := token
		if !r.TenantNeeded {
			bearer = root
		}
		path := strings.NewReplacer(":id", "task_01h455vb4pex5vsknk084sn02q", ":name", "x", ":key", "x", ":kind", "io", ":type", "x", ":run", "x", ":lane", "x").Replace(r.Path)
		got := s.call(r.Method, path+"?dry_run=true", "", "Authorization", bearer, "Nightshift-Session", "x")
		if got.status != 400 || got.str("code") != "invalid_query" {
			t.Errorf("%s %s?dry_run=true: %d %s", r.Method, r.Path, got.status, got.str("code"))
		}
		n++
	}
	if n < 40 {
		t.Errorf("only %d routes were asked", n)
	}
}
