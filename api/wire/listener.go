// Package wire has the connections below an HTTP server. Its listener bounds the number of
// connections. Its connections make few system calls. It also refuses requests whose end two
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
	// acceptRetry is the wait before another Accept when the process is out of file descriptors.
	acceptRetry = 50 * time.Millisecond
	// lastCall is the time that an idle new connection has to begin its first request after the
	// server has begun to stop.
	lastCall = 500 * time.Millisecond
)

// limitListener bounds the number of open connections. Further connections wait in the kernel's
// backlog. If one address has too many connections, its further connections are closed. Temporary
// errors of Accept do not end the listener. It may be closed more than once.
type limitListener struct {
	net.Listener
	enter     func(net.Conn) (leave func(), ok bool)
	slots     chan struct{}
	closed    chan struct{}
	closeOnce func() error

	mu    sync.Mutex
	fresh map[*Conn]struct{} // connections that have sent nothing yet
}

// Listen returns a listener that accepts connections of ln as [*Conn]. most bounds the number of
// open connections. enter counts a connection for its address until leave is called. ok is false
// if the address has too many connections.
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

// hurry closes the connections that send nothing within lastCall. Clients open connections in
// advance, and a stop must not wait for requests that never come.
func (l *limitListener) hurry() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.fresh {
		_ = c.Conn.SetReadDeadline(time.Now().Add(lastCall)) // it fails if the connection is closed
	}
}

// take wraps an accepted connection. Closing the result calls leave.
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

// Close makes Accept fail from now on.
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
				_ = c.Close() // an answer would cost too much
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

// passing reports whether Accept may succeed soon after err.
func passing(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ECONNABORTED)
}
