// Package wire is what a server of HTTP stands on: a listener that bounds connections,
// connections that reach the kernel seldom, and the refusal of requests whose end two
// servers may see in different places.
package wire

import (
	"errors"
	"net"
	"sync"
	"syscall"
	"time"
)

const (
	// acceptRetry is how long to wait when the process is out of descriptors.
	acceptRetry = 50 * time.Millisecond
	// lastCall is how long a connection may take to begin its first request after the
	// server has begun to stop.
	lastCall = 500 * time.Millisecond
)

// limitListener bounds the open connections. Further connections wait in the kernel's backlog.
// An address with too many has further connections closed. Temporary errors of Accept do not
// end it. It may be closed more than once.
type limitListener struct {
	net.Listener
	enter     func(net.Conn) (leave func(), ok bool)
	slots     chan struct{}
	closed    chan struct{}
	closeOnce func() error

	mu    sync.Mutex
	fresh map[*Conn]struct{} // connections that have sent nothing yet
}

// Listen returns a listener of at most so many connections of ln, which are [*Conn]. enter
// counts a connection for its address until leave is called, or returns false if the address
// has too many.
func Listen(ln net.Listener, most int, enter func(net.Conn) (leave func(), ok bool)) net.Listener {
	l := &limitListener{Listener: ln, enter: enter, slots: make(chan struct{}, most),
		closed: make(chan struct{}), fresh: make(map[*Conn]struct{})}
	l.closeOnce = sync.OnceValue(func() error {
		close(l.closed)
		err := ln.Close()
		l.hurry()
		return err
	})
	return l
}

// hurry closes the connections that have sent nothing within lastCall: clients open
// spare connections, and stopping must not wait for requests that never come.
func (l *limitListener) hurry() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.fresh {
		_ = c.Conn.SetReadDeadline(time.Now().Add(lastCall)) // it fails for what is closed
	}
}

// take wraps an accepted connection, which counts for its address until leave.
func (l *limitListener) take(c net.Conn, leave func()) *Conn {
	taken := &Conn{Conn: c}
	began := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.fresh, taken)
	}
	taken.began, taken.release = began, func() { began(); leave(); <-l.slots }
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fresh[taken] = struct{}{}
	return taken
}

// Close stops accepting.
func (l *limitListener) Close() error { return l.closeOnce() }

// Accept waits for a free slot, then for a connection.
func (l *limitListener) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	for {
		c, err := l.Listener.Accept()
		if err == nil {
			leave, ok := l.enter(c)
			if !ok {
				_ = c.Close() // it is not worth more
				continue
			}
			return l.take(c, leave), nil
		}
		if !passing(err) {
			<-l.slots
			return nil, err
		}
		select {
		case <-time.After(acceptRetry):
		case <-l.closed:
			<-l.slots
			return nil, net.ErrClosed
		}
	}
}

// passing reports whether accepting may work again soon.
func passing(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ECONNABORTED)
}
