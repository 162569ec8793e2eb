package api

import (
	"encoding/base64"
	"mime"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/models"
	"nightshift/models/postgres"
)

type tokenRequest struct {
	GrantType    string `json:"grant_type" required:"true" enum:"client_credentials"`
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret"`
	Scope        string `json:"scope" doc:"space separated; narrows what the key holds"`
}

type tokenAnswer struct {
	AccessToken string `json:"access_token"`
	TokenType   string `json:"token_type" enum:"Bearer"`
	ExpiresIn   int    `json:"expires_in"`
	Scope       string `json:"scope"`
}

// token is OAuth 2's client credentials grant.
func token(d *handlers.Deps, c *fiber.Ctx) error {
	ask, err := readTokenRequest(c)
	if err != nil {
		return err
	}
	switch {
	case ask.GrantType == "":
		return models.Errorf(models.InvalidRequest, "grant_type is missing; it is client_credentials")
	case ask.GrantType != "client_credentials":
		return models.Errorf(models.UnsupportedGrantType, "the only grant here is client_credentials")
	case ask.ClientID == "" || ask.ClientSecret == "":
		return models.Errorf(models.InvalidClient, "client_id and client_secret are needed")
	}
	key, err := client(d, c, ask)
	if err != nil {
		return err
	}
	scopes, err := narrow(ask.Scope, key.Scopes)
	if err != nil {
		return err
	}
	claims, err := claimsOf(d, c, key, scopes)
	if err != nil {
		return err
	}
	signed, err := d.Signer.Sign(claims)
	if err != nil {
		return err
	}
	if err := d.People.KeyUsed(c.UserContext(), key.ID); err != nil {
		d.Logger.Warn("the use of a key could not be noted", "key", key.ID, "error", err)
	}
	c.Set(fiber.HeaderPragma, "no-cache")
	return handlers.Answer(c, fiber.StatusOK, tokenAnswer{signed, "Bearer", int(handlers.TokenLife / time.Second), claims.Scope})
}

// client finds the key of the credentials. Only failures are counted: who knows the secret is never refused.
func client(d *handlers.Deps, c *fiber.Ctx, ask tokenRequest) (*postgres.APIKey, error) {
	if !handlers.Storable(ask.ClientID) || len(ask.ClientID) > 64 || len(ask.ClientSecret) > 1024 {
		return nil, wrongClient(d, c, "-")
	}
	key, err := d.Keys.WithSecret(c.UserContext(), ask.ClientID, ask.ClientSecret)
	if err != nil {
		return nil, err
	}
	if key == nil {
		return nil, wrongClient(d, c, ask.ClientID)
	}
	return key, nil
}

func wrongClient(d *handlers.Deps, c *fiber.Ctx, id string) error {
	ip := handlers.ClientIP(c)
	if wait := d.TokenFailures.Fail(d.Now().Time(), "ip "+ip, "key "+id+" "+ip); wait > 0 {
		e := models.Errorf(models.RateLimited, "too many wrong credentials; wait a little")
		e.RetryAfterSeconds = int(wait/time.Second) + 1
		return e
	}
	return models.Errorf(models.InvalidClient, "client_id and client_secret do not belong together, or the key is revoked or expired")
}

func narrow(asked string, held []string) ([]string, error) {
	if asked == "" {
		return held, nil
	}
	var scopes []string
	for _, scope := range strings.Fields(asked) {
		holds := slices.Contains(held, scope) || slices.Contains(held, handlers.Platform)
		if !slices.Contains(handlers.Scopes(), scope) || !holds {
			return nil, models.Errorf(models.InvalidScope, "the key does not hold the scope %q", handlers.Shorten(scope, 40))
		}
		if !slices.Contains(scopes, scope) {
			scopes = append(scopes, scope)
		}
	}
	if len(scopes) == 0 {
		return nil, models.Errorf(models.InvalidScope, "scope names no scope")
	}
	return scopes, nil
}

func claimsOf(d *handlers.Deps, c *fiber.Ctx, key *postgres.APIKey, scopes []string) (handlers.Claims, error) {
	claims := handlers.Claims{Audience: handlers.AudienceAPI, Subject: key.ID, Scope: strings.Join(scopes, " ")}
	if key.Tenant == nil {
		return claims, nil
	}
	tenant, err := d.Directory.TenantByNumber(c.UserContext(), *key.Tenant)
	if err != nil {
		return claims, err
	}
	id, environment := tenant.ID.Text(models.TenantPrefix), "production"
	if open := key.Open(); len(open) > 0 {
		environment = open[0]
	}
	claims.Tenant, claims.Environment = &id, &environment
	return claims, nil
}

// readTokenRequest reads a form or JSON, and credentials of HTTP Basic, which then must not come twice.
func readTokenRequest(c *fiber.Ctx) (tokenRequest, error) {
	var ask tokenRequest
	media, _, _ := mime.ParseMediaType(c.Get(fiber.HeaderContentType))
	var err error
	switch media {
	case fiber.MIMEApplicationForm:
		err = readTokenForm(c, &ask)
	case fiber.MIMEApplicationJSON:
		err = handlers.Bind(c, &ask)
	default:
		if len(c.Request().Header.ContentType()) > 0 || len(c.Request().Body()) > 0 {
			err = models.Errorf(models.UnsupportedMediaType, "send application/x-www-form-urlencoded or application/json")
		}
	}
	if err != nil {
		return ask, err
	}
	scheme, encoded, _ := strings.Cut(c.Get(fiber.HeaderAuthorization), " ")
	if !strings.EqualFold(scheme, "Basic") {
		return ask, nil
	}
	if ask.ClientSecret != "" {
		return ask, models.Errorf(models.InvalidRequest, "credentials come in the header or in the body, not in both")
	}
	return ask, readBasic(encoded, &ask)
}

func readTokenForm(c *fiber.Ctx, ask *tokenRequest) error {
	body, err := handlers.RawBody(c)
	if err != nil {
		return err
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return models.Errorf(models.InvalidRequest, "the form can't be read")
	}
	for name, into := range map[string]*string{
		"grant_type": &ask.GrantType, "client_id": &ask.ClientID, "client_secret": &ask.ClientSecret, "scope": &ask.Scope,
	} {
		if len(form[name]) > 1 {
			return models.Errorf(models.InvalidRequest, "%s is given twice", name)
		}
		*into = form.Get(name)
	}
	return nil
}

func readBasic(encoded string, ask *tokenRequest) error {
	refused := models.Errorf(models.InvalidClient, "the Basic credentials can't be read")
	text, err := base64.StdEncoding.DecodeString(strings.TrimSpace(encoded))
	id, secret, ok := strings.Cut(string(text), ":")
	if err != nil || !ok {
		return refused
	}
	if id, err = url.QueryUnescape(id); err != nil { // RFC 6749: both are form-encoded first
		return refused
	}
	if secret, err = url.QueryUnescape(secret); err != nil {
		return refused
	}
	if ask.ClientID != "" && ask.ClientID != id {
		return models.Errorf(models.InvalidRequest, "client_id differs between header and body")
	}
	ask.ClientID, ask.ClientSecret = id, secret
	return nil
}
