package main

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

func text(field func(*Config) *string) func(*Config, string) error {
	return func(c *Config, value string) error {
		*field(c) = value
		return nil
	}
}

func oneOf(field func(*Config) *string, allowed ...string) func(*Config, string) error {
	return func(c *Config, value string) error {
		if !slices.Contains(allowed, value) {
			return fmt.Errorf("%q is none of %s", value, strings.Join(allowed, ", "))
		}
		*field(c) = value
		return nil
	}
}

// postgresURL takes URLs alone, and never repeats one: it holds a password.
func postgresURL(field func(*Config) *string) func(*Config, string) error {
	return func(c *Config, value string) error {
		if !strings.HasPrefix(value, "postgres://") && !strings.HasPrefix(value, "postgresql://") {
			return errors.New("not a URL of the form postgres://user:password@host:5432/database")
		}
		if _, err := pgconn.ParseConfig(value); err != nil {
			return err // it hides the password
		}
		*field(c) = value
		return nil
	}
}

func setListen(c *Config, value string) error {
	_, port, err := net.SplitHostPort(value)
	if err != nil {
		return fmt.Errorf("%q is not host:port", value)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("%q is no port", port)
	}
	c.Listen = value
	return nil
}

func setHosts(c *Config, value string) error {
	for host := range strings.SplitSeq(value, ",") {
		host = strings.TrimSpace(host)
		if host == "" || strings.ContainsAny(host, "/ ") {
			return fmt.Errorf("%q is no host name", host)
		}
		c.TLSHosts = append(c.TLSHosts, host)
	}
	return nil
}

func setBehindProxy(c *Config, value string) error {
	if value != "true" && value != "false" {
		return fmt.Errorf("%q is neither true nor false", value)
	}
	c.BehindProxy = value == "true"
	return nil
}

func setAdvertise(c *Config, value string) error {
	u, err := url.Parse(value)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" {
		return errors.New("not a URL of the form https://host:port")
	}
	c.AdvertiseURL = strings.TrimRight(value, "/")
	return nil
}

func setStatementCache(c *Config, value string) error {
	if value != "on" && value != "off" {
		return fmt.Errorf("%q is neither on nor off", value)
	}
	c.StatementCache = value == "on"
	return nil
}

var clientID = regexp.MustCompile(`^[a-z0-9_-]{3,64}$`)

func setClientID(c *Config, value string) error {
	if !clientID.MatchString(value) {
		return fmt.Errorf("%q is not 3 to 64 characters of a-z, 0-9, _ and -", value)
	}
	c.BootstrapClientID = value
	return nil
}

func setEmail(c *Config, value string) error {
	if name, domain, ok := strings.Cut(value, "@"); !ok || name == "" || domain == "" || strings.ContainsAny(value, " \t\r\n<>") {
		return fmt.Errorf("%q is no address", value)
	}
	c.AdminEmail = value
	return nil
}

func setSecretKey(c *Config, value string) error {
	key, err := base64.StdEncoding.DecodeString(value)
	if err != nil || len(key) != 32 {
		return errors.New("not 32 bytes in base64; make one with: openssl rand -base64 32")
	}
	c.SecretKey = key
	return nil
}

func setEgress(c *Config, value string) error {
	for part := range strings.SplitSeq(value, ",") {
		prefix, err := netip.ParsePrefix(strings.TrimSpace(part))
		if err != nil {
			return fmt.Errorf("%q is no network like 10.0.0.0/8", part)
		}
		c.EgressAllow = append(c.EgressAllow, prefix)
	}
	return nil
}

func setLogLevel(c *Config, value string) error {
	if !slices.Contains([]string{"debug", "info", "warn", "error"}, value) {
		return fmt.Errorf("%q is none of debug, info, warn, error", value)
	}
	return c.LogLevel.UnmarshalText([]byte(value))
}
