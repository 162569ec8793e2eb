package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"
)

const (
	authorityLife = 10 * 365 * 24 * time.Hour
	serverLife    = 365 * 24 * time.Hour
	renewBefore   = 30 * 24 * time.Hour
	clockSkew     = time.Hour
)

// authority signs the server's certificate. Its own is kept in the data folder, so that a ca.pem handed to a worker
// once stays good.
type authority struct {
	data  string
	hosts []string
	cert  *x509.Certificate
	key   *ecdsa.PrivateKey

	mu      sync.Mutex
	current *tls.Certificate
}

func (a *authority) path(name string) string { return filepath.Join(a.data, name) }

func openAuthority(data string, hosts []string) (*authority, error) {
	a := &authority{data: data, hosts: allHosts(hosts)}
	if err := os.MkdirAll(data, 0o755); err != nil {
		return nil, err
	}
	// Two servers of one data folder must not make two authorities.
	lock, err := os.OpenFile(a.path("ca.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return nil, err
	}
	if err := a.load(); err != nil {
		return nil, err
	}
	_, err = a.get(nil)
	return a, err
}

// allHosts are the names by which this machine is called, with the ones asked for.
func allHosts(asked []string) []string {
	hosts := append([]string{"localhost", "127.0.0.1", "::1"}, asked...)
	if name, err := os.Hostname(); err == nil {
		hosts = append(hosts, name)
	}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

// load reads the authority, or makes one where there is none. One that is near its end is an error: replacing it cuts
// off everybody who trusts it, so a person decides.
func (a *authority) load() error {
	certFile, keyFile := a.path("ca.pem"), a.path("ca.key")
	if _, err := os.Stat(keyFile); errors.Is(err, fs.ErrNotExist) {
		return a.make(certFile, keyFile)
	}
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return fmt.Errorf("the authority in %s: %w", a.data, err)
	}
	key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		return fmt.Errorf("%s is not a key that this server made", keyFile)
	}
	a.cert, a.key = pair.Leaf, key
	if time.Now().Add(renewBefore).After(a.cert.NotAfter) {
		return fmt.Errorf("the authority %s ends on %s: delete ca.pem and ca.key for a new one, and hand its ca.pem to whoever trusts the old",
			certFile, a.cert.NotAfter.Format(time.DateOnly))
	}
	return nil
}

func (a *authority) make(certFile, keyFile string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		Subject:   pkix.Name{CommonName: "Nightshift " + rand.Text()[:8]},
		NotBefore: time.Now().Add(-clockSkew), NotAfter: time.Now().Add(authorityLife),
		KeyUsage: x509.KeyUsageCertSign, IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return err
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		return err
	}
	a.key = key
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	// The certificate first: the key's presence says that both are there.
	if err := writePEM(certFile, "CERTIFICATE", der, 0o644); err != nil {
		return err
	}
	return writePEM(keyFile, "PRIVATE KEY", keyDER, 0o600)
}

// get returns the server's certificate, a fresh one when the one in hand is near its end.
func (a *authority) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.current != nil && time.Now().Add(renewBefore).Before(a.current.Leaf.NotAfter) {
		return a.current, nil
	}
	fresh, err := a.issue(time.Now())
	if err != nil {
		return nil, err
	}
	a.current = fresh
	return fresh, nil
}

// issue signs a certificate. Its key lives in memory alone: the authority is what stays.
func (a *authority) issue(now time.Time) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	until := now.Add(serverLife)
	if until.After(a.cert.NotAfter) {
		until = a.cert.NotAfter
	}
	template := &x509.Certificate{
		Subject:   pkix.Name{CommonName: "nightshift"},
		NotBefore: now.Add(-clockSkew), NotAfter: until,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	}
	for _, host := range a.hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return nil, err
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{der, a.cert.Raw}, PrivateKey: key, Leaf: leaf}, nil
}

func writePEM(path, kind string, der []byte, mode os.FileMode) error {
	side := path + ".new"
	if err := os.WriteFile(side, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), mode); err != nil {
		return err
	}
	return os.Rename(side, path)
}
