package acceptance

import (
	"strings"
	"testing"
)

func TestTokens(t *testing.T) {
	d := open(t)
	const form = "application/x-www-form-urlencoded"
	ask := func(body any, headers ...string) reply { return d.call("POST", "/v1/auth/token", "", body, headers...) }
	for _, c := range []struct {
		name, body, media string
		status            int
		code              string
	}{
		{"a wrong secret", "grant_type=client_credentials&client_id=root&client_secret=wrong", form, 401, "invalid_client"},
		{"an unknown client", "grant_type=client_credentials&client_id=nobody&client_secret=wrong", form, 401, "invalid_client"},
		{"another grant", "grant_type=password&client_id=root&client_secret=" + rootSecret, form, 400, "unsupported_grant_type"},
		{"no grant", "client_id=root&client_secret=" + rootSecret, form, 400, "invalid_request"},
		{"an unknown scope", "grant_type=client_credentials&scope=sing&client_id=root&client_secret=" + rootSecret, form, 400, "invalid_scope"},
		{"JSON cut short", `{"grant_type":`, "application/json", 400, "invalid_json"},
		{"an unknown member", `{"grant_type":"client_credentials","pin":1}`, "application/json", 422, "validation_failed"},
		{"XML", "<grant/>", "text/xml", 415, "unsupported_media_type"},
	} {
		r := ask(c.body, "Content-Type", c.media)
		if r.status != c.status || r.str("code") != c.code || r.str("error") != c.code {
			t.Errorf("%s: %d %s", c.name, r.status, r.text)
		}
	}
	if r := ask(nil); r.status != 400 || r.str("code") != "invalid_request" {
		t.Errorf("nothing at all: %d %s", r.status, r.text)
	}
	narrow := d.want(ask("grant_type=client_credentials&scope=tasks:read&client_id=root&client_secret="+rootSecret, "Content-Type", form), 200, "")
	d.same("the narrowed scope", narrow.str("scope"), "tasks:read")
	d.same("the life", narrow.at("expires_in"), 900.0)
	d.want(d.call("GET", "/v1/tenants", narrow.str("access_token"), nil), 403, "scope_required")
	whole := d.want(ask(map[string]any{"grant_type": "client_credentials", "client_id": "root", "client_secret": rootSecret}), 200, "")
	header, rest, _ := strings.Cut(whole.str("access_token"), ".")
	for _, wrong := range []string{"", "x", header + "." + rest + "x", header + "." + strings.ToUpper(rest), "e30." + rest} {
		if r := d.call("GET", "/v1/whoami", "", nil, "Authorization", "Bearer "+wrong); r.status != 401 || r.str("code") != "unauthenticated" {
			t.Errorf("the token %q: %d %s", wrong, r.status, r.text)
		}
	}
}

// A key's reach: what its maker may give, one environment or all, and until it is revoked.
func TestKeysAndEnvironments(t *testing.T) {
	d := open(t)
	_, admin := d.tenant("northwind")
	_, other := d.tenant("southwind")
	for scope, code := range map[string]string{"platform": "forbidden", "scale:read": "forbidden"} {
		d.want(d.call("POST", "/v1/api-keys", admin, map[string]any{"name": "x", "scopes": []string{scope}}), 403, code)
	}
	d.want(d.call("POST", "/v1/environments", admin, map[string]any{"name": "staging", "kind": "staging"}), 201, "")
	made := d.want(d.call("POST", "/v1/api-keys", admin, map[string]any{"name": "x", "scopes": []string{"tasks:read", "tasks:write"}, "environments": []string{"staging"}}), 201, "")
	d.same("client_id", made.str("client_id"), made.str("id"))
	token := d.token(made.str("client_id"), made.str("client_secret"))
	d.same("the environment", d.call("GET", "/v1/whoami", token, nil).str("environment"), "staging")
	d.want(d.call("GET", "/v1/tasks", token, nil, "Nightshift-Environment", "production"), 403, "forbidden")
	d.want(d.call("GET", "/v1/tasks", token, nil, "Nightshift-Environment", "nowhere"), 404, "not_found")
	d.want(d.call("GET", "/v1/tasks", token, nil, "Nightshift-Tenant", "northwind"), 403, "forbidden")
	task := d.submit(token, map[string]any{"type": "a"})
	d.want(d.call("GET", "/v1/tasks/"+task, admin, nil), 404, "not_found")
	d.want(d.call("GET", "/v1/tasks/"+task, admin, nil, "Nightshift-Environment", "staging"), 200, "")
	read := d.want(d.call("GET", "/v1/api-keys/"+made.str("id"), admin, nil), 200, "")
	if strings.Contains(read.text, made.str("client_secret")) {
		t.Error("the secret is shown again")
	}
	turned := d.want(d.call("POST", "/v1/api-keys/"+made.str("id")+"/rotate", admin, nil), 200, "")
	d.token(made.str("id"), made.str("client_secret")) // both are good for a while
	d.token(made.str("id"), turned.str("client_secret"))
	d.want(d.call("DELETE", "/v1/api-keys/"+made.str("id"), other, nil), 404, "not_found")
	// A key that is good for one environment ends none that is good for more.
	local := d.want(d.call("POST", "/v1/api-keys", admin, map[string]any{"name": "local", "scopes": []string{"admin:read", "admin:write"}, "environments": []string{"staging"}}), 201, "")
	wide := d.want(d.call("POST", "/v1/api-keys", admin, map[string]any{"name": "wide", "scopes": []string{"tasks:read"}}), 201, "")
	bound := d.token(local.str("client_id"), local.str("client_secret"))
	d.want(d.call("DELETE", "/v1/api-keys/"+wide.str("id"), bound, nil), 403, "forbidden")
	d.want(d.call("GET", "/v1/api-keys/"+wide.str("id"), admin, nil), 200, "")
	d.want(d.call("DELETE", "/v1/api-keys/"+made.str("id"), bound, nil), 204, "")
	d.await("the revoked key's token to end", func() bool { return d.call("GET", "/v1/tasks", token, nil).status == 401 })
}
