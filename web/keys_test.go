package web_test

import (
	"strings"
	"sync"
	"testing"
)

func TestKeysGiveNoMoreThanTheirMakerHas(t *testing.T) {
	s := newStage(t)
	root := s.root()
	_, _, admin := s.tenant(root, "northwind", "admin:write", "tasks:read")
	_, otherKey, other := s.tenant(root, "southwind", "admin:write", "admin:read")
	make := func(status int, code, body string, headers ...string) reply {
		t.Helper()
		return s.want(s.call("POST", "/v1/api-keys", body, headers...), status, code)
	}
	made := make(201, "", `{"name":"reader","scopes":["tasks:read"],"environments":["production"]}`, "Authorization", admin)
	if made.str("client_id") != made.str("id") || !strings.HasPrefix(made.str("id"), "key_") || len(made.str("client_secret")) < 50 {
		t.Errorf("a new key: %s", made.text)
	}
	make(403, "forbidden", `{"name":"x","scopes":["tasks:write"]}`, "Authorization", admin)
	make(403, "forbidden", `{"name":"x","scopes":["platform"]}`, "Authorization", admin)
	make(422, "validation_failed", `{"name":"x","scopes":["platform"]}`, "Authorization", root, "Nightshift-Tenant", "northwind")
	make(422, "validation_failed", `{"name":"x","scopes":["tasks:sing"]}`, "Authorization", admin)
	make(422, "validation_failed", `{"name":"x","scopes":[]}`, "Authorization", admin)
	make(422, "validation_failed", `{"name":"x","scopes":["tasks:read"],"environments":["nowhere"]}`, "Authorization", admin)
	make(422, "validation_failed", `{"name":"x","scopes":["tasks:read"],"expires_at":"2020-01-01T00:00:00Z"}`, "Authorization", admin)
	make(403, "forbidden", `{"name":"x","scopes":["tasks:read"]}`, "Authorization", admin, "Nightshift-Tenant", "southwind")
	make(403, "scope_required", `{"name":"x","scopes":["tasks:read"]}`, "Authorization", s.token(made.str("client_id"), made.str("client_secret")))
	worker := make(201, "", `{"name":"shared worker","scopes":["workers:register"]}`, "Authorization", root)

	get := s.want(s.call("GET", "/v1/api-keys/"+made.str("id"), nil, "Authorization", root, "Nightshift-Tenant", "northwind"), 200, "")
	if get.body["client_secret"] != nil {
		t.Error("the secret is shown again")
	}
	for _, foreign := range []string{made.str("id"), worker.str("id"), "key_00000000000000000000000000", "%20", "a%00b"} {
		s.want(s.call("GET", "/v1/api-keys/"+foreign, nil, "Authorization", other), 404, "not_found")
		s.want(s.call("DELETE", "/v1/api-keys/"+foreign, nil, "Authorization", other), 404, "not_found")
		s.want(s.call("POST", "/v1/api-keys/"+foreign+"/rotate", nil, "Authorization", other), 404, "not_found")
	}
	list := s.want(s.call("GET", "/v1/api-keys", nil, "Authorization", other), 200, "")
	if rows := list.rows(); len(rows) != 1 || rows[0]["id"] != otherKey.str("id") {
		t.Errorf("southwind's keys: %s", list.text)
	}
}

func TestKeysRotateAndEnd(t *testing.T) {
	s := newStage(t)
	root := s.root()
	_, key, token := s.tenant(root, "northwind", "tasks:read")
	id, old := key.str("client_id"), key.str("client_secret")
	rotated := s.want(s.call("POST", "/v1/api-keys/"+id+"/rotate", nil, "Authorization", root, "Nightshift-Tenant", "northwind"), 200, "")
	if rotated.str("client_secret") == old || rotated.str("previous_secret_until") == "" {
		t.Errorf("rotated: %s", rotated.text)
	}
	s.token(id, old)
	s.token(id, rotated.str("client_secret"))
	again := s.want(s.call("POST", "/v1/api-keys/"+id+"/rotate", `{"overlap_seconds":0}`, "Authorization", root, "Nightshift-Tenant", "northwind"), 200, "")
	s.token(id, again.str("client_secret"))
	s.want(s.call("POST", "/v1/auth/token", map[string]string{"grant_type": "client_credentials", "client_id": id, "client_secret": old}), 401, "invalid_client")

	s.want(s.call("GET", "/v1/whoami", nil, "Authorization", token), 200, "")
	s.want(s.call("DELETE", "/v1/api-keys/"+id, nil, "Authorization", root, "Nightshift-Tenant", "northwind"), 204, "")
	s.want(s.call("GET", "/v1/whoami", nil, "Authorization", token), 401, "unauthenticated")
	s.want(s.call("DELETE", "/v1/api-keys/"+id, nil, "Authorization", root, "Nightshift-Tenant", "northwind"), 404, "not_found")
	audit := s.want(s.call("GET", "/v1/audit?object="+id, nil, "Authorization", root, "Nightshift-Tenant", "northwind"), 200, "")
	if rows := audit.rows(); len(rows) != 4 || rows[0]["action"] != "api_key.revoke" || strings.Contains(audit.text, again.str("client_secret")) {
		t.Errorf("the audit: %s", audit.text)
	}
}

