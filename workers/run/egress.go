package run

import (
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"

	"nightshift/workers"
	"nightshift/workers/protocol"
)

// guard decides which addresses may be connected to. It looks at the address
// of the connection itself, after names were resolved and redirects followed,
// so neither can lead it astray.
type guard struct {
	allow []netip.Prefix
}

// internal lists what is no public address: the standard predicates know only
// part of it. Of IPv6 only 2000::/3 is public at all; these lie within it.
var internal = prefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
	"192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16",
	"192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
	"2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20",
)

var publicV6 = netip.MustParsePrefix("2000::/3")

func prefixes(texts ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		out[i] = netip.MustParsePrefix(text)
	}
	return out
}

// permits tells whether an address may be connected to.
func (g *guard) permits(address netip.Addr) bool {
	if address.Zone() != "" {
		return false
	}
	address = address.Unmap()
	for _, p := range g.allow {
		if p.Masked().Contains(address) {
			return true
		}
	}
	if address.Is6() && !publicV6.Contains(address) {
		return false
	}
	for _, p := range internal {
		if p.Contains(address) {
			return false
		}
	}
	return address.IsValid()
}

func (g *guard) control(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil || !g.permits(to.Addr()) {
		return workers.Errorf(protocol.ClassPermissionDenied, "%s is an internal address; this worker may not connect to it", address)
	}
	return nil
}

// client makes an HTTP client behind the guard. It uses no proxy: one would
// connect in its place.
func (g *guard) client(redirects int) *http.Client {
	dialer := &net.Dialer{Timeout: 10 * time.Second, Control: g.control}
	return &http.Client{
		Transport: &http.Transport{
			DialContext: dialer.DialContext, TLSHandshakeTimeout: 10 * time.Second,
			MaxIdleConnsPerHost: 4, IdleConnTimeout: 30 * time.Second, DisableKeepAlives: true,
		},
		CheckRedirect: func(_ *http.Request, via []*http.Request) error {
			if len(via) > redirects {
				return http.ErrUseLastResponse
			}
			return nil
		},
	}
}
