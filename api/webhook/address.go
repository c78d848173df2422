package webhook

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

	"writ.example/writ/engine/condition"
)

// errRefused means that this deployment sends nothing to the webhook's address.
var errRefused = errors.New("the address is not public: --webhook-allow can name its network")

// errPlain means that the address may be reached over TLS only.
var errPlain = errors.New("plain HTTP is for networks that --webhook-allow names")

// Targets says which addresses webhooks may have. Public addresses are allowed over HTTPS.
// Addresses in Allow are allowed, too.
type Targets struct {
	// Allow has networks that are not public. Webhooks may reach these networks over HTTP, too.
	Allow []netip.Prefix
}

// public6 is the part of IPv6 that is assigned for routing. The IPv6 addresses that embed an IPv4
// address are outside public6. The exception is 6to4, which special contains.
var public6 = netip.MustParsePrefix("2000::/3")

// special has the networks without servers of the public Internet. The source is IANA's
// registries of special-purpose addresses.
var special = prefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
	"192.0.2.0/24",
	"192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24", "198.18.0.0/15",
	"198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
	"2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20",
)

func prefixes(texts ...string) []netip.Prefix {
	all := make([]netip.Prefix, len(texts))
	for i, s := range texts {
		all[i] = netip.MustParsePrefix(s)
	}
	return all
}

// Permit returns nil if webhooks may send to the address a. secure says whether the webhooks use
// TLS.
func (t Targets) Permit(a netip.Addr, secure bool) error {
	a = a.Unmap().WithZone("")
	for _, p := range t.Allow {
		if p.Contains(a) {
			return nil
		}
	}
	for _, p := range special {
		if p.Contains(a) {
			return errRefused
		}
	}
	switch {
	case !a.IsValid() || a.Is6() && !public6.Contains(a):
		return errRefused
	case !secure:
		return errPlain
	}
	return nil
}

// CheckURL returns an error if no webhook may have the URL text. It does not resolve names. The
// dialer checks the resolved address of each connection.
func (t Targets) CheckURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Opaque != "" || u.Hostname() == "":
		return errors.New("must be a URL such as https://example.com/hooks")
	case len(text) > condition.MaxText:
		return fmt.Errorf("is longer than %d bytes", condition.MaxText)
	case u.Scheme != "https" && (u.Scheme != "http" || len(t.Allow) == 0):
		return errors.New("must begin with https://")
	case u.User != nil:
		return errors.New("must not have a user or a password: verify the signature instead")
	case u.Fragment != "" || strings.HasSuffix(text, "#"):
		return errors.New("must not have a fragment")
	}
	if a, err := netip.ParseAddr(u.Hostname()); err == nil {
		return t.Permit(a, u.Scheme == "https")
	}
	return nil
}

// dialer returns a dialer that connects only to permitted addresses. It checks the address after
// the name is resolved. So the name cannot resolve to another address between the check and the
// connection.
func (t Targets) dialer(secure bool) *net.Dialer {
	return &net.Dialer{
		Timeout: connectTimeout,
		ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
			at, err := netip.ParseAddrPort(address)
			if err != nil {
				return fmt.Errorf("%w: %w", errRefused, err)
			}
			return t.Permit(at.Addr(), secure)
		},
	}
}

// connectTimeout bounds the time to connect. The TLS handshake has the same bound of its own.
const connectTimeout = 5 * time.Second
