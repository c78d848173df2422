package limit

import (
	"bytes"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"
)

// Address identifies the sender of requests without an accepted credential. It is an IPv4 address
// or the /64 of an IPv6 address, because a provider gives one customer a /64. It has no pointer, so
// looking it up allocates nothing.
type Address [16]byte

// AddressOf returns the Address of a.
func AddressOf(a netip.Addr) Address {
	a = a.Unmap()
	if a.Is6() {
		if p, err := a.Prefix(64); err == nil {
			a = p.Addr()
		}
	}
	if !a.IsValid() {
		return Address{} // all unknown addresses share this key
	}
	return a.As16()
}

// Proxies are the networks of trusted proxies. The X-Forwarded-For header of such a proxy is
// believed.
type Proxies []netip.Prefix

// Trust reports whether a is in one of the networks.
func (p Proxies) Trust(a netip.Addr) bool {
	return slices.ContainsFunc(p, func(network netip.Prefix) bool { return network.Contains(a) })
}

// Client returns the address from which a request comes. It is the address of the socket, unless
// the socket is a trusted proxy's. Behind a trusted proxy it is the right-most address in
// X-Forwarded-For that is not a trusted proxy. Any entry further left may be forged by the client.
func (p Proxies) Client(ctx *fasthttp.RequestCtx) netip.Addr {
	at := Peer(ctx.RemoteAddr())
	if !p.Trust(at) {
		return at
	}
	lines := ctx.Request.Header.PeekAll(fasthttp.HeaderXForwardedFor)
	for i := len(lines) - 1; i >= 0; i-- {
		for line := lines[i]; len(line) > 0; {
			var hop []byte
			if comma := bytes.LastIndexByte(line, ','); comma >= 0 {
				line, hop = line[:comma], line[comma+1:]
			} else {
				line, hop = nil, line
			}
			a, ok := hopAddr(string(bytes.TrimSpace(hop)))
			if !ok {
				return at
			}
			if at = a; !p.Trust(at) {
				return at
			}
		}
	}
	return at
}

// hopAddr parses an entry of X-Forwarded-For. The entry is an address. Some proxies add a port, or
// put an IPv6 address in brackets.
func hopAddr(s string) (netip.Addr, bool) {
	bare := s
	if strings.HasPrefix(s, "[") && strings.HasSuffix(s, "]") {
		bare = s[1 : len(s)-1]
	}
	if a, err := netip.ParseAddr(bare); err == nil {
		return a.Unmap().WithZone(""), true
	}
	ap, err := netip.ParseAddrPort(s)
	return ap.Addr().Unmap().WithZone(""), err == nil
}

// Peer returns the address of the other end of a connection, or the zero Addr if it is not TCP.
func Peer(a net.Addr) netip.Addr {
	if tcp, ok := a.(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr().Unmap().WithZone("")
	}
	return netip.Addr{}
}
