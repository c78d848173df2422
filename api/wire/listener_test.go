package wire

import (
	"errors"
	"net"
	"syscall"
	"testing"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// scriptedListener returns scripted connections and errors.
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
	c, err := Listen(inner, 1, roomy).Accept()
	if err != nil {
		t.Fatalf("Accept = %v, want a connection", err)
	}
	must(t, c.Close())
}

func TestLimitListener_PassesOnOtherErrors(t *testing.T) {
	inner := &scriptedListener{accepts: make(chan func() (net.Conn, error), 2)}
	l := Listen(inner, 1, roomy)
	for range 2 { // a failed Accept keeps no slot
		inner.accepts <- func() (net.Conn, error) { return nil, syscall.EINVAL }
		if _, err := l.Accept(); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("Accept = %v, want EINVAL", err)
		}
	}
}

func TestLimitListener_CloseEndsTheWaitForASlot(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	l := Listen(ln, 1, roomy)
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
