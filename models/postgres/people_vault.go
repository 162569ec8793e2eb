package postgres

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
)

// Vault seals what must not be readable in the database or on the wire, with keys derived from the secret key: one a
// use, so that what was sealed for one use opens for no other.
type Vault struct {
	key   []byte
	boxes sync.Map // use → cipher.AEAD
}

// SecretKeySize is the length of the secret key.
const SecretKeySize = 32

// ErrSealed says that something was sealed with another key, for another use, or was changed since.
var ErrSealed = errors.New("it was sealed with another NIGHTSHIFT_SECRET_KEY or was changed since")

// NewVault needs a key of 32 bytes.
func NewVault(key []byte) (*Vault, error) {
	if len(key) != SecretKeySize {
		return nil, fmt.Errorf("the secret key has %d bytes, not %d", len(key), SecretKeySize)
	}
	return &Vault{key: append([]byte(nil), key...)}, nil
}

// Seal encrypts text so that it opens only for the same use and the same bound bytes.
func (v *Vault) Seal(use string, text, bound []byte) []byte {
	box := v.box(use)
	nonce := make([]byte, box.NonceSize(), box.NonceSize()+len(text)+box.Overhead())
	_, _ = rand.Read(nonce) // never fails: it ends the process instead
	return box.Seal(nonce, nonce, text, bound)
}

// Open gives back what Seal was given, or ErrSealed.
func (v *Vault) Open(use string, sealed, bound []byte) ([]byte, error) {
	box := v.box(use)
	if len(sealed) < box.NonceSize() {
		return nil, ErrSealed
	}
	text, err := box.Open(nil, sealed[:box.NonceSize()], sealed[box.NonceSize():], bound)
	if err != nil {
		return nil, ErrSealed
	}
	return text, nil
}

func (v *Vault) box(use string) cipher.AEAD {
	if box, ok := v.boxes.Load(use); ok {
		return box.(cipher.AEAD)
	}
	key, err := hkdf.Key(sha256.New, v.key, nil, "nightshift "+use, SecretKeySize)
	if err != nil {
		panic(err) // only for lengths no hash can give
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err) // only for wrong key lengths
	}
	box, err := cipher.NewGCM(block)
	if err != nil {
		panic(err) // only for other block sizes
	}
	v.boxes.Store(use, box)
	return box
}
