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

	"writ/engine/condition"
)

// errRefused means that the deployment does not send to the address of a webhook.
var errRefused = errors.New("the address is not public: --webhook-allow can name its network")

// errPlain means that this address needs TLS.
var errPlain = errors.New("plain HTTP is for networks that --webhook-allow names")

// Targets says which addresses webhooks may have: public addresses over HTTPS, and the addresses in Allow.
type Targets struct {
	// Allow are networks that are not public. They may also be reached over HTTP.
	Allow []netip.Prefix
}

// public6 is the part of IPv6 that is assigned for routing. IPv6 addresses that stand for an IPv4 address are outside
// this part, except for 6to4. special contains 6to4.
var public6 = netip.MustParsePrefix("2000::/3")

// special are networks that contain no server of the public Internet, according to IANA's registries of special-purpose
// addresses.
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

// Permit returns nil if webhooks may send to the address a. secure says that they use TLS.
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

// CheckURL returns an error if nothing can be sent to the URL text. It does not resolve names. A name is resolved for
// each connection, and its address is checked then.
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

// dialer returns a dialer that connects only to permitted addresses. It checks the address that is dialled, after the
// name is resolved. So a name cannot resolve to another address after the check.
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

// connectTimeout bounds the time to connect. It also bounds the TLS handshake.
const connectTimeout = 5 * time.Second
