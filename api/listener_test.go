package api

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"time"
)

// scriptedListener returns what it is told to.
type scriptedListener struct {
	net.Listener
	accepts chan func() (net.Conn, error)
}

// Accept implements net.Listener.
func (l *scriptedListener) Accept() (net.Conn, error) { return (<-l.accepts)() }

// Close implements net.Listener.
func (l *scriptedListener) Close() error { return nil }

// roomy lets every connection enter.
func roomy(net.Conn) (leave func(), ok bool) { return func() {}, true }

func TestLimitListener_SurvivesAShortageOfDescriptors(t *testing.T) {
	inner := &scriptedListener{accepts: make(chan func() (net.Conn, error), 3)}
	ours, theirs := net.Pipe()
	defer theirs.Close()
	for _, err := range []error{syscall.EMFILE, &net.OpError{Op: "accept", Err: syscall.ECONNABORTED}} {
		inner.accepts <- func() (net.Conn, error) { return nil, err }
	}
	inner.accepts <- func() (net.Conn, error) { return ours, nil }
	c, err := newLimitListener(inner, 1, roomy).Accept()
	if err != nil {
		t.Fatalf("Accept = %v, want a connection", err)
	}
	must(t, c.Close())
}

func TestLimitListener_PassesOnOtherErrors(t *testing.T) {
	inner := &scriptedListener{accepts: make(chan func() (net.Conn, error), 2)}
	l := newLimitListener(inner, 1, roomy)
	for range 2 { // a failed accept holds no slot
		inner.accepts <- func() (net.Conn, error) { return nil, syscall.EINVAL }
		if _, err := l.Accept(); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("Accept = %v, want EINVAL", err)
		}
	}
}

func TestLimitListener_CloseEndsTheWaitForASlot(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	l := newLimitListener(ln, 1, roomy)
	client, err := net.Dial("tcp", ln.Addr().String())
	must(t, err)
	defer client.Close()
	c, err := l.Accept()
	must(t, err)
	waiting := make(chan error)
	go func() {
		_, err := l.Accept()
		waiting <- err
	}()
	must(t, l.Close())
	if err := <-waiting; !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept while closing = %v, want net.ErrClosed", err)
	}
	must(t, l.Close())
	must(t, c.Close())
	must(t, c.Close())
}

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
	for h.raw("GET /health HTTP/1.1\r\nHost: x\r\n\r\n").status != http.StatusOK { // until their end is noticed
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

// peer is a connection that is from somewhere.
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
