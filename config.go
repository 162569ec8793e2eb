package main

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Config is everything the environment decides. It is read once, at the start; nothing else reads the environment.
type Config struct {
	Listen       string
	TLS          string // off, files, self-signed or acme
	TLSCert      string
	TLSKey       string
	TLSCA        string
	TLSHosts     []string
	BehindProxy  bool
	AdvertiseURL string // where other replicas reach this one; empty until the listener's port is known

	Data string

	DatabaseURL       string // empty: the embedded database
	DatabaseOwnerURL  string
	DatabaseDirectURL string
	StatementCache    bool
	PGBin             string
	PGMirror          string

	BootstrapClientID     string
	BootstrapClientSecret string
	AdminEmail            string
	AdminPassword         string
	SecretKey             []byte // 32 bytes; empty until ensureSecretKey with the embedded database

	EgressAllow []netip.Prefix
	LogLevel    slog.Level
	LogFormat   string // text or json
}

// variable is one name of the environment. A secret may also be given as NAME_FILE, the path of a file that holds it.
type variable struct {
	name   string
	preset string
	secret bool
	set    func(*Config, string) error
	about  string
}

var variables = []variable{
	{"NIGHTSHIFT_LISTEN", "127.0.0.1:8080", false, setListen, "address of the HTTP listener"},
	{"NIGHTSHIFT_TLS", "off", false, oneOf(func(c *Config) *string { return &c.TLS }, "off", "files", "self-signed", "acme"), "where the certificate comes from"},
	{"NIGHTSHIFT_TLS_CERT", "", false, text(func(c *Config) *string { return &c.TLSCert }), "certificate chain in PEM, for TLS=files"},
	{"NIGHTSHIFT_TLS_KEY", "", false, text(func(c *Config) *string { return &c.TLSKey }), "its private key in PEM"},
	{"NIGHTSHIFT_TLS_CA", "", false, text(func(c *Config) *string { return &c.TLSCA }), "authority that other replicas' certificates are checked against"},
	{"NIGHTSHIFT_TLS_HOSTS", "", false, setHosts, "names in the certificate, separated by commas; needed for TLS=acme"},
	{"NIGHTSHIFT_BEHIND_PROXY", "false", false, setBehindProxy, "true: a proxy in front ends TLS and sets X-Forwarded-*"},
	{"NIGHTSHIFT_ADVERTISE_URL", "", false, setAdvertise, "URL at which other replicas reach this one; preset: the listener's"},
	{"NIGHTSHIFT_DATA", "", false, text(func(c *Config) *string { return &c.Data }), "data folder"},
	{"DATABASE_URL", "", true, postgresURL(func(c *Config) *string { return &c.DatabaseURL }), "PostgreSQL; empty: an embedded one in the data folder"},
	{"DATABASE_OWNER_URL", "", true, postgresURL(func(c *Config) *string { return &c.DatabaseOwnerURL }), "login that owns the schema and may create roles, where DATABASE_URL's may not"},
	{"DATABASE_DIRECT_URL", "", true, postgresURL(func(c *Config) *string { return &c.DatabaseDirectURL }), "the same database around a connection pooler, for the writer"},
	{"DATABASE_STATEMENT_CACHE", "on", false, setStatementCache, "off: for a pooler that can't keep prepared statements"},
	{"NIGHTSHIFT_PG_BIN", "", false, text(func(c *Config) *string { return &c.PGBin }), "folder of initdb and postgres for the embedded database"},
	{"NIGHTSHIFT_PG_MIRROR", "", false, text(func(c *Config) *string { return &c.PGMirror }), "npm registry that PostgreSQL is fetched from when missing; off: never"},
	{"NIGHTSHIFT_BOOTSTRAP_CLIENT_ID", "", false, setClientID, "client id of the first platform API key"},
	{"NIGHTSHIFT_BOOTSTRAP_CLIENT_SECRET", "", true, text(func(c *Config) *string { return &c.BootstrapClientSecret }), "its secret"},
	{"NIGHTSHIFT_ADMIN_EMAIL", "", false, setEmail, "the first operator"},
	{"NIGHTSHIFT_ADMIN_PASSWORD", "", true, text(func(c *Config) *string { return &c.AdminPassword }), "the operator's password"},
	{"NIGHTSHIFT_SECRET_KEY", "", true, setSecretKey, "32 bytes in base64 that seal secrets at rest; all replicas need the same"},
	{"NIGHTSHIFT_EGRESS_ALLOW", "", false, setEgress, "internal networks (CIDR, commas) that http.request and webhooks may reach"},
	{"NIGHTSHIFT_LOG_LEVEL", "info", false, setLogLevel, "debug, info, warn or error"},
	{"NIGHTSHIFT_LOG_FORMAT", "text", false, oneOf(func(c *Config) *string { return &c.LogFormat }, "text", "json"), "text or json"},
}

