package api

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// acceptRetry is how long to wait when the process is out of descriptors.
	acceptRetry = 50 * time.Millisecond
	// A connection that is closed over an unread request is drained within
	// these bounds first. Otherwise the kernel would reset it, and the answer
	// that says why might never be read.
	lingerTime  = time.Second
	lingerBytes = 1 << 20
	// lastCall is how long a connection may take to begin its first request after the
	// server has begun to stop.
	lastCall = 500 * time.Millisecond
)

// limitListener bounds the open connections. Further connections wait in the kernel's
// backlog; those of an address with too many are closed. Temporary errors of Accept do
// not end it. It may be closed more than once.
type limitListener struct {
	net.Listener
	// enter counts a connection until leave is called, or returns false if its address has
	// too many.
	enter     func(net.Conn) (leave func(), ok bool)
	slots     chan struct{}
	closed    chan struct{}
	closeOnce func() error

	mu    sync.Mutex
	fresh map[*conn]struct{} // connections that have sent nothing yet
}

func newLimitListener(ln net.Listener, maxConns int, enter func(net.Conn) (leave func(), ok bool)) *limitListener {
	l := &limitListener{Listener: ln, enter: enter, slots: make(chan struct{}, maxConns),
		closed: make(chan struct{}), fresh: make(map[*conn]struct{})}
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
func (l *limitListener) take(c net.Conn, leave func()) *conn {
	taken := &conn{Conn: c}
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

// passing reports whether accepting may work again soon.
func passing(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ECONNABORTED)
}

// conn gives its slot back when it is closed.
type conn struct {
	net.Conn
	release func()
	once    sync.Once
	unread  atomic.Bool
	// began is called when something has been read, once. It is the reader's alone.
	began func()
	lazyDeadlines
}

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	if err := c.applyReadDeadline(c.Conn); err != nil {
		return 0, err
	}
	n, err := c.Conn.Read(p)
	if n > 0 && c.began != nil {
		c.began()
		c.began = nil
	}
	return n, err
}

// Close closes the connection, after draining it if it was left unread.
func (c *conn) Close() error {
	var err error
	c.once.Do(func() {
		if c.unread.Load() {
			c.drain()
		}
		err = c.Conn.Close()
		c.release()
	})
	return err
}

func (c *conn) drain() {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil || c.Conn.SetReadDeadline(time.Now().Add(lingerTime)) != nil {
		return
	}
	// Whether it ends by EOF, time or size, the connection is closed next.
	_, _ = io.CopyN(io.Discard, c.Conn, lingerBytes)
}
