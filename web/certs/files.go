package certs

import (
	"crypto/tls"
	"fmt"
	"os"
	"sync"
	"time"
)

const lookEvery = 10 * time.Second

// pair is a certificate in two files, read again when they change. A renewal writes one file after the other: until
// both fit together the pair before goes on serving.
type pair struct {
	cert, key string

	mu      sync.Mutex
	current *tls.Certificate
	changed time.Time // of the newer file, when current was read
	looked  time.Time
}

func readPair(cert, key string) (*pair, error) {
	p := &pair{cert: cert, key: key}
	current, changed, err := p.read()
	if err != nil {
		return nil, err
	}
	p.current, p.changed, p.looked = current, changed, time.Now()
	return p, nil
}

func (p *pair) read() (*tls.Certificate, time.Time, error) {
	changed, err := p.newer()
	if err != nil {
		return nil, time.Time{}, err
	}
	current, err := tls.LoadX509KeyPair(p.cert, p.key)
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("the certificate %s with the key %s: %w", p.cert, p.key, err)
	}
	return &current, changed, nil
}

func (p *pair) newer() (time.Time, error) {
	cert, err := os.Stat(p.cert)
	if err != nil {
		return time.Time{}, err
	}
	key, err := os.Stat(p.key)
	if err != nil {
		return time.Time{}, err
	}
	if key.ModTime().After(cert.ModTime()) {
		return key.ModTime(), nil
	}
	return cert.ModTime(), nil
}

func (p *pair) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.looked) < lookEvery {
		return p.current, nil
	}
	p.looked = time.Now()
	if changed, err := p.newer(); err != nil || changed.Equal(p.changed) {
		return p.current, nil
	}
	if current, changed, err := p.read(); err == nil {
		p.current, p.changed = current, changed
	}
	return p.current, nil
}
