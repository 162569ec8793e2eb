package handlers

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"sync"
	"time"

	"nightshift/models"
	"nightshift/models/postgres"
)

// keyLife is how long a replica goes by what it has read of a key: a revoked one works no longer than that.
const keyLife = 20 * time.Second

// Keys knows the API keys that were used lately.
type Keys struct {
	people *postgres.People
	now    func() models.Instant

	mu    sync.Mutex
	known map[string]knownKey
}

type knownKey struct {
	key  *postgres.APIKey
	read time.Time
}

// NewKeys reads through people.
func NewKeys(people *postgres.People, now func() models.Instant) *Keys {
	return &Keys{people: people, now: now, known: map[string]knownKey{}}
}

// mostKnownKeys bounds the memory; beyond it all are read anew.
const mostKnownKeys = 20_000

// Live finds a key that may be used; nil when there is none.
func (k *Keys) Live(ctx context.Context, id string) (*postgres.APIKey, error) {
	k.mu.Lock()
	found, ok := k.known[id]
	k.mu.Unlock()
	if !ok || time.Since(found.read) > keyLife {
		key, err := k.read(ctx, id)
		if err != nil || key == nil {
			return nil, err
		}
		found.key = key
	}
	if !found.key.Live(k.now().Time()) {
		return nil, nil
	}
	return found.key, nil
}

func (k *Keys) read(ctx context.Context, id string) (*postgres.APIKey, error) {
	key, err := k.people.APIKey(ctx, id)
	if err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if key == nil {
		delete(k.known, id)
		return nil, nil
	}
	if len(k.known) >= mostKnownKeys {
		clear(k.known)
	}
	k.known[id] = knownKey{key: key, read: time.Now()}
	return key, nil
}

// Forget makes this replica read a key again.
func (k *Keys) Forget(id string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.known, id)
}

// ForgetAll makes this replica read all keys again.
func (k *Keys) ForgetAll() {
	k.mu.Lock()
	defer k.mu.Unlock()
	clear(k.known)
}

// WithSecret finds the live key of a client id and secret; nil when they don't belong together. A secret that does not
// fit what is known may be newer than that, so the key is read once more.
func (k *Keys) WithSecret(ctx context.Context, id, secret string) (*postgres.APIKey, error) {
	sum := sha256.Sum256([]byte(secret))
	key, err := k.Live(ctx, id)
	if err != nil {
		return nil, err
	}
	if key != nil && k.fits(key, sum[:]) {
		return key, nil
	}
	if key, err = k.read(ctx, id); err != nil || key == nil {
		return nil, err
	}
	now := k.now().Time()
	if !k.fits(key, sum[:]) || !key.Live(now) {
		return nil, nil
	}
	return key, nil
}

func (k *Keys) fits(key *postgres.APIKey, sum []byte) bool {
	now := subtle.ConstantTimeCompare(key.SecretSHA256, sum) == 1
	before := len(key.PreviousSHA256) > 0 && subtle.ConstantTimeCompare(key.PreviousSHA256, sum) == 1
	return now || before && key.PreviousUntil != nil && k.now().Time().Before(*key.PreviousUntil)
}

// NewSecret is a random secret of 260 bits and its digest.
func NewSecret() (secret string, sum []byte) {
	secret = "nss_" + rand.Text() + rand.Text()
	digest := sha256.Sum256([]byte(secret))
	return secret, digest[:]
}
