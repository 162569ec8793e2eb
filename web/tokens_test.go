package web_test

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"nightshift/handlers"
)

func TestTokenEndpoint(t *testing.T) {
	s := newStage(t)
	form := func(pairs ...string) string {
		v := url.Values{}
		for i := 0; i+1 < len(pairs); i += 2 {
			v.Add(pairs[i], pairs[i+1])
		}
		return v.Encode()
	}
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte(rootID+":"+rootSecret))
	const formType, jsonType = "application/x-www-form-urlencoded", "application/json"
	for name, c := range map[string]struct {
		body, kind, authorization string
		status                    int
		code                      string
	}{
		"form":              {form("grant_type", "client_credentials", "client_id", rootID, "client_secret", rootSecret), formType, "", 200, ""},
		"json":              {`{"grant_type":"client_credentials","client_id":"root","client_secret":"` + rootSecret + `"}`, jsonType, "", 200, ""},
		"basic":             {form("grant_type", "client_credentials"), formType, basic, 200, ""},
		"unknown form word": {form("grant_type", "client_credentials", "resource", "x"), formType, basic, 200, ""},
		"narrowed":          {form("grant_type", "client_credentials", "scope", "tasks:read tasks:write"), formType, basic, 200, ""},
		"wrong scope":       {form("grant_type", "client_credentials", "scope", "tasks:sing"), formType, basic, 400, "invalid_scope"},
		"wrong secret":      {form("grant_type", "client_credentials", "client_id", rootID, "client_secret", "x"), formType, "", 401, "invalid_client"},
		"unknown client":    {form("grant_type", "client_credentials", "client_id", "nobody", "client_secret", "x"), formType, "", 401, "invalid_client"},
		"no client":         {form("grant_type", "client_credentials"), formType, "", 401, "invalid_client"},
		"NUL client":        {form("grant_type", "client_credentials", "client_id", "a\x00b", "client_secret", "x"), formType, "", 401, "invalid_client"},
		"bad basic":         {form("grant_type", "client_credentials"), formType, "Basic %%%", 401, "invalid_client"},
		"no grant":          {form("client_id", rootID), formType, "", 400, "invalid_request"},
		"other grant":       {form("grant_type", "password"), formType, basic, 400, "unsupported_grant_type"},
		"given twice":       {form("grant_type", "client_credentials", "scope", "tasks:read", "scope", "platform"), formType, basic, 400, "invalid_request"},
		"both ways":         {form("grant_type", "client_credentials", "client_id", rootID, "client_secret", rootSecret), formType, basic, 400, "invalid_request"},
		"text":              {"hello", "text/plain", "", 415, "unsupported_media_type"},
		"broken json":       {`{"grant_type":`, jsonType, "", 400, "invalid_json"},
		"doubled json":      {`{"grant_type":"client_credentials","grant_type":"x"}`, jsonType, "", 422, "validation_failed"},
		"unknown field":     {`{"grant_type":"client_credentials","colour":"red"}`, jsonType, basic, 422, "validation_failed"},
		"wrong type":        {`{"grant_type":7}`, jsonType, basic, 422, "validation_failed"},
		"large":             {form("grant_type", strings.Repeat("x", 20<<10)), formType, "", 413, "body_too_large"},
	} {
		r := s.call("POST", "/v1/auth/token", c.body, "Content-Type", c.kind, "Authorization", c.authorization)
		if r.status != c.status || r.code() != c.code {
			t.Errorf("%s: got %d %q, want %d %q: %s", name, r.status, r.code(), c.status, c.code, r.text)
		}
		if c.code != "" && r.str("error") != c.code {
			t.Errorf("%s: the OAuth error is %q, not %q", name, r.str("error"), c.code)
		}
		if c.status == 200 && (r.str("token_type") != "Bearer" || r.body["expires_in"] != 900.0 || r.header.Get("Cache-Control") != "no-store") {
			t.Errorf("%s: %v %s", name, r.header, r.text)
		}
		if c.status == 401 && r.header.Get("WWW-Authenticate") == "" {
			t.Errorf("%s: 401 without WWW-Authenticate", name)
		}
	}
	narrow := s.call("POST", "/v1/auth/token", form("grant_type", "client_credentials", "scope", "tasks:read"), "Content-Type", formType, "Authorization", basic)
	if narrow.str("scope") != "tasks:read" {
		t.Errorf("the narrowed scope: %s", narrow.text)
	}
	s.want(s.call("GET", "/v1/tenants", nil, "Authorization", "Bearer "+narrow.str("access_token")), 403, "scope_required")
	if strings.Contains(s.logged(), rootSecret) {
		t.Error("the secret stands in the log")
	}
}

