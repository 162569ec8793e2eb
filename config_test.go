package main

import (
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var testKey = base64.StdEncoding.EncodeToString([]byte("0123456789abcdef0123456789abcdef"))

func TestConfigPresets(t *testing.T) {
	c, err := loadConfig([]string{"HOME=/home/ada", "PATH=/bin", "NIGHTSHIFT_TLS="}, "/data")
	if err != nil {
		t.Fatal(err)
	}
	if c.Listen != "127.0.0.1:8080" || c.TLS != "off" || c.Data != "/data" || !c.StatementCache || c.LogFormat != "text" {
		t.Errorf("presets: %+v", c)
	}
	if c.AdvertiseURL != "http://127.0.0.1:8080" {
		t.Errorf("advertised: %s", c.AdvertiseURL)
	}
	// A port that the system chooses is not known yet: the replicas of one machine would all stand under port 0.
	if c, err := loadConfig([]string{"NIGHTSHIFT_LISTEN=127.0.0.1:0"}, "/data"); err != nil || c.AdvertiseURL != "" {
		t.Errorf("advertised before the port is known: %s, %v", c.AdvertiseURL, err)
	}
	if len(variables) > 25 {
		t.Errorf("%d variables; 25 are the most a person can keep in mind", len(variables))
	}
}

// Each bad environment is refused as a usage error whose every problem begins with the variable's name.
func TestConfigRefusals(t *testing.T) {
	db := "DATABASE_URL=postgres://u:hidden-word@db/n"
	for name, c := range map[string]struct {
		environ []string
		want    []string
	}{
		"unknown name":              {[]string{"NIGHTSHIFT_LISTEM=:1"}, []string{"NIGHTSHIFT_LISTEM"}},
		"file of what is public":    {[]string{"NIGHTSHIFT_LISTEN_FILE=/x"}, []string{"NIGHTSHIFT_LISTEN_FILE"}},
		"two at once":               {[]string{"NIGHTSHIFT_TLS=on", "NIGHTSHIFT_BEHIND_PROXY=maybe"}, []string{"NIGHTSHIFT_TLS", "NIGHTSHIFT_BEHIND_PROXY"}},
		"no port":                   {[]string{"NIGHTSHIFT_LISTEN=127.0.0.1"}, []string{"NIGHTSHIFT_LISTEN"}},
		"bad port":                  {[]string{"NIGHTSHIFT_LISTEN=127.0.0.1:99999"}, []string{"NIGHTSHIFT_LISTEN"}},
		"open without TLS":          {[]string{"NIGHTSHIFT_LISTEN=0.0.0.0:80"}, []string{"NIGHTSHIFT_LISTEN"}},
		"a name without TLS":        {[]string{"NIGHTSHIFT_LISTEN=host.example:80"}, []string{"NIGHTSHIFT_LISTEN"}},
		"wildcard, not advertised":  {[]string{"NIGHTSHIFT_LISTEN=:80", "NIGHTSHIFT_TLS=self-signed", db, "NIGHTSHIFT_SECRET_KEY=" + testKey}, []string{"NIGHTSHIFT_ADVERTISE_URL"}},
		"files without files":       {[]string{"NIGHTSHIFT_TLS=files"}, []string{"NIGHTSHIFT_TLS"}},
		"certificate, no TLS":       {[]string{"NIGHTSHIFT_TLS_CERT=/c.pem"}, []string{"NIGHTSHIFT_TLS_CERT"}},
		"acme without names":        {[]string{"NIGHTSHIFT_TLS=acme"}, []string{"NIGHTSHIFT_TLS_HOSTS"}},
		"database without key":      {[]string{db}, []string{"NIGHTSHIFT_SECRET_KEY"}},
		"short key":                 {[]string{"NIGHTSHIFT_SECRET_KEY=c2hvcnQ="}, []string{"NIGHTSHIFT_SECRET_KEY"}},
		"not PostgreSQL":            {[]string{"DATABASE_URL=mysql://u:hidden-word@db/n"}, []string{"DATABASE_URL"}},
		"broken database":           {[]string{"DATABASE_URL=postgres://u:hidden-word@db:port/n"}, []string{"DATABASE_URL"}},
		"owner without database":    {[]string{"DATABASE_OWNER_URL=postgres://u:hidden-word@db/n"}, []string{"DATABASE_OWNER_URL"}},
		"half a key":                {[]string{"NIGHTSHIFT_BOOTSTRAP_CLIENT_ID=boot"}, []string{"NIGHTSHIFT_BOOTSTRAP_CLIENT_SECRET"}},
		"bad client id":             {[]string{"NIGHTSHIFT_BOOTSTRAP_CLIENT_ID=Boot Key"}, []string{"NIGHTSHIFT_BOOTSTRAP_CLIENT_ID"}},
		"operator, no password":     {[]string{"NIGHTSHIFT_ADMIN_EMAIL=ada@example.com"}, []string{"NIGHTSHIFT_ADMIN_PASSWORD"}},
		"bad address":               {[]string{"NIGHTSHIFT_ADMIN_EMAIL=ada"}, []string{"NIGHTSHIFT_ADMIN_EMAIL"}},
		"no such file":              {[]string{"NIGHTSHIFT_SECRET_KEY_FILE=/no/such"}, []string{"NIGHTSHIFT_SECRET_KEY"}},
		"value and file":            {[]string{"NIGHTSHIFT_SECRET_KEY=" + testKey, "NIGHTSHIFT_SECRET_KEY_FILE=/k"}, []string{"NIGHTSHIFT_SECRET_KEY"}},
		"bad network":               {[]string{"NIGHTSHIFT_EGRESS_ALLOW=10.0.0.0"}, []string{"NIGHTSHIFT_EGRESS_ALLOW"}},
		"bad level":                 {[]string{"NIGHTSHIFT_LOG_LEVEL=loud"}, []string{"NIGHTSHIFT_LOG_LEVEL"}},
		"advertised without scheme": {[]string{"NIGHTSHIFT_ADVERTISE_URL=host:80"}, []string{"NIGHTSHIFT_ADVERTISE_URL"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := loadConfig(c.environ, "/data")
			var usage usageError
			if !errors.As(err, &usage) {
				t.Fatalf("not a usage error: %v", err)
			}
			lines := strings.Split(err.Error(), "\n")
			if len(lines) != len(c.want) {
				t.Fatalf("%d problems, want %d: %v", len(lines), len(c.want), err)
			}
			for i, line := range lines {
				if !strings.HasPrefix(line, c.want[i]+": ") {
					t.Errorf("problem %q does not name %s", line, c.want[i])
				}
			}
			if strings.Contains(err.Error(), "hidden-word") {
				t.Errorf("the error tells a password: %v", err)
			}
		})
	}
}

func TestConfigAllowsOpenListeners(t *testing.T) {
	for name, environ := range map[string][]string{
		"proxy":                  {"NIGHTSHIFT_LISTEN=0.0.0.0:80", "NIGHTSHIFT_BEHIND_PROXY=true"},
		"TLS":                    {"NIGHTSHIFT_LISTEN=10.1.2.3:443", "NIGHTSHIFT_TLS=self-signed"},
		"IPv6 loopback":          {"NIGHTSHIFT_LISTEN=[::1]:8080"},
		"localhost":              {"NIGHTSHIFT_LISTEN=localhost:0"},
		"replica, one address":   {"NIGHTSHIFT_LISTEN=10.1.2.3:443", "NIGHTSHIFT_TLS=self-signed", "DATABASE_URL=postgres://u@db/n", "NIGHTSHIFT_SECRET_KEY=" + testKey},
		"replica, all addresses": {"NIGHTSHIFT_LISTEN=:443", "NIGHTSHIFT_TLS=self-signed", "NIGHTSHIFT_ADVERTISE_URL=https://one:443", "DATABASE_URL=postgres://u@db/n", "NIGHTSHIFT_SECRET_KEY=" + testKey},
	} {
		if _, err := loadConfig(environ, "/data"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestConfigHidesSecrets(t *testing.T) {
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("canary-three\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := loadConfig([]string{
		"DATABASE_URL=postgres://login:canary-one@db.example:5433/night?sslpassword=canary-two",
		"NIGHTSHIFT_ADMIN_EMAIL=ada@example.com", "NIGHTSHIFT_ADMIN_PASSWORD_FILE=" + file,
		"NIGHTSHIFT_SECRET_KEY=" + testKey,
		"NIGHTSHIFT_BOOTSTRAP_CLIENT_ID=boot", "NIGHTSHIFT_BOOTSTRAP_CLIENT_SECRET=canary-four",
	}, "/data")
	if err != nil {
		t.Fatal(err)
	}
	if c.AdminPassword != "canary-three" {
		t.Errorf("the password from the file is %q", c.AdminPassword)
	}
	shown := c.String()
	for _, secret := range []string{"canary", testKey} {
		if strings.Contains(shown, secret) {
			t.Errorf("shown: %s", shown)
		}
	}
	for _, v := range variables {
		if !strings.Contains(shown, v.name+"=") {
			t.Errorf("%s is not shown", v.name)
		}
	}
	if !strings.Contains(shown, "db.example:5433/night") || !strings.Contains(shown, "NIGHTSHIFT_ADMIN_PASSWORD=(hidden)") {
		t.Errorf("shown: %s", shown)
	}
}

func TestSecretKeyIsMadeOnce(t *testing.T) {
	dir := t.TempDir()
	first, second := Config{Data: dir}, Config{Data: dir}
	if err := first.ensureSecretKey(); err != nil {
		t.Fatal(err)
	}
	if err := second.ensureSecretKey(); err != nil {
		t.Fatal(err)
	}
	if len(first.SecretKey) != 32 || string(first.SecretKey) != string(second.SecretKey) {
		t.Error("two starts have two keys")
	}
	info, err := os.Stat(filepath.Join(dir, "secret.key"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("secret.key: %v, %v", info, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "secret.key"), []byte("broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	third := Config{Data: dir}
	if err := third.ensureSecretKey(); err == nil {
		t.Error("a broken key was taken, or made anew")
	}
}
