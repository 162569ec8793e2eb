package certs

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/crypto/acme"
	"golang.org/x/crypto/acme/autocert"
)

// Options say where the listener's certificate comes from.
type Options struct {
	Mode  string   // off, files, self-signed or acme
	Cert  string   // files: the chain in PEM
	Key   string   // files: its key in PEM
	CA    string   // the authority that other replicas are checked against; empty: what Mode suggests
	Data  string   // data folder: self-signed and acme keep theirs there
	Hosts []string // names and addresses beside localhost; acme needs them
}

// Config returns the listener's TLS configuration, nil for mode off, and the file with the authority to trust when
// calling it or a replica like it; no file means the system's authorities.
func Config(o Options) (*tls.Config, string, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1", acme.ALPNProto}}
	trust := o.CA
	switch o.Mode {
	case "off":
		return nil, trust, nil
	case "files":
		pair, err := readPair(o.Cert, o.Key)
		if err != nil {
			return nil, "", err
		}
		config.GetCertificate = pair.get
		if trust == "" {
			trust = o.Cert
		}
	case "self-signed":
		own, err := openAuthority(o.Data, o.Hosts)
		if err != nil {
			return nil, "", err
		}
		config.GetCertificate = own.get
		if trust == "" {
			trust = own.path("ca.pem")
		}
	case "acme":
		if len(o.Hosts) == 0 {
			return nil, "", errors.New("acme needs the names to ask certificates for")
		}
		manager := autocert.Manager{
			Prompt: autocert.AcceptTOS, Cache: autocert.DirCache(filepath.Join(o.Data, "acme")),
			HostPolicy: autocert.HostWhitelist(o.Hosts...),
		}
		config.GetCertificate = manager.GetCertificate
	default:
		return nil, "", fmt.Errorf("no TLS mode is called %q", o.Mode)
	}
	return config, trust, nil
}

// Trust reads the authorities of a file; no file means the system's, for which the pool is nil.
func Trust(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(content) {
		return nil, fmt.Errorf("%s holds no certificate in PEM", file)
	}
	return pool, nil
}