// loadConfig reads the environment ("NAME=value" lines). The folder is the data folder where NIGHTSHIFT_DATA is not
// set. Every problem is reported, each with the name of its variable.
func loadConfig(environ []string, data string) (Config, error) {
	given := map[string]string{}
	for _, line := range environ {
		if name, value, _ := strings.Cut(line, "="); value != "" {
			given[name] = value
		}
	}
	c := Config{Data: data}
	problems := unknownNames(given)
	for _, v := range variables {
		value, err := v.value(given)
		if err == nil && value != "" {
			err = v.set(&c, value)
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", v.name, err))
		}
	}
	if len(problems) == 0 {
		problems = c.check()
	}
	if len(problems) > 0 {
		return Config{}, usageError{errors.Join(problems...)}
	}
	if _, port, _ := net.SplitHostPort(c.Listen); c.AdvertiseURL == "" && port != "0" {
		c.AdvertiseURL = c.listenerURL()
	}
	return c, nil
}

func unknownNames(given map[string]string) []error {
	known := map[string]bool{}
	for _, v := range variables {
		known[v.name] = true
		known[v.name+"_FILE"] = v.secret
	}
	var problems []error
	for name := range given {
		if strings.HasPrefix(name, "NIGHTSHIFT_") && !known[name] {
			problems = append(problems, fmt.Errorf("%s: there is no such variable", name))
		}
	}
	slices.SortFunc(problems, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return problems
}

// value is what was given, directly or in a file, else the preset.
func (v variable) value(given map[string]string) (string, error) {
	value, path := given[v.name], given[v.name+"_FILE"]
	switch {
	case !v.secret || path == "":
		if value == "" {
			value = v.preset
		}
		return value, nil
	case value != "":
		return "", fmt.Errorf("%s_FILE is set too: give one of them", v.name)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("%s_FILE: %w", v.name, err)
	}
	value = strings.TrimSpace(string(content))
	if value == "" {
		return "", fmt.Errorf("%s_FILE: %s is empty", v.name, path)
	}
	return value, nil
}

// check holds the rules between variables.
func (c *Config) check() []error {
	host, _, _ := net.SplitHostPort(c.Listen) // parsed when it was set
	var problems []error
	refuse := func(broken bool, format string, args ...any) {
		if broken {
			problems = append(problems, fmt.Errorf(format, args...))
		}
	}
	refuse(!isLoopback(host) && c.TLS == "off" && !c.BehindProxy,
		"NIGHTSHIFT_LISTEN: %s is open to the network without TLS: set NIGHTSHIFT_TLS, or NIGHTSHIFT_BEHIND_PROXY=true where a proxy ends TLS", c.Listen)
	refuse(isWildcard(host) && c.DatabaseURL != "" && c.AdvertiseURL == "",
		"NIGHTSHIFT_ADVERTISE_URL: needed with DATABASE_URL and the wildcard listener %s: other replicas can't guess this one's address", c.Listen)
	refuse(c.TLS == "files" && (c.TLSCert == "" || c.TLSKey == ""), "NIGHTSHIFT_TLS: files needs NIGHTSHIFT_TLS_CERT and NIGHTSHIFT_TLS_KEY")
	refuse(c.TLS != "files" && c.TLSCert != "", "NIGHTSHIFT_TLS_CERT: only with NIGHTSHIFT_TLS=files")
	refuse(c.TLS != "files" && c.TLSKey != "", "NIGHTSHIFT_TLS_KEY: only with NIGHTSHIFT_TLS=files")
	refuse(c.TLS == "acme" && len(c.TLSHosts) == 0, "NIGHTSHIFT_TLS_HOSTS: acme needs the names to ask certificates for")
	refuse(c.BootstrapClientID == "" && c.BootstrapClientSecret != "", "NIGHTSHIFT_BOOTSTRAP_CLIENT_ID: needed with NIGHTSHIFT_BOOTSTRAP_CLIENT_SECRET")
	refuse(c.BootstrapClientID != "" && c.BootstrapClientSecret == "", "NIGHTSHIFT_BOOTSTRAP_CLIENT_SECRET: needed with NIGHTSHIFT_BOOTSTRAP_CLIENT_ID")
	refuse(c.AdminEmail == "" && c.AdminPassword != "", "NIGHTSHIFT_ADMIN_EMAIL: needed with NIGHTSHIFT_ADMIN_PASSWORD")
	refuse(c.AdminEmail != "" && c.AdminPassword == "", "NIGHTSHIFT_ADMIN_PASSWORD: needed with NIGHTSHIFT_ADMIN_EMAIL")
	refuse(c.DatabaseURL == "" && c.DatabaseOwnerURL != "", "DATABASE_OWNER_URL: only with DATABASE_URL")
	refuse(c.DatabaseURL == "" && c.DatabaseDirectURL != "", "DATABASE_DIRECT_URL: only with DATABASE_URL")
	refuse(c.DatabaseURL != "" && len(c.SecretKey) == 0,
		"NIGHTSHIFT_SECRET_KEY: needed with DATABASE_URL, the same for all replicas; make one with: openssl rand -base64 32")
	refuse(c.Data == "", "NIGHTSHIFT_DATA: needed where neither a home folder nor XDG_DATA_HOME is known")
	return problems
}

// listenerURL is the listener as a URL; a wildcard is reached, from this machine, on loopback.
func (c *Config) listenerURL() string {
	host, port, _ := net.SplitHostPort(c.Listen)
	if isWildcard(host) {
		host = "127.0.0.1"
	}
	scheme := "https"
	if c.TLS == "off" {
		scheme = "http"
	}
	return scheme + "://" + net.JoinHostPort(host, port)
}

// ensureSecretKey reads the data folder's key, or makes one, where none was given. The embedded database alone allows
// that: with DATABASE_URL, another replica could not open what this one sealed.
func (c *Config) ensureSecretKey() error {
	if len(c.SecretKey) > 0 {
		return nil
	}
	path := filepath.Join(c.Data, "secret.key")
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		key := make([]byte, 32)
		_, _ = rand.Read(key) // never fails: it ends the process instead
		content = []byte(base64.StdEncoding.EncodeToString(key) + "\n")
		err = writePrivate(path, content)
	}
	if err == nil {
		err = setSecretKey(c, strings.TrimSpace(string(content)))
	}
	if err != nil {
		return fmt.Errorf("secret key in %s: %w", path, err)
	}
	return nil
}

