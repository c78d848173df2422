package api

import (
	"errors"
	"net"
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

func TestLimitListener_SurvivesAShortageOfDescriptors(t *testing.T) {
	inner := &scriptedListener{accepts: make(chan func() (net.Conn, error), 3)}
	ours, theirs := net.Pipe()
	defer theirs.Close()
	for _, err := range []error{syscall.EMFILE, &net.OpError{Op: "accept", Err: syscall.ECONNABORTED}} {
		inner.accepts <- func() (net.Conn, error) { return nil, err }
	}
	inner.accepts <- func() (net.Conn, error) { return ours, nil }
	c, err := newLimitListener(inner, 1).Accept()
	if err != nil {
		t.Fatalf("Accept = %v, want a connection", err)
	}
	must(t, c.Close())
}

func TestLimitListener_PassesOnOtherErrors(t *testing.T) {
	inner := &scriptedListener{accepts: make(chan func() (net.Conn, error), 2)}
	l := newLimitListener(inner, 1)
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
	l := newLimitListener(ln, 1)
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
