package wire

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// Slack is how much longer than its timeout a connection may take.
	Slack = 100 * time.Millisecond
	// A connection that is closed over an unread request is drained within these bounds
	// first. Otherwise the kernel would reset it, and the answer that says why might
	// never be read.
	lingerTime  = time.Second
	lingerBytes = 1 << 20
)

// Conn is a connection of a listener of [Listen]. It gives its slot back when it is closed.
type Conn struct {
	net.Conn
	release func()
	once    sync.Once
	unread  atomic.Bool
	// began is called when something has been read, once. It is the reader's alone.
	began func()
	lazyDeadlines
}

// LeaveUnread has Close drain what is left of a request that is not read to its end.
func (c *Conn) LeaveUnread() { c.unread.Store(true) }

// Read implements net.Conn.
func (c *Conn) Read(p []byte) (int, error) {
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
func (c *Conn) Close() error {
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

func (c *Conn) drain() {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil || c.Conn.SetReadDeadline(time.Now().Add(lingerTime)) != nil {
		return
	}
	// Whether it ends by EOF, time or size, the connection is closed next.
	_, _ = io.CopyN(io.Discard, c.Conn, lingerBytes)
}

// lazyDeadlines are the deadlines of a connection. Fasthttp sets three for every request,
// and each costs what decoding half an intent does: one to wait for the request, one to read
// the rest of it, which is mostly there already, and one to write the answer. They reach the
// connection only where they make a difference: the reader's when it reads, and none that is
// at most Slack before the one that stands. So a connection may take that much longer
// than its timeout.
type lazyDeadlines struct {
	// asked is the reader's deadline, in nanoseconds since 1970, 0 for none.
	asked atomic.Int64
	// reads and writes are those that stand.
	reads, writes atomic.Int64
}

// applyReadDeadline has the connection keep the deadline that was asked for.
func (d *lazyDeadlines) applyReadDeadline(c net.Conn) error {
	return setDeadline(&d.reads, d.asked.Load(), c.SetReadDeadline)
}

// setDeadline sets a deadline, unless the one that stands will do.
func setDeadline(standing *atomic.Int64, asked int64, set func(time.Time) error) error {
	if late := standing.Load() - asked; asked == 0 && late == 0 || asked > 0 && 0 <= late &&
		late <= int64(Slack) {
		return nil
	}
	var t time.Time
	if asked > 0 {
		asked += int64(Slack)
		t = time.Unix(0, asked)
	}
	standing.Store(asked)
	return set(t)
}

// nanoseconds returns a deadline as lazyDeadlines keeps it.
func nanoseconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// SetReadDeadline implements net.Conn, for the next Read: one that waits is not ended.
func (c *Conn) SetReadDeadline(t time.Time) error {
	c.asked.Store(nanoseconds(t))
	return nil
}

// SetWriteDeadline implements net.Conn. It may be called while something is written.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	return setDeadline(&c.writes, nanoseconds(t), c.Conn.SetWriteDeadline)
}

// SetDeadline implements net.Conn.
func (c *Conn) SetDeadline(t time.Time) error {
	_ = c.SetReadDeadline(t) // it never fails
	return c.SetWriteDeadline(t)
}