// writePrivate writes a file that only its owner may read, whole or not at all.
func writePrivate(path string, content []byte) error {
	side := path + ".new"
	if err := os.WriteFile(side, content, 0o600); err != nil {
		return err
	}
	return os.Rename(side, path)
}

// String shows what is set, a line a variable, without what must stay secret.
func (c *Config) String() string {
	hide := func(set bool) string {
		if set {
			return "(hidden)"
		}
		return ""
	}
	allow := make([]string, len(c.EgressAllow))
	for i, prefix := range c.EgressAllow {
		allow[i] = prefix.String()
	}
	cache := map[bool]string{true: "on", false: "off"}[c.StatementCache]
	shown := map[string]string{
		"NIGHTSHIFT_LISTEN": c.Listen, "NIGHTSHIFT_TLS": c.TLS, "NIGHTSHIFT_TLS_CERT": c.TLSCert, "NIGHTSHIFT_TLS_KEY": c.TLSKey,
		"NIGHTSHIFT_TLS_CA": c.TLSCA, "NIGHTSHIFT_TLS_HOSTS": strings.Join(c.TLSHosts, ","),
		"NIGHTSHIFT_BEHIND_PROXY": strconv.FormatBool(c.BehindProxy), "NIGHTSHIFT_ADVERTISE_URL": c.AdvertiseURL, "NIGHTSHIFT_DATA": c.Data,
		"DATABASE_URL": hidePassword(c.DatabaseURL), "DATABASE_OWNER_URL": hidePassword(c.DatabaseOwnerURL),
		"DATABASE_DIRECT_URL": hidePassword(c.DatabaseDirectURL), "DATABASE_STATEMENT_CACHE": cache,
		"NIGHTSHIFT_PG_BIN": c.PGBin, "NIGHTSHIFT_PG_MIRROR": hidePassword(c.PGMirror),
		"NIGHTSHIFT_BOOTSTRAP_CLIENT_ID": c.BootstrapClientID, "NIGHTSHIFT_BOOTSTRAP_CLIENT_SECRET": hide(c.BootstrapClientSecret != ""),
		"NIGHTSHIFT_ADMIN_EMAIL": c.AdminEmail, "NIGHTSHIFT_ADMIN_PASSWORD": hide(c.AdminPassword != ""),
		"NIGHTSHIFT_SECRET_KEY": hide(len(c.SecretKey) > 0), "NIGHTSHIFT_EGRESS_ALLOW": strings.Join(allow, ","),
		"NIGHTSHIFT_LOG_LEVEL": strings.ToLower(c.LogLevel.String()), "NIGHTSHIFT_LOG_FORMAT": c.LogFormat,
	}
	var lines strings.Builder
	for _, v := range variables {
		fmt.Fprintf(&lines, "%s=%s\n", v.name, shown[v.name])
	}
	return lines.String()
}

