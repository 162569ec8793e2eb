package api

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/models"
	"nightshift/models/postgres"
	"nightshift/scheduler/engine"
)

// APIKey is a client of the API as the API shows it; the secret is shown by the two calls that make one.
type APIKey struct {
	ID                 string        `json:"id"`
	ClientID           string        `json:"client_id"`
	ClientSecret       string        `json:"client_secret,omitempty" doc:"shown once"`
	Name               string        `json:"name"`
	Scopes             []string      `json:"scopes"`
	Environments       []string      `json:"environments" doc:"empty: all"`
	Closed             []string      `json:"closed_environments" doc:"of those, which were deleted: the key is not good for what is named so now"`
	Lanes              []string      `json:"lanes" doc:"empty: all"`
	Permissions        []string      `json:"permissions"`
	CreatedBy          string        `json:"created_by"`
	CreatedAt          handlers.Time `json:"created_at"`
	ExpiresAt          handlers.Time `json:"expires_at"`
	LastUsedAt         handlers.Time `json:"last_used_at"`
	PreviousSecretGood handlers.Time `json:"previous_secret_until"`
}

func showKey(k postgres.APIKey) APIKey {
	return APIKey{
		ID: k.ID, ClientID: k.ID, Name: k.Name, Scopes: handlers.List([]string(k.Scopes)), Environments: handlers.List([]string(k.Environments)),
		Closed: handlers.List(k.Closed), Lanes: handlers.List([]string(k.Lanes)), Permissions: handlers.List([]string(k.Permissions)), CreatedBy: k.CreatedBy,
		CreatedAt: handlers.Time(models.InstantOf(k.CreatedAt)), ExpiresAt: instantOf(k.ExpiresAt), LastUsedAt: instantOf(k.LastUsedAt),
		PreviousSecretGood: instantOf(k.PreviousUntil),
	}
}

func instantOf(t *time.Time) handlers.Time {
	if t == nil {
		return 0
	}
	return handlers.Time(models.InstantOf(*t))
}

type newKey struct {
	Name         string                 `json:"name" required:"true"`
	Scopes       []string               `json:"scopes" required:"true"`
	Environments handlers.Opt[[]string] `json:"environments" doc:"names; left out: all"`
	ExpiresAt    handlers.Opt[string]   `json:"expires_at"`
	Lanes        handlers.Opt[[]string] `json:"lanes"`
	Permissions  handlers.Opt[[]string] `json:"permissions"`
}

type rotateRequest struct {
	OverlapSeconds handlers.Opt[int] `json:"overlap_seconds" doc:"how long the old secret stays good; a day when left out"`
}

// Bounds of keys.
const (
	overlapPreset = 24 * 3600
	overlapMost   = 30 * 24 * 3600
	listMost      = 200
)

func createKey(d *handlers.Deps, c *fiber.Ctx) error {
	var ask newKey
	dry, err := handlers.DryRun(c)
	if err != nil {
		return err
	}
	if err := handlers.Bind(c, &ask); err != nil {
		return err
	}
	caller := handlers.CallerOf(c)
	key := postgres.APIKey{
		ID: d.Mint().Text(models.KeyPrefix), Name: ask.Name, Scopes: unique(ask.Scopes), Environments: unique(ask.Environments.Or(caller.Environments)),
		Lanes: unique(ask.Lanes.Or(caller.Lanes)), Permissions: unique(ask.Permissions.Or(caller.Permissions)), CreatedBy: caller.Sub, CreatedAt: d.Now().Time(),
	}
	if caller.Tenant != 0 {
		key.Tenant = &caller.Tenant
	}
	if err := checkKey(d, c, &key, ask.ExpiresAt.Or("")); err != nil {
		return err
	}
	may := mayGive(caller, &key)
	if dry {
		refusals, err := refusalsOf(may)
		if err != nil {
			return err
		}
		shown := showKey(key)
		shown.CreatedAt = 0
		return handlers.Answer(c, fiber.StatusOK, keyDry{APIKey: shown, Refusals: refusals})
	}
	if may != nil {
		return may
	}
	var secret string
	secret, key.SecretSHA256 = handlers.NewSecret()
	return handlers.Create(d, c, func(once *engine.Once) (*handlers.Made, error) {
		shown := showKey(key)
		shown.ClientSecret = secret
		made := &handlers.Made{Status: fiber.StatusCreated, Location: "/v1/api-keys/" + key.ID, Body: shown}
		return storeKey(once, made, func(kept *postgres.KeptAnswer) error {
			return d.People.MakeAPIKey(c.UserContext(), &key, keyAudit(caller, "api_key.create", &key), kept)
		})
	})
}