func TestOnlyFailuresAreLimited(t *testing.T) {
	s := newStage(t)
	refused := false
	for n := 0; n < 200 && !refused; n++ { // one comes back each 3 s: a slow machine needs more than the first 20
		r := s.call("POST", "/v1/auth/token", `{"grant_type":"client_credentials","client_id":"root","client_secret":"wrong"}`)
		refused = r.status == 429 && r.code() == "rate_limited"
	}
	if !refused {
		t.Error("wrong secrets were never limited")
	}
	s.token(rootID, rootSecret) // who knows the secret gets in all the same
}

// hostile makes tokens by hand.
type hostile struct {
	kid     string
	private ed25519.PrivateKey
	claims  map[string]any
	header  map[string]any
}

func (h hostile) with(change func(claims, header map[string]any)) string {
	claims, header := maps.Clone(h.claims), maps.Clone(h.header)
	change(claims, header)
	head, _ := json.Marshal(header)
	body, _ := json.Marshal(claims)
	return h.sign(string(head), string(body))
}

func (h hostile) sign(header, claims string) string {
	text := base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + base64.RawURLEncoding.EncodeToString([]byte(claims))
	return text + "." + base64.RawURLEncoding.EncodeToString(ed25519.Sign(h.private, []byte(text)))
}