func TestTenantAndEnvironmentOfAToken(t *testing.T) {
	s := newStage(t)
	root := s.root()
	_, _, token := s.tenant(root, "northwind", "tasks:read", "admin:read", "admin:write")
	s.want(s.call("POST", "/v1/environments", `{"name":"staging"}`, "Authorization", token), 201, "")
	s.want(s.call("POST", "/v1/environments", `{"name":"lab"}`, "Authorization", token), 201, "")
	bound := s.want(s.call("POST", "/v1/api-keys", `{"name":"b","scopes":["tasks:read","admin:read"],"environments":["staging","lab"]}`, "Authorization", token), 201, "")
	narrow := s.token(bound.str("client_id"), bound.str("client_secret"))
	for name, c := range map[string]struct {
		token, tenant, environment string
		status                     int
		code, acts                 string
	}{
		"its own default":        {token, "", "", 200, "", "production"},
		"another of its":         {token, "", "lab", 200, "", "lab"},
		"unknown environment":    {token, "", "nowhere", 404, "not_found", ""},
		"own tenant in a header": {token, "northwind", "", 403, "forbidden", ""},
		"first of the key":       {narrow, "", "", 200, "", "staging"},
		"second of the key":      {narrow, "", "lab", 200, "", "lab"},
		"not of the key":         {narrow, "", "production", 403, "forbidden", ""},
		"platform by slug":       {root, "northwind", "staging", 200, "", "staging"},
		"platform, none":         {root, "", "", 200, "", ""},
		"platform, unknown":      {root, "nobody", "", 404, "not_found", ""},
	} {
		r := s.call("GET", "/v1/whoami", nil, "Authorization", c.token, "Nightshift-Tenant", c.tenant, "Nightshift-Environment", c.environment)
		if r.status != c.status || r.code() != c.code || r.str("environment") != c.acts {
			t.Errorf("%s: %d %q acting on %q: %s", name, r.status, r.code(), r.str("environment"), r.text)
		}
	}
	s.want(s.call("GET", "/v1/lanes", nil, "Authorization", root), 400, "tenant_required")
	s.want(s.call("GET", "/v1/kinds", nil, "Authorization", root), 200, "")
}

func TestIdempotencyKeys(t *testing.T) {
	s := newStage(t)
	root := s.root()
	s.tenant(root, "northwind", "admin:write")
	call := func(path, body, key string) reply {
		return s.call("POST", path, body, "Authorization", root, "Nightshift-Tenant", "northwind", "Idempotency-Key", key)
	}
	for _, c := range []struct{ path, body, other string }{
		{"/v1/lanes", `{"name":"one","kind":"io"}`, `{"name":"two","kind":"io"}`},
		{"/v1/environments", `{"name":"staging"}`, `{"name":"lab"}`},
		{"/v1/api-keys", `{"name":"k","scopes":["tasks:read"]}`, `{"name":"l","scopes":["tasks:read"]}`},
	} {
		first := s.want(call(c.path, c.body, "k1"), 201, "")
		second := s.want(call(c.path, c.body, "k1"), 201, "")
		if second.text != first.text || second.header.Get("Idempotent-Replayed") != "true" || second.header.Get("Location") != first.header.Get("Location") {
			t.Errorf("%s: the replay differs: %s / %s %v", c.path, first.text, second.text, second.header)
		}
		if first.header.Get("Idempotent-Replayed") != "" {
			t.Errorf("%s: the first answer calls itself a replay", c.path)
		}
		s.want(call(c.path, c.other, "k1"), 422, "idempotency_key_reused")
	}
	s.want(call("/v1/lanes", `{"name":"bad!","kind":"io"}`, "k2"), 422, "validation_failed")
	s.want(call("/v1/lanes", `{"name":"good","kind":"io"}`, "k2"), 201, "") // refusals are not kept
	s.want(call("/v1/lanes", `{"name":"x","kind":"io"}`, strings.Repeat("k", 256)), 422, "validation_failed")

	var wait sync.WaitGroup
	replies := make([]reply, 8)
	for i := range replies {
		wait.Go(func() { replies[i] = call("/v1/api-keys", `{"name":"race","scopes":["tasks:read"]}`, "race") })
	}
	wait.Wait()
	replayed := 0
	for _, r := range replies {
		s.want(r, 201, "")
		if r.text != replies[0].text {
			t.Errorf("two answers to one key: %s / %s", r.text, replies[0].text)
		}
		if r.header.Get("Idempotent-Replayed") == "true" {
			replayed++
		}
	}
	if replayed != len(replies)-1 {
		t.Errorf("%d of %d were replays", replayed, len(replies))
	}
}
