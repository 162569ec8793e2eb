package postgres_test

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"nightshift/models"
	"nightshift/models/postgres"
	"nightshift/models/postgres/pgtest"
)

func peopleOf(t *testing.T) func(byte) *postgres.People {
	t.Helper()
	db, err := postgres.Open(t.Context(), postgres.Options{URL: pgtest.Migrated(t), PoolSize: 8})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return func(key byte) *postgres.People {
		vault, err := postgres.NewVault(bytes.Repeat([]byte{key}, postgres.SecretKeySize))
		if err != nil {
			t.Fatal(err)
		}
		return postgres.NewPeople(db, vault)
	}
}

func TestVaultOpensOnlyWhatItSealed(t *testing.T) {
	one, err := postgres.NewVault(bytes.Repeat([]byte{1}, 32))
	if err != nil {
		t.Fatal(err)
	}
	two, err := postgres.NewVault(bytes.Repeat([]byte{2}, 32))
	if err != nil {
		t.Fatal(err)
	}
	sealed := one.Seal("cursor", []byte("secret words"), []byte("bound"))
	if text, err := one.Open("cursor", sealed, []byte("bound")); err != nil || string(text) != "secret words" {
		t.Fatalf("opened %q, %v", text, err)
	}
	if bytes.Contains(sealed, []byte("secret")) || bytes.Equal(sealed, one.Seal("cursor", []byte("secret words"), []byte("bound"))) {
		t.Error("what is sealed can be read, or is twice the same")
	}
	changed := bytes.Clone(sealed)
	changed[len(changed)-1] ^= 1
	for name, open := range map[string]func() ([]byte, error){
		"another key":   func() ([]byte, error) { return two.Open("cursor", sealed, []byte("bound")) },
		"another use":   func() ([]byte, error) { return one.Open("answer", sealed, []byte("bound")) },
		"another bound": func() ([]byte, error) { return one.Open("cursor", sealed, []byte("other")) },
		"changed":       func() ([]byte, error) { return one.Open("cursor", changed, []byte("bound")) },
		"cut":           func() ([]byte, error) { return one.Open("cursor", sealed[:5], []byte("bound")) },
	} {
		if _, err := open(); !errors.Is(err, postgres.ErrSealed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := postgres.NewVault([]byte("short")); err == nil {
		t.Error("a short key is taken")
	}
}

func TestWrongSecretKeyIsNoticed(t *testing.T) {
	people := peopleOf(t)
	for range 2 {
		if err := people(1).CheckSecretKey(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := people(2).CheckSecretKey(t.Context()); !errors.Is(err, postgres.ErrSealed) {
		t.Errorf("another key: %v", err)
	}
}

func TestReplicasMakeOneSigningKey(t *testing.T) {
	people := peopleOf(t)
	var made atomic.Int32
	newKey := func() *postgres.SigningKey {
		n := made.Add(1)
		private := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{byte(n)}, 32))
		return &postgres.SigningKey{KID: fmt.Sprint("kid", n), PrivateKey: private.Seed(), PublicKey: private.Public().(ed25519.PublicKey)}
	}
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			if _, err := people(1).SigningKeys(t.Context(), time.Hour, time.Hour, newKey); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	keys, err := people(1).SigningKeys(t.Context(), time.Hour, time.Hour, newKey)
	if err != nil || len(keys) != 1 || made.Load() != 1 {
		t.Fatalf("%d keys, %d made, %v", len(keys), made.Load(), err)
	}
	keys, err = people(1).SigningKeys(t.Context(), 0, time.Hour, newKey)
	if err != nil || len(keys) != 2 || keys[0].RetireAt != nil || keys[1].RetireAt == nil || !bytes.Equal(keys[0].PrivateKey, bytes.Repeat([]byte{2}, 32)) {
		t.Errorf("after a rotation: %+v, %v", keys, err)
	}
	if _, err := people(2).SigningKeys(t.Context(), time.Hour, time.Hour, newKey); !errors.Is(err, postgres.ErrSealed) {
		t.Errorf("with another secret key: %v", err)
	}
}

func TestKeptAnswersStandAndGo(t *testing.T) {
	people := peopleOf(t)
	p := people(1)
	request := models.NewID(1, [10]byte{1})
	first := &postgres.KeptAnswer{Scope: "1/1 /v1/tasks", Key: "k", Request: request, Status: 201, Location: "/v1/tasks/x", Body: []byte(`{"a":1}`)}
	if err := p.KeepAnswer(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	second := *first
	second.Body = []byte(`{"a":2}`)
	if err := p.KeepAnswer(t.Context(), &second); err != nil {
		t.Fatal(err)
	}
	kept, err := p.KeptAnswer(t.Context(), first.Scope, first.Key)
	if err != nil || string(kept.Body) != `{"a":1}` || kept.Status != 201 || kept.Location != first.Location || kept.Request != request {
		t.Errorf("kept %+v, %v", kept, err)
	}
	if none, err := p.KeptAnswer(t.Context(), "2/1 /v1/tasks", "k"); none != nil || err != nil {
		t.Errorf("another scope: %+v, %v", none, err)
	}
	if n, err := p.SweepAnswers(t.Context(), time.Hour); n != 0 || err != nil {
		t.Errorf("swept %d, %v", n, err)
	}
	if n, err := p.SweepAnswers(t.Context(), -time.Hour); n != 1 || err != nil {
		t.Errorf("swept %d, %v", n, err)
	}
}

func TestFirstOperatorIsMadeOnce(t *testing.T) {
	people := peopleOf(t)
	p := people(1)
	for i, hash := range []string{"one", "two"} {
		if err := p.BootstrapOperator(t.Context(), models.NewID(models.Instant(i+1)*1000, [10]byte{1}), "Operator@example.com", hash); err != nil {
			t.Fatal(err)
		}
	}
	user, err := p.UserByEmail(t.Context(), "operator@EXAMPLE.com")
	if err != nil || user == nil || user.PasswordHash != "two" || !user.Platform || models.ID(user.ID) != models.NewID(1000, [10]byte{1}) {
		t.Errorf("the operator: %+v, %v", user, err)
	}
}
