package postgres_test

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"nightshift/models"
	"nightshift/models/postgres"
)

// A key is good for the environments that stood when it was made, whatever the clocks of those who made it and of the brain say,
// and whatever has their names since.
func TestAKeyKnowsItsEnvironmentsByMoreThanTheirNames(t *testing.T) {
	db, _ := open(t)
	vault, err := postgres.NewVault(bytes.Repeat([]byte{1}, postgres.SecretKeySize))
	if err != nil {
		t.Fatal(err)
	}
	people, tenant := postgres.NewPeople(db, vault), int32(1)
	environment := func(number int, name string) {
		exec(t, db, `INSERT INTO environments VALUES ($1, gen_random_uuid(), 1, $2, 'staging', false, '', 0, 0, 1)`, number, name)
	}
	key := func(id string, made, expires time.Time, environments ...string) {
		key := &postgres.APIKey{
			ID: id, Tenant: &tenant, Name: id, SecretSHA256: bytes.Repeat([]byte{1}, 32), Scopes: []string{"tasks:read"}, Environments: environments,
			CreatedBy: "test", CreatedAt: made, ExpiresAt: &expires,
		}
		if err := people.MakeAPIKey(t.Context(), key, &models.Audit{Tenant: 1, Action: "api_key.create", Object: id, At: 1}, nil); err != nil {
			t.Fatal(err)
		}
	}
	is := func(id string, closed ...string) {
		t.Helper()
		got, err := people.APIKey(t.Context(), id)
		if err != nil || got == nil || !slices.Equal(got.Closed, closed) {
			t.Errorf("%s: %+v, %v; want %v closed", id, got, err, closed)
		}
	}
	now := time.Now().UTC().Truncate(time.Microsecond)
	environment(1, "staging")
	environment(2, "production")
	key("ahead", now.Add(time.Hour), now.Add(2*time.Hour), "staging", "production")
	key("behind", now.Add(-time.Hour), now.Add(time.Hour), "staging")
	key("all", now, now.Add(time.Hour))
	exec(t, db, `UPDATE api_keys SET envs = NULL WHERE id = 'behind'`) // an older one
	is("ahead")
	is("behind")
	exec(t, db, `UPDATE environments SET closed_at = $1 WHERE env = 1`, models.InstantOf(now))
	is("ahead", "staging")
	is("behind", "staging")
	environment(3, "staging")
	key("late", now.Add(-2*time.Hour), now.Add(time.Hour), "staging")
	is("ahead", "staging")
	is("late")
	is("all")
	if got, _ := people.APIKey(t.Context(), "late"); got == nil || !got.ExpiresAt.Equal(now.Add(time.Hour)) || !got.CreatedAt.Equal(now.Add(-2*time.Hour)) {
		t.Errorf("it was kept as %+v", got)
	}
}
