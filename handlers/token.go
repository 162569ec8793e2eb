package handlers

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/golang-jwt/jwt/v5"

	"nightshift/models"
	"nightshift/models/postgres"
)

// What a token says of itself.
const (
	Issuer        = "nightshift"
	AudienceAPI   = "nightshift"
	AudienceBrain = "brain" // commands forwarded between replicas
	tokenType     = "at+jwt"
	tokenMost     = 8 << 10
)

// Lives of tokens and keys.
const (
	TokenLife    = 15 * time.Minute
	brainLife    = time.Minute
	signingAge   = 30 * 24 * time.Hour // then a new key signs
	signingGrace = time.Hour           // how long the one before is still good
	settleTime   = 2 * time.Minute     // before a new key signs, so that who keeps the JWKS has seen it
	clockLeeway  = 30 * time.Second
)

// Claims are what a token holds.
type Claims struct {
	Issuer      string  `json:"iss"`
	Audience    string  `json:"aud"`
	Subject     string  `json:"sub"`
	IssuedAt    int64   `json:"iat"`
	NotBefore   int64   `json:"nbf"`
	ExpiresAt   int64   `json:"exp"`
	ID          string  `json:"jti"`
	Tenant      *string `json:"tenant"`
	Environment *string `json:"environment"`
	Scope       string  `json:"scope"`
}

// Signer signs and checks tokens with the keys that all replicas share.
type Signer struct {
	people *postgres.People
	now    func() models.Instant

	mu        sync.RWMutex
	keys      []postgres.SigningKey // newest first
	refreshed time.Time
	checked   map[[sha256.Size]byte]checkedToken // tokens whose signature was good, by their digest
}

// checkedToken spares the signature of a token that comes again; whether it is still good is asked each time.
type checkedToken struct {
	claims *Claims
	kid    string
}

// mostChecked bounds the memory: beyond it all are checked anew.
const mostChecked = 10_000

// NewSigner needs one Refresh before it can sign.
func NewSigner(people *postgres.People, now func() models.Instant) *Signer {
	return &Signer{people: people, now: now, checked: map[[sha256.Size]byte]checkedToken{}}
}

// Refresh reads the keys again; the first replica that finds the newest too old makes the next.
func (s *Signer) Refresh(ctx context.Context) error { return s.refresh(ctx, signingAge) }

// Rotate makes a new key now. Tokens of the one before stay good for an hour.
func (s *Signer) Rotate(ctx context.Context) error { return s.refresh(ctx, 0) }

func (s *Signer) refresh(ctx context.Context, age time.Duration) error {
	keys, err := s.people.SigningKeys(ctx, age, signingGrace, newSigningKey)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys, s.refreshed = keys, time.Now()
	return nil
}

func newSigningKey() *postgres.SigningKey {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		panic(err) // the random source never fails: it ends the process instead
	}
	return &postgres.SigningKey{KID: thumbprint(public), PrivateKey: private.Seed(), PublicKey: public}
}

