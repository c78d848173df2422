package limit

import (
	"net"
	"net/netip"
	"testing"

	"github.com/valyala/fasthttp"
)

func TestProxies_ForwardedForIsBelievedOfTrustedProxiesAlone(t *testing.T) {
	loopback := Proxies{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("10.0.0.0/8")}
	for name, tc := range map[string]struct {
		trusted     Proxies
		first, next string // the X-Forwarded-For headers of two requests
		same        bool   // whether both requests have the same Address
	}{
		"no proxy is trusted":         {nil, "192.0.2.1", "192.0.2.2", true},
		"two clients":                 {loopback, "192.0.2.1", "192.0.2.2", false},
		"one client":                  {loopback, "192.0.2.1", "192.0.2.1", true},
		"a client that makes it up":   {loopback, "198.51.100.1, 192.0.2.1", "198.51.100.2, 192.0.2.1", true},
		"one that names a proxy":      {loopback, "10.0.0.9, 192.0.2.1", "10.0.0.8, 192.0.2.1", true},
		"two proxies":                 {loopback, "192.0.2.1, 10.0.0.1", "192.0.2.1, 10.0.0.2", true},
		"two clients, two proxies":    {loopback, "192.0.2.1, 10.0.0.1", "192.0.2.2, 10.0.0.1", false},
		"junk left of the client":     {loopback, "junk, 192.0.2.1", "more junk, 192.0.2.1", true},
		"junk alone is the proxy's":   {loopback, "junk", "other junk", true},
		"with ports":                  {loopback, "192.0.2.1:1111", "192.0.2.1:2222", true},
		"one /64":                     {loopback, "2001:db8::1", "2001:db8::2", true},
		"two /64":                     {loopback, "2001:db8::1", "2001:db8:0:1::1", false},
		"an IPv4 address as IPv6":     {loopback, "192.0.2.1", "::ffff:192.0.2.1", true},
		"an IPv6 address with a port": {loopback, "[2001:db8::1]:1", "[2001:db8::1]:2", true},
		"in brackets alone":           {loopback, "[2001:db8::1]", "[2001:db8:1::1]", false},
		"a zone tells none apart":     {loopback, "fe80::1%a", "fe80::1%b", true},
	} {
		t.Run(name, func(t *testing.T) {
			of := func(forwarded string) Address {
				var ctx fasthttp.RequestCtx
				ctx.Init(new(fasthttp.Request), &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}, nil)
				ctx.Request.Header.Set("X-Forwarded-For", forwarded)
				return AddressOf(tc.trusted.Client(&ctx))
			}
			if got := of(tc.first) == of(tc.next); got != tc.same {
				t.Errorf("%q and %q are of one address: %v, want %v", tc.first, tc.next, got, tc.same)
			}
		})
	}
}
