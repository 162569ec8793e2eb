package handlers

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"strings"
	"time"

	"github.com/alexedwards/argon2id"

	"nightshift/models"
	"nightshift/models/postgres"
)

// SessionLife is how long a browser stays signed in.
const SessionLife = 12 * time.Hour

// hashing is the cost of a password's hash: 19 MiB, two passes, one thread.
var hashing = &argon2id.Params{Memory: 19 * 1024, Iterations: 2, Parallelism: 1, SaltLength: 16, KeyLength: 32}

// Sessions signs people in and out.
type Sessions struct {
	people   *postgres.People
	now      func() models.Instant
	throttle *Throttle
	turns    chan struct{} // at most this many hashes at once: each takes 19 MiB
	nobody   string        // a hash that is compared when there is no such user, so that timing tells nothing
}

// NewSessions keeps sessions in the database; only the digest of a token is stored.
func NewSessions(people *postgres.People, now func() models.Instant) (*Sessions, error) {
	nobody, err := argon2id.CreateHash(rand.Text(), hashing)
	if err != nil {
		return nil, err
	}
	return &Sessions{people: people, now: now, throttle: NewThrottle(5, 30*time.Second), turns: make(chan struct{}, 4), nobody: nobody}, nil
}

// HashPassword makes what is stored of a password.
func HashPassword(password string) (string, error) { return argon2id.CreateHash(password, hashing) }

// SignIn opens a session and answers its token. Wrong words, unknown people and disabled ones look the same.
func (s *Sessions) SignIn(ctx context.Context, email, password, ip, agent string) (string, error) {
	now := s.now().Time()
	names := []string{"ip " + ip, "email " + strings.ToLower(email)}
	if wait := s.throttle.Blocked(now, names...); wait > 0 {
		return "", tooManyTries(wait)
	}
	user, err := s.people.UserByEmail(ctx, email)
	if err != nil {
		return "", err
	}
	hash := s.nobody
	if user != nil && user.DisabledAt == nil {
		hash = user.PasswordHash
	}
	good, err := s.compare(ctx, password, hash)
	if err != nil {
		return "", err
	}
	if !good || user == nil || user.DisabledAt != nil {
		s.throttle.Fail(now, names...)
		return "", models.Errorf(models.InvalidClient, "the email address or the password is wrong")
	}
	s.throttle.Forgive(names...)
	token := rand.Text() + rand.Text()
	err = s.people.OpenSession(ctx, &postgres.Session{
		TokenSHA256: digest(token), User: user.ID, IP: ip, UserAgent: Shorten(agent, 250), CreatedAt: now, ExpiresAt: now.Add(SessionLife),
	})
	return token, err
}

func tooManyTries(wait time.Duration) *models.Error {
	e := models.Errorf(models.RateLimited, "too many failed tries; wait a little")
	e.RetryAfterSeconds = int(wait/time.Second) + 1
	return e
}

func (s *Sessions) compare(ctx context.Context, password, hash string) (bool, error) {
	select {
	case s.turns <- struct{}{}:
		defer func() { <-s.turns }()
	case <-ctx.Done():
		return false, models.Errorf(models.Overloaded, "too many people sign in at once")
	case <-time.After(5 * time.Second):
		return false, models.Errorf(models.Overloaded, "too many people sign in at once")
	}
	good, err := argon2id.ComparePasswordAndHash(Shorten(password, 1024), hash)
	if err != nil {
		return false, models.Errorf(models.Internal, "a stored password can't be read: %w", err)
	}
	return good, nil
}

// User finds who is signed in with a token, nil when nobody is.
func (s *Sessions) User(ctx context.Context, token string) (*postgres.User, error) {
	if len(token) < 40 || len(token) > 100 {
		return nil, nil
	}
	found, err := s.people.SessionOf(ctx, digest(token))
	if err != nil || found == nil {
		return nil, err
	}
	return &found.User, nil
}

// SignOut ends a session.
func (s *Sessions) SignOut(ctx context.Context, token string) error {
	return s.people.CloseSession(ctx, digest(token))
}

func digest(token string) []byte {
	sum := sha256.Sum256([]byte(token))
	return sum[:]
}

// CSRF is the word that a form of this session must bring along. It follows from the token and does not give it away.
func CSRF(token string) string {
	mac := hmac.New(sha256.New, []byte(token))
	mac.Write([]byte("nightshift csrf"))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// CSRFFits says whether a form's word is that of the session.
func CSRFFits(token, given string) bool {
	return subtle.ConstantTimeCompare([]byte(CSRF(token)), []byte(given)) == 1
}