// storeKey stores the answer in the transaction of the key itself: the secret is shown once, so a replay needs it.
func storeKey(once *engine.Once, made *handlers.Made, store func(*postgres.KeptAnswer) error) (*handlers.Made, error) {
	var kept *postgres.KeptAnswer
	if once != nil {
		var err error
		if kept, err = handlers.Keep(once, made); err != nil {
			return nil, err
		}
	}
	err := store(kept)
	if errors.Is(err, postgres.ErrKeyTaken) {
		return &handlers.Made{Replay: true}, nil
	}
	return made, err
}

func unique(words []string) []string {
	out := []string{}
	for _, w := range words {
		if !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	return out
}

func checkKey(d *handlers.Deps, c *fiber.Ctx, key *postgres.APIKey, expires string) error {
	var k handlers.Check
	k.Text("body.name", key.Name, 1, 200)
	k.That(len(key.Scopes) > 0, "body.scopes", "at least one scope")
	for i, scope := range key.Scopes {
		at := "body.scopes[" + itoa(i) + "]"
		if k.OneOf(at, scope, handlers.Scopes()...) {
			k.That(scope != handlers.Platform || key.Tenant == nil || !handlers.CallerOf(c).Holds(scope), at, "a tenant's key can't hold the scope platform")
		}
	}
	for name, list := range map[string][]string{"environments": key.Environments, "lanes": key.Lanes, "permissions": key.Permissions} {
		k.That(len(list) <= listMost, "body."+name, "at most %d", listMost)
		for i, word := range list {
			k.Name("body."+name+"["+itoa(i)+"]", word)
		}
	}
	if expires != "" {
		at, err := handlers.ParseTime("body.expires_at", expires)
		switch {
		case err != nil:
			k.Fail("body.expires_at", "it is no moment like 2026-09-17T21:00:00Z")
		case k.That(at > d.Now(), "body.expires_at", "it has passed"):
			t := at.Time()
			key.ExpiresAt = &t
		}
	}
	if err := k.Err(); err != nil || key.Tenant == nil {
		return err
	}
	for i, name := range key.Environments {
		_, err := d.Directory.Environment(c.UserContext(), *key.Tenant, name)
		if models.CodeOf(err) == models.NotFound {
			k.Fail("body.environments["+itoa(i)+"]", "there is no environment %q", name)
		} else if err != nil {
			return err
		}
	}
	return k.Err()
}

func itoa(i int) string { return strconv.Itoa(i) }

// mayGive refuses a key that could do more than its maker.
func mayGive(caller *handlers.Caller, key *postgres.APIKey) error {
	for _, scope := range key.Scopes {
		if !caller.Holds(scope) {
			return models.Errorf(models.Forbidden, "you do not hold the scope %s, so you can't give it", scope)
		}
	}
	within := func(what string, asked, held []string) error {
		switch {
		case reaches(held, asked):
			return nil
		case len(asked) == 0:
			return models.Errorf(models.Forbidden, "your key is good for some %s alone, so name some of them", what)
		}
		return models.Errorf(models.Forbidden, "your key is good for the %s %s alone", what, strings.Join(held, ", "))
	}
	return errors.Join(
		within("environments", key.Environments, caller.Environments),
		within("lanes", key.Lanes, caller.Lanes),
		within("permissions", key.Permissions, caller.Permissions))
}

// mayEnd refuses to end a key that is good for more environments than its caller is.
func mayEnd(caller *handlers.Caller, key *postgres.APIKey) error {
	if reaches(caller.Environments, key.Environments) {
		return nil
	}
	return models.Errorf(models.Forbidden, "your key is good for the environments %s alone, and this one for more", strings.Join(caller.Environments, ", "))
}

// reaches says that what is good for some names, or for all where none is held, is good for those asked for: for all where none is.
func reaches(held, asked []string) bool {
	foreign := func(name string) bool { return !slices.Contains(held, name) }
	return len(held) == 0 || len(asked) > 0 && !slices.ContainsFunc(asked, foreign)
}

func keyAudit(caller *handlers.Caller, action string, key *postgres.APIKey) *models.Audit {
	shown := showKey(*key)
	after, err := json.Marshal(shown) // without the secret
	if err != nil {
		panic(err) // texts and times always encode
	}
	return &models.Audit{Tenant: caller.Tenant, Actor: caller.Actor(), Action: action, Object: key.ID, After: after}
}

func listKeys(d *handlers.Deps, c *fiber.Ctx) error {
	q, err := handlers.ReadList(d, c)
	if err != nil {
		return err
	}
	ask := postgres.KeyList{Tenant: handlers.CallerOf(c).Tenant, Desc: q.Desc, Limit: q.Limit + 1}
	if _, err := q.After(&ask.After); err != nil {
		return err
	}
	keys, total, err := d.People.APIKeys(c.UserContext(), ask)
	if err != nil {
		return err
	}
	page, err := handlers.PageOf(q, keys, showKey, func(k postgres.APIKey) any { return k.ID })
	if err != nil {
		return err
	}
	if q.Count {
		page.Total = &handlers.Total{Value: total, Relation: "eq"}
	}
	return handlers.Answer(c, fiber.StatusOK, page)
}

// ownKey reads a key of the caller's tenant or of the platform; a revoked one is not there.
func ownKey(d *handlers.Deps, c *fiber.Ctx) (*postgres.APIKey, error) {
	id, err := handlers.PathParam(c, "id")
	if err != nil {
		return nil, err
	}
	key, err := d.People.APIKey(c.UserContext(), id)
	if err != nil {
		return nil, err
	}
	owner := int32(0)
	if key != nil && key.Tenant != nil {
		owner = *key.Tenant
	}
	if key == nil || owner != handlers.CallerOf(c).Tenant || key.RevokedAt != nil {
		return nil, noKey(id)
	}
	return key, nil
}

func noKey(id string) error {
	return models.Errorf(models.NotFound, "there is no key %q here", handlers.Shorten(id, 80))
}

func getKey(d *handlers.Deps, c *fiber.Ctx) error {
	key, err := ownKey(d, c)
	if err != nil {
		return err
	}
	handlers.SetETag(c, keyVersion(key))
	return handlers.Answer(c, fiber.StatusOK, showKey(*key))
}

// keyVersion tells a key from what it was before it was given another secret; being used changes nothing.
func keyVersion(key *postgres.APIKey) int64 { return int64(models.InstantOf(key.UpdatedAt)) }

// insistedKey is when the key was last changed, where If-Match insists on how it stands; stale when it does not stand so.
func insistedKey(c *fiber.Ctx, key *postgres.APIKey) (*time.Time, error) {
	insisted := handlers.IfMatch(c)
	if err := insisted.Fits(keyVersion(key)); err != nil || !insisted.OfVersion() {
		return nil, err
	}
	return &key.UpdatedAt, nil
}

func staleKey() error {
	return models.Errorf(models.Stale, "the key was changed meanwhile; read it again")
}

func rotateKey(d *handlers.Deps, c *fiber.Ctx) error {
	var ask rotateRequest
	if err := handlers.BindOptional(c, &ask); err != nil {
		return err
	}
	overlap := ask.OverlapSeconds.Or(overlapPreset)
	var check handlers.Check
	handlers.Range(&check, "body.overlap_seconds", overlap, 0, overlapMost)
	if err := check.Err(); err != nil {
		return err
	}
	key, err := ownKey(d, c)
	if err != nil {
		return err
	}
	caller := handlers.CallerOf(c)
	if err := mayGive(caller, key); err != nil { // a new secret is as good as a new key
		return err
	}
	secret, sum := handlers.NewSecret()
	return handlers.Create(d, c, func(once *engine.Once) (*handlers.Made, error) {
		made := &handlers.Made{Status: fiber.StatusOK}
		read, err := insistedKey(c, key)
		if err != nil {
			return nil, err
		}
		keep := func(rotated *postgres.APIKey) (*postgres.KeptAnswer, error) {
			rotated.Closed = key.Closed
			shown := showKey(*rotated)
			shown.ClientSecret = secret
			if made.Body = shown; once == nil {
				return nil, nil
			}
			return handlers.Keep(once, made)
		}
		until := d.Now().Time().Add(time.Duration(overlap) * time.Second)
		rotated, err := d.People.ReplaceSecret(c.UserContext(), caller.Tenant, key.ID, read, sum, until, keyAudit(caller, "api_key.rotate", key), keep)
		if errors.Is(err, postgres.ErrKeyTaken) {
			return &handlers.Made{Replay: true}, nil
		}
		switch {
		case err != nil:
		case rotated == nil && read != nil: // it was revoked or rotated since it was read
			err = staleKey()
		case rotated == nil:
			err = noKey(key.ID)
		default:
			handlers.SetETag(c, keyVersion(rotated))
		}
		d.Keys.Forget(key.ID)
		return made, err
	})
}

func revokeKey(d *handlers.Deps, c *fiber.Ctx) error {
	key, err := ownKey(d, c)
	if err != nil {
		return err
	}
	read, err := insistedKey(c, key)
	if err != nil {
		return err
	}
	caller := handlers.CallerOf(c)
	if err := mayEnd(caller, key); err != nil {
		return err
	}
	found, err := d.People.RevokeAPIKey(c.UserContext(), caller.Tenant, key.ID, read, keyAudit(caller, "api_key.revoke", key))
	switch {
	case err != nil:
		return err
	case !found && read != nil: // it was revoked or rotated since it was read
		return staleKey()
	case !found:
		return noKey(key.ID)
	}
	d.Keys.Forget(key.ID)
	return handlers.NoContent(c)
}
