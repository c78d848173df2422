package api

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"testing"
	"time"
)

func TestLimitListener_OneAddressTakesNoMoreThanItsShare(t *testing.T) {
	h := start(t, func(c *setup) { c.Limits.AddressConnections = 3 })
	hold := make([]net.Conn, 3)
	for i := range hold {
		hold[i] = h.connected()
	}
	extra, err := net.Dial("tcp", h.addr)
	must(t, err)
	defer extra.Close()
	must(t, extra.SetDeadline(time.Now().Add(10*time.Second)))
	if n, err := extra.Read(make([]byte, 1)); n != 0 || err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("Read of a fourth connection = %d bytes, %v, want it closed", n, err)
	}
	for _, c := range hold {
		must(t, c.Close())
	}
	for h.raw("GET /health HTTP/1.1\r\nHost: x\r\n\r\n").status != http.StatusOK { // until those connections are closed
	}
}

// connected returns a connection that the server has accepted.
func (h *harness) connected() net.Conn {
	h.t.Helper()
	c, err := net.Dial("tcp", h.addr)
	must(h.t, err)
	_, err = io.WriteString(c, "GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
	must(h.t, err)
	if r := readReply(h.t, c); r.status != http.StatusOK {
		h.t.Fatalf("GET /health = %d", r.status)
	}
	return c
}

func TestLimitListener_ATrustedProxyHasNoLimit(t *testing.T) {
	o := start(t, func(c *setup) {
		c.Limits.AddressConnections = 1
		c.RateLimits.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	}).server
	for addr, want := range map[string]bool{"10.0.0.1": true, "192.0.2.1": false} {
		c := peer{addr: &net.TCPAddr{IP: net.ParseIP(addr)}}
		leave, ok := o.enter(c)
		_, again := o.enter(c)
		if !ok || again != want {
			t.Errorf("two connections of %s = %v, %v, want the second accepted: %v", addr, ok, again, want)
		}
		leave()
		if _, ok := o.enter(c); !ok {
			t.Errorf("a connection of %s after one ended is refused", addr)
		}
	}
}

// peer is a connection with a given remote address.
type peer struct {
	net.Conn
	addr net.Addr
}

// RemoteAddr implements net.Conn.
func (p peer) RemoteAddr() net.Addr { return p.addr }

func TestDeadlines_AreSharedForAMomentAndEnd(t *testing.T) {
	d := &deadlines{base: t.Context(), timeout: time.Minute}
	now := time.Now()
	a, b := d.context(now), d.context(now.Add(windowWidth-1))
	if a != b {
		t.Error("two contexts within one window, want one")
	}
	if c := d.context(now.Add(windowWidth)); c == a {
		t.Error("one context beyond its window")
	}
	deadline, ok := a.Deadline()
	if until := time.Until(deadline); !ok || until > time.Minute+windowWidth || until < 50*time.Second {
		t.Errorf("deadline in %v, want about a minute", until)
	}
}
