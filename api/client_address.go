package api

import (
	"bytes"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"
)

// address is whom a request is counted against that has no good credential: an
// IPv4 address or the /64 of an IPv6 address, which is what one customer of a
// provider gets. It has no pointer and so costs nothing to look up.
type address [16]byte

func addressOf(a netip.Addr) address {
	a = a.Unmap()
	if a.Is6() {
		if p, err := a.Prefix(64); err == nil {
			a = p.Addr()
		}
	}
	if !a.IsValid() {
		return address{} // shared by all that cannot be told apart
	}
	return a.As16()
}

// proxies are the networks whose X-Forwarded-For is believed.
type proxies []netip.Prefix

func (p proxies) trust(a netip.Addr) bool {
	return slices.ContainsFunc(p, func(network netip.Prefix) bool { return network.Contains(a) })
}

// client returns the address that a request is from: the socket's, or behind a
// trusted proxy the right-most one in X-Forwarded-For that is not a trusted
// proxy's itself. Whatever stands left of that was written by the client.
func (p proxies) client(ctx *fasthttp.RequestCtx) netip.Addr {
	at := socketAddr(ctx.RemoteAddr())
	if !p.trust(at) {
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
			if at = a; !p.trust(at) {
				return at
			}
		}
	}
	return at
}

// hopAddr reads an entry of X-Forwarded-For: an address, some write its port or
// an IPv6 address in brackets.
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

func socketAddr(a net.Addr) netip.Addr {
	if tcp, ok := a.(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr().Unmap().WithZone("")
	}
	return netip.Addr{}
}

// enter counts a connection for its address, so that none takes all connections of the
// server. Those of trusted proxies are their callers'.
func (s *Server) enter(c net.Conn) (leave func(), ok bool) {
	at := socketAddr(c.RemoteAddr())
	if s.throttle.proxies.trust(at) {
		return func() {}, true
	}
	if leave, ok = s.connections.begin(addressOf(at)); !ok {
		s.metrics.turnedAway.Inc()
	}
	return leave, ok
}