// thumbprint is the key's RFC 7638 name.
func thumbprint(public ed25519.PublicKey) string {
	sum := sha256.Sum256([]byte(`{"crv":"Ed25519","kty":"OKP","x":"` + base64.RawURLEncoding.EncodeToString(public) + `"}`))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// JWK is a public key as the JWKS shows it.
type JWK struct {
	KeyType   string `json:"kty"`
	Curve     string `json:"crv"`
	X         string `json:"x"`
	KID       string `json:"kid"`
	Use       string `json:"use"`
	Algorithm string `json:"alg"`
}

// JWKS is the set of public keys whose tokens are good.
type JWKS struct {
	Keys []JWK `json:"keys"`
}

// JWKS lists the live keys, newest first.
func (s *Signer) JWKS() JWKS {
	s.mu.RLock()
	defer s.mu.RUnlock()
	set := JWKS{Keys: []JWK{}}
	for _, k := range s.keys {
		if s.live(k) {
			set.Keys = append(set.Keys, JWK{"OKP", "Ed25519", base64.RawURLEncoding.EncodeToString(k.PublicKey), k.KID, "sig", "EdDSA"})
		}
	}
	return set
}

func (s *Signer) live(k postgres.SigningKey) bool {
	return k.RetireAt == nil || s.now().Time().Before(*k.RetireAt)
}

// signing is the key to sign with: the newest that others have had time to see, else the oldest.
func (s *Signer) signing() (postgres.SigningKey, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, k := range s.keys {
		if s.now().Time().Sub(k.CreatedAt) >= settleTime {
			return k, true
		}
	}
	if len(s.keys) == 0 {
		return postgres.SigningKey{}, false
	}
	return s.keys[len(s.keys)-1], true
}

// Sign makes a token of the claims; times, issuer and id are filled in.
func (s *Signer) Sign(c Claims) (string, error) {
	key, ok := s.signing()
	if !ok {
		return "", models.Errorf(models.Unavailable, "no signing key is known yet")
	}
	now := s.now().Time().Unix()
	c.Issuer, c.IssuedAt, c.NotBefore, c.ID = Issuer, now, now, rand.Text()
	c.ExpiresAt = now + int64(life(c.Audience)/time.Second)
	token := jwt.NewWithClaims(jwt.SigningMethodEdDSA, signed(c))
	token.Header["typ"], token.Header["kid"] = tokenType, key.KID
	return token.SignedString(ed25519.NewKeyFromSeed(key.PrivateKey))
}

func life(audience string) time.Duration {
	if audience == AudienceBrain {
		return brainLife
	}
	return TokenLife
}

// BrainToken proves to another replica that a forwarded command comes from this installation.
func (s *Signer) BrainToken(sender string) (string, error) {
	return s.Sign(Claims{Audience: AudienceBrain, Subject: sender})
}

// tokenHeader is the only header a token of ours has: what is not named here (jwk, jku, x5u, crit, …) is refused.
type tokenHeader struct {
	Algorithm string `json:"alg"`
	Type      string `json:"typ"`
	KID       string `json:"kid"`
}

// Verify checks a token for one audience. Whatever is wrong with it, the answer is the same.
func (s *Signer) Verify(ctx context.Context, token, audience string) (*Claims, error) {
	if len(token) > tokenMost {
		return nil, badToken()
	}
	name := sha256.Sum256([]byte(token))
	if known := s.known(name); known != nil && s.plausible(known, audience) {
		return known, nil
	}
	claims, kid, ok := readToken(token)
	if !ok || !s.plausible(claims, audience) {
		return nil, badToken()
	}
	public := s.public(ctx, kid)
	if public == nil || !s.signatureFits(token, audience, public) {
		return nil, badToken()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.checked) >= mostChecked {
		clear(s.checked)
	}
	s.checked[name] = checkedToken{claims, kid}
	return claims, nil
}

// known finds a token that was checked before, unless its key has been retired since.
func (s *Signer) known(name [sha256.Size]byte) *Claims {
	s.mu.RLock()
	defer s.mu.RUnlock()
	found, ok := s.checked[name]
	if !ok {
		return nil
	}
	for _, k := range s.keys {
		if k.KID == found.kid && s.live(k) {
			return found.claims
		}
	}
	return nil
}

func (s *Signer) signatureFits(token, audience string, public ed25519.PublicKey) bool {
	parser := jwt.NewParser(jwt.WithValidMethods([]string{"EdDSA"}), jwt.WithStrictDecoding(), jwt.WithIssuer(Issuer),
		jwt.WithAudience(audience), jwt.WithExpirationRequired(), jwt.WithIssuedAt(), jwt.WithLeeway(clockLeeway),
		jwt.WithTimeFunc(func() time.Time { return s.now().Time() }))
	_, err := parser.ParseWithClaims(token, &jwt.RegisteredClaims{}, func(*jwt.Token) (any, error) { return public, nil })
	return err == nil
}

func badToken() error {
	return models.Errorf(models.Unauthenticated, "send a valid access token as Authorization: Bearer")
}

// readToken reads header and claims strictly: names given twice, unknown names, and every type.
func readToken(token string) (claims *Claims, kid string, ok bool) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return nil, "", false
	}
	var header tokenHeader
	claims = &Claims{}
	if !readPart(parts[0], &header) || !readPart(parts[1], claims) {
		return nil, "", false
	}
	return claims, header.KID, header.Algorithm == "EdDSA" && header.Type == tokenType
}

func readPart(part string, v any) bool {
	text, err := base64.RawURLEncoding.Strict().DecodeString(part)
	return err == nil && json.Unmarshal(text, v, json.RejectUnknownMembers(true)) == nil && !bytes.Contains(text, []byte(`\u0000`))
}

// plausible holds what the JWT library does not check: one exact audience, a life no longer than ours, an id and a
// subject; and the times once more, for tokens whose signature is known.
func (s *Signer) plausible(c *Claims, audience string) bool {
	now, most := s.now().Time().Unix(), int64(life(audience)/time.Second)
	leeway := int64(clockLeeway / time.Second)
	return c.Issuer == Issuer && c.Audience == audience && c.Subject != "" && c.ID != "" &&
		c.IssuedAt > 0 && c.NotBefore >= c.IssuedAt && c.ExpiresAt > c.NotBefore && c.ExpiresAt-c.IssuedAt <= most &&
		c.ExpiresAt <= now+most+leeway && now < c.ExpiresAt+leeway && now >= c.NotBefore-leeway
}

// public finds a key; one that is not known may be another replica's new one, so the keys are read again, at most every
// five seconds.
func (s *Signer) public(ctx context.Context, kid string) ed25519.PublicKey {
	find := func() (ed25519.PublicKey, bool) {
		s.mu.RLock()
		defer s.mu.RUnlock()
		for _, k := range s.keys {
			if k.KID == kid && s.live(k) {
				return k.PublicKey, false
			}
		}
		return nil, time.Since(s.refreshed) > 5*time.Second
	}
	public, stale := find()
	if public == nil && stale && s.Refresh(ctx) == nil {
		public, _ = find()
	}
	return public
}

// signed lets the JWT library write our claims.
type signed Claims

func (c signed) GetExpirationTime() (*jwt.NumericDate, error) { return numeric(c.ExpiresAt), nil }
func (c signed) GetIssuedAt() (*jwt.NumericDate, error)       { return numeric(c.IssuedAt), nil }
func (c signed) GetNotBefore() (*jwt.NumericDate, error)      { return numeric(c.NotBefore), nil }
func (c signed) GetIssuer() (string, error)                   { return c.Issuer, nil }
func (c signed) GetSubject() (string, error)                  { return c.Subject, nil }
func (c signed) GetAudience() (jwt.ClaimStrings, error)       { return jwt.ClaimStrings{c.Audience}, nil }

func numeric(seconds int64) *jwt.NumericDate { return jwt.NewNumericDate(time.Unix(seconds, 0)) }
