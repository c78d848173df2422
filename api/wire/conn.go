package wire

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// Slack is the longest time by which a connection may exceed its timeout.
	Slack = 100 * time.Millisecond
	// A connection that is closed while a request is not fully read is drained first, within these bounds. Otherwise
	// the kernel would reset it. The client might then never read the answer that says why its request failed.
	lingerTime  = time.Second
	lingerBytes = 1 << 20
)

// Conn is a connection of a listener that [Listen] returned. When it is closed, it gives its slot back.
type Conn struct {
	net.Conn
	release func()
	once    sync.Once
	unread  atomic.Bool
	// began is called once, when the first bytes have been read. Only the reader uses this field.
	began func()
	lazyDeadlines
}

// LeaveUnread makes Close drain the rest of a request that is not read to its end.
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

// Close closes the connection. After LeaveUnread it drains the connection first.
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
	// The connection is closed next, whether the copy ends by EOF, time or size.
	_, _ = io.CopyN(io.Discard, c.Conn, lingerBytes)
}

// lazyDeadlines are the deadlines of a connection. Fasthttp sets three deadlines for every request, and each call costs
// half as much as decoding an intent. The first is for the wait for the request. The second is for reading the rest of
// it, which has mostly arrived already. The third is for writing the answer. lazyDeadlines passes a deadline to the
// connection only if it makes a difference. The reader's deadline is passed on when the reader reads. A deadline is not
// passed on if the one in force is at most Slack later. So a connection may exceed its timeout by Slack.
type lazyDeadlines struct {
	// asked is the reader's deadline in nanoseconds since 1970, or 0 for none.
	asked atomic.Int64
	// reads and writes are the deadlines in force.
	reads, writes atomic.Int64
}

// applyReadDeadline passes the deadline that was asked for to the connection.
func (d *lazyDeadlines) applyReadDeadline(c net.Conn) error {
	return setDeadline(&d.reads, d.asked.Load(), c.SetReadDeadline)
}

// setDeadline sets a deadline unless the one in force is near enough.
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

// nanoseconds returns a deadline in the form that lazyDeadlines stores.
func nanoseconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// SetReadDeadline implements net.Conn. It applies to the next Read and does not end a Read that is waiting.
func (c *Conn) SetReadDeadline(t time.Time) error {
	c.asked.Store(nanoseconds(t))
	return nil
}

// SetWriteDeadline implements net.Conn. It may be called during a Write.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	return setDeadline(&c.writes, nanoseconds(t), c.Conn.SetWriteDeadline)
}

// SetDeadline implements net.Conn.
func (c *Conn) SetDeadline(t time.Time) error {
	_ = c.SetReadDeadline(t) // it never fails
	return c.SetWriteDeadline(t)
}