func TestHostileTokens(t *testing.T) {
	s := newStage(t)
	tenant, key, good := s.tenant(s.root(), "northwind", "tasks:read", "admin:read")
	h := signingKeyOf(t, s)
	now := time.Now().Unix()
	h.claims = map[string]any{
		"iss": "nightshift", "aud": "nightshift", "sub": key.str("client_id"), "iat": now, "nbf": now, "exp": now + 600, "jti": "j",
		"tenant": tenant.str("id"), "environment": "production", "scope": "tasks:read",
	}
	set := func(name string, v any) func(claims, header map[string]any) {
		return func(claims, _ map[string]any) { claims[name] = v }
	}
	drop := func(name string) func(claims, header map[string]any) {
		return func(claims, _ map[string]any) { delete(claims, name) }
	}
	head := func(name string, v any) func(claims, header map[string]any) {
		return func(_, header map[string]any) { header[name] = v }
	}
	same := func(_, _ map[string]any) {}
	_, stranger, _ := ed25519.GenerateKey(rand.Reader)
	other := hostile{h.kid, stranger, h.claims, h.header}
	plain := h.with(same)
	parts := strings.Split(plain, ".")
	secondHeader, _ := json.Marshal(h.header)
	body, _ := json.Marshal(h.claims)
	brain, err := s.deps.Signer.BrainToken("other replica")
	s.must(err)
	s.want(s.call("GET", "/v1/whoami", nil, "Authorization", "Bearer "+plain), 200, "")
	bad := map[string]string{
		"none":               h.with(head("alg", "none")),
		"none unsigned":      strings.Join([]string{base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","typ":"at+jwt"}`)), parts[1], ""}, "."),
		"HS256 by public":    confused(h, string(body)),
		"alg ES256":          h.with(head("alg", "ES256")),
		"alg lower case":     h.with(head("alg", "eddsa")),
		"no alg":             h.with(func(_, header map[string]any) { delete(header, "alg") }),
		"typ JWT":            h.with(head("typ", "JWT")),
		"no typ":             h.with(func(_, header map[string]any) { delete(header, "typ") }),
		"other key":          other.with(same),
		"no kid":             h.with(func(_, header map[string]any) { delete(header, "kid") }),
		"kid path":           h.with(head("kid", "../../dev/null")),
		"kid number":         h.with(head("kid", 7)),
		"kid SQL":            h.with(head("kid", "' OR 1=1 --")),
		"jwk inside":         h.with(head("jwk", map[string]string{"kty": "OKP"})),
		"jku":                h.with(head("jku", "https://example.com/jwks")),
		"x5u":                h.with(head("x5u", "https://example.com/x")),
		"crit":               h.with(head("crit", []string{"exp"})),
		"iss wrong":          h.with(set("iss", "elsewhere")),
		"iss missing":        h.with(drop("iss")),
		"iss list":           h.with(set("iss", []string{"nightshift"})),
		"aud wrong":          h.with(set("aud", "other")),
		"aud missing":        h.with(drop("aud")),
		"aud list":           h.with(set("aud", []string{"nightshift"})),
		"aud two":            h.with(set("aud", []string{"nightshift", "other"})),
		"aud prefix":         h.with(set("aud", "nightshift2")),
		"sub missing":        h.with(drop("sub")),
		"sub unknown":        h.with(set("sub", "key_nobody")),
		"sub number":         h.with(set("sub", 1)),
		"exp past":           h.with(set("exp", now-60)),
		"exp missing":        h.with(drop("exp")),
		"exp text":           h.with(set("exp", "9999999999")),
		"exp far":            h.with(set("exp", now+86400)),
		"exp huge":           h.with(set("exp", 1e18)),
		"exp fraction":       h.with(set("exp", float64(now)+600.5)),
		"exp null":           h.with(set("exp", nil)),
		"nbf future":         h.with(set("nbf", now+300)),
		"iat future":         h.with(func(c, _ map[string]any) { c["iat"], c["nbf"], c["exp"] = now+300, now+300, now+800 }),
		"iat missing":        h.with(drop("iat")),
		"long life":          h.with(func(c, _ map[string]any) { c["iat"], c["nbf"] = now-4000, now-4000 }),
		"jti missing":        h.with(drop("jti")),
		"tenant missing":     h.with(drop("tenant")),
		"tenant other":       h.with(set("tenant", "ten_00000000000000000000000000")),
		"tenant list":        h.with(set("tenant", []string{tenant.str("id")})),
		"unknown claim":      h.with(set("admin", true)),
		"doubled claim":      h.sign(string(secondHeader), strings.Replace(string(body), `"scope":"tasks:read"`, `"scope":"tasks:read","scope":"platform"`, 1)),
		"doubled header":     h.sign(strings.Replace(string(secondHeader), `"alg":"EdDSA"`, `"alg":"EdDSA","alg":"EdDSA"`, 1), string(body)),
		"trailing claims":    h.sign(string(secondHeader), string(body)+`{}`),
		"claims list":        h.sign(string(secondHeader), `[]`),
		"oversized":          h.with(set("scope", strings.Repeat("tasks:read ", 1000))),
		"padded":             parts[0] + "=." + parts[1] + "." + parts[2],
		"signature cut":      plain[:len(plain)-4],
		"signature empty":    parts[0] + "." + parts[1] + ".",
		"four parts":         plain + ".x",
		"two parts":          parts[0] + "." + parts[1],
		"other token class":  brain,
		"not a token":        "hello",
		"empty":              "",
		"NUL":                h.with(set("scope", "tasks:read\x00")),
		"signature tampered": parts[0] + "." + base64.RawURLEncoding.EncodeToString([]byte(strings.Replace(string(body), "tasks:read", "platform", 1))) + "." + parts[2],
	}
	var same401 string
	for name, token := range bad {
		r := s.call("GET", "/v1/whoami", nil, "Authorization", "Bearer "+token, "X-Request-Id", "hostile-token")
		if r.status != 401 || r.code() != "unauthenticated" {
			t.Errorf("%s: got %d %s", name, r.status, r.text)
		}
		if same401 == "" {
			same401 = r.text
		} else if r.text != same401 {
			t.Errorf("%s: another body than the others: %s", name, r.text)
		}
	}
	for name, header := range map[string]string{"no scheme": strings.TrimPrefix(good, "Bearer "), "Basic": "Basic " + strings.TrimPrefix(good, "Bearer "), "none": ""} {
		if r := s.call("GET", "/v1/whoami", nil, "Authorization", header); r.status != 401 {
			t.Errorf("%s: %d", name, r.status)
		}
	}
	// A scope the key does not hold is not given by a token that claims it.
	wide := h.with(set("scope", "tasks:read platform admin:write"))
	if r := s.want(s.call("GET", "/v1/whoami", nil, "Authorization", "Bearer "+wide), 200, ""); strings.Contains(r.text, "platform") || strings.Contains(r.text, "admin:write") {
		t.Errorf("scopes that the key does not hold: %s", r.text)
	}
}

// confused is a token signed with the public key as if it were a shared secret.
func confused(h hostile, body string) string {
	head := `{"alg":"HS256","typ":"at+jwt","kid":"` + h.kid + `"}`
	text := base64.RawURLEncoding.EncodeToString([]byte(head)) + "." + base64.RawURLEncoding.EncodeToString([]byte(body))
	mac := hmac.New(sha256.New, h.private.Public().(ed25519.PublicKey))
	mac.Write([]byte(text))
	return text + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// signingKeyOf takes the server's own key, as somebody who knew it could.
func signingKeyOf(t *testing.T, s *stage) hostile {
	t.Helper()
	keys, err := s.deps.People.SigningKeys(t.Context(), 24*time.Hour, time.Hour, nil)
	s.must(err)
	return hostile{
		kid: keys[0].KID, private: ed25519.NewKeyFromSeed(keys[0].PrivateKey),
		header: map[string]any{"alg": "EdDSA", "typ": "at+jwt", "kid": keys[0].KID},
	}
}

func TestSigningKeysRotate(t *testing.T) {
	s := newStage(t)
	old := s.root()
	kids := func() []string {
		r := s.want(s.call("GET", "/.well-known/jwks.json", nil), 200, "")
		var out []string
		list, _ := r.body["keys"].([]any)
		for _, k := range list {
			jwk := k.(map[string]any)
			if jwk["kty"] != "OKP" || jwk["crv"] != "Ed25519" || jwk["alg"] != "EdDSA" || jwk["d"] != nil {
				t.Errorf("a key of the set: %v", jwk)
			}
			out = append(out, jwk["kid"].(string))
		}
		return out
	}
	before := kids()
	s.must(s.deps.Signer.Rotate(t.Context()))
	after := kids()
	if len(before) != 1 || len(after) != 2 || after[1] != before[0] {
		t.Fatalf("keys before %v, after %v", before, after)
	}
	s.want(s.call("GET", "/v1/whoami", nil, "Authorization", old), 200, "")
	fresh := s.root()
	s.want(s.call("GET", "/v1/whoami", nil, "Authorization", fresh), 200, "")
	// Another replica, which has read the keys before the rotation, learns of the new one from the first token.
	replica := handlers.NewSigner(s.deps.People, s.deps.Now)
	if _, err := replica.Verify(t.Context(), strings.TrimPrefix(fresh, "Bearer "), handlers.AudienceAPI); err != nil {
		t.Errorf("a replica that knew no key: %v", err)
	}
	parsed, _, err := jwt.NewParser().ParseUnverified(strings.TrimPrefix(fresh, "Bearer "), jwt.MapClaims{})
	s.must(err)
	if parsed.Header["typ"] != "at+jwt" || parsed.Claims.(jwt.MapClaims)["aud"] != "nightshift" {
		t.Errorf("the token says %v %v", parsed.Header, parsed.Claims)
	}
}
