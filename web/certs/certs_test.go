package certs

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// get calls a server of the configuration by name, trusting the file alone.
func get(t *testing.T, config *tls.Config, trust, name string) (*tls.ConnectionState, error) {
	t.Helper()
	pool, err := Trust(trust)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })}
	go func() { _ = server.Serve(listener) }() // ends with Close
	defer server.Close()
	client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: pool, ServerName: name},
		ForceAttemptHTTP2: true,
	}}
	defer client.CloseIdleConnections()
	response, err := client.Get("https://" + listener.Addr().String())
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	return response.TLS, nil
}

func TestSelfSignedStaysTheSameAuthority(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	first, trust, err := Config(Options{Mode: "self-signed", Data: data})
	if err != nil {
		t.Fatal(err)
	}
	if trust != filepath.Join(data, "ca.pem") {
		t.Errorf("trust %s", trust)
	}
	second, _, err := Config(Options{Mode: "self-signed", Data: data, Hosts: []string{"night.example", "10.9.8.7"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"localhost", "127.0.0.1", "::1"} {
		state, err := get(t, first, trust, name)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if state.NegotiatedProtocol != "http/1.1" {
			t.Errorf("%s speaks %q", name, state.NegotiatedProtocol)
		}
	}
	if _, err := get(t, second, trust, "night.example"); err != nil {
		t.Errorf("after a restart with a name more: %v", err)
	}
	if _, err := get(t, second, trust, "10.9.8.7"); err != nil {
		t.Errorf("after a restart with an address more: %v", err)
	}
	if _, err := get(t, first, trust, "other.example"); err == nil {
		t.Error("a foreign name was accepted")
	}
	info, err := os.Stat(filepath.Join(data, "ca.key"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("ca.key: %v, %v", info, err)
	}
}

func TestSelfSignedIsRenewed(t *testing.T) {
	a, err := openAuthority(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	old := a.current
	if again, err := a.get(nil); err != nil || again != old {
		t.Errorf("a fresh certificate was replaced: %v", err)
	}
	if a.current, err = a.issue(time.Now().Add(-serverLife + renewBefore - time.Minute)); err != nil {
		t.Fatal(err)
	}
	ending := a.current
	if next, err := a.get(nil); err != nil || next == ending {
		t.Errorf("a certificate near its end was kept: %v", err)
	}
}

func TestFilesAreReadAgain(t *testing.T) {
	dir := t.TempDir()
	a, err := openAuthority(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile := filepath.Join(dir, "server.pem"), filepath.Join(dir, "server.key")
	write := func(c *tls.Certificate, at time.Time) {
		t.Helper()
		key, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
		if err != nil {
			t.Fatal(err)
		}
		chain := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate[0]})
		if err := os.WriteFile(certFile, chain, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := writePEM(keyFile, "PRIVATE KEY", key, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, file := range []string{certFile, keyFile} {
			if err := os.Chtimes(file, at, at); err != nil {
				t.Fatal(err)
			}
		}
	}
	one, err := a.issue(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	two, err := a.issue(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	write(one, time.Now().Add(-time.Hour))
	config, trust, err := Config(Options{Mode: "files", Cert: certFile, Key: keyFile, CA: filepath.Join(dir, "ca.pem")})
	if err != nil {
		t.Fatal(err)
	}
	if state, err := get(t, config, trust, "localhost"); err != nil || !state.PeerCertificates[0].Equal(one.Leaf) {
		t.Fatalf("the first certificate: %v", err)
	}

	p, err := readPair(certFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	write(two, time.Now())
	p.looked = time.Time{}
	if got, err := p.get(nil); err != nil || !got.Leaf.Equal(two.Leaf) {
		t.Errorf("a renewed file was not read: %v", err)
	}
	if err := os.WriteFile(certFile, []byte("half a file"), 0o644); err != nil {
		t.Fatal(err)
	}
	p.looked = time.Time{}
	if got, err := p.get(nil); err != nil || !got.Leaf.Equal(two.Leaf) {
		t.Errorf("a broken file replaced the good certificate: %v", err)
	}
}

func TestRefusals(t *testing.T) {
	for name, o := range map[string]Options{
		"unknown mode":    {Mode: "on"},
		"missing files":   {Mode: "files", Cert: "/no/cert", Key: "/no/key"},
		"acme, no names":  {Mode: "acme", Data: t.TempDir()},
		"a folder's file": {Mode: "self-signed", Data: filepath.Join("/dev/null", "data")},
	} {
		if config, _, err := Config(o); err == nil || config != nil {
			t.Errorf("%s: no error", name)
		}
	}
	if config, _, err := Config(Options{Mode: "off"}); err != nil || config != nil {
		t.Errorf("off: %v, %v", config, err)
	}
	if _, err := Trust("/dev/null"); err == nil {
		t.Error("an empty file was trusted")
	}
	if pool, err := Trust(""); err != nil || pool != nil {
		t.Errorf("no file: %v, %v", pool, err)
	}
}

func TestAcmeOffersItsProtocol(t *testing.T) {
	config, trust, err := Config(Options{Mode: "acme", Data: t.TempDir(), Hosts: []string{"night.example"}})
	if err != nil || trust != "" {
		t.Fatal(trust, err)
	}
	if len(config.NextProtos) != 2 || config.NextProtos[0] != "http/1.1" || config.NextProtos[1] != "acme-tls/1" {
		t.Errorf("protocols %v", config.NextProtos)
	}
	if _, err := config.GetCertificate(&tls.ClientHelloInfo{ServerName: "other.example", Conn: &net.TCPConn{}}); err == nil {
		t.Error("a certificate for a foreign name")
	}
}