// describeVariables is the help for all of them.
func describeVariables() string {
	var lines strings.Builder
	for _, v := range variables {
		about := v.about
		if v.preset != "" {
			about += " (" + v.preset + ")"
		}
		fmt.Fprintf(&lines, "  %-35s %s\n", v.name, about)
	}
	return lines.String()
}

// hidePassword keeps a URL's server and database. A password may also stand in the query.
func hidePassword(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "(hidden)"
	}
	if query := u.Query(); query.Has("password") || query.Has("sslpassword") {
		query.Del("password")
		query.Del("sslpassword")
		u.RawQuery = query.Encode()
	}
	return u.Redacted()
}

// egressAllow is the one variable that workers share with servers.
func egressAllow(environ []string) ([]netip.Prefix, error) {
	var c Config
	for _, line := range environ {
		if value, ok := strings.CutPrefix(line, "NIGHTSHIFT_EGRESS_ALLOW="); ok && value != "" {
			if err := setEgress(&c, value); err != nil {
				return nil, fmt.Errorf("NIGHTSHIFT_EGRESS_ALLOW: %w", err)
			}
		}
	}
	return c.EgressAllow, nil
}

// dataRoot is the default data folder: the system's for root, else the user's.
func dataRoot(environ []string) string {
	if os.Geteuid() == 0 {
		return "/var/lib/nightshift"
	}
	var home string
	for _, line := range environ {
		switch name, value, _ := strings.Cut(line, "="); {
		case value == "":
		case name == "XDG_DATA_HOME":
			return filepath.Join(value, "nightshift")
		case name == "HOME":
			home = filepath.Join(value, ".local", "share", "nightshift")
		}
	}
	return home
}

func isLoopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}

func isWildcard(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "" || err == nil && address.IsUnspecified()
}
