package wire

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// Slack is the longest time by which a connection may exceed its timeout.
	Slack = 100 * time.Millisecond
	// If a connection is closed before its request is fully read, the kernel resets it. The
	// client might then never read the answer that explains the failure. So Close first reads the
	// rest of the request, within these bounds.
	lingerTime  = time.Second
	lingerBytes = 1 << 20
)

// Conn is a connection of a listener that [Listen] returned. Close frees the connection's slot in
// the listener.
type Conn struct {
	net.Conn
	release func()
	once    sync.Once
	unread  atomic.Bool
	// began is called once, after the first bytes have been read. Only Read uses this field.
	began func()
	// waits is called before each read of the connection, unless it is nil. Only the goroutine that reads uses this
	// field.
	waits func()
	lazyDeadlines
}

// LeaveUnread makes Close read the rest of a request before it closes the connection.
func (c *Conn) LeaveUnread() { c.unread.Store(true) }

// Read implements net.Conn.
func (c *Conn) Read(p []byte) (int, error) {
	if c.waits != nil {
		c.waits()
	}
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

// Close closes the connection. After LeaveUnread it first reads the rest of the request.
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
	// The connection is closed next, so it does not matter how the copy ends.
	_, _ = io.CopyN(io.Discard, c.Conn, lingerBytes)
}

// lazyDeadlines reduces calls that set a connection's deadlines. Fasthttp sets three deadlines
// for every request, and each call costs half as much as decoding an intent. The first deadline
// is for the wait for a request. The second is for reading the rest of the request, which has
// mostly arrived already. The third is for writing the answer. lazyDeadlines keeps the deadline
// in force if it is between the new deadline and Slack later. It applies a read deadline only
// when the connection is read. So a connection may exceed its timeout by Slack.
type lazyDeadlines struct {
	// asked is the read deadline that the server has set, in nanoseconds since 1970. 0 means
	// none.
	asked atomic.Int64
	// reads and writes are the deadlines in force, in the same unit.
	reads, writes atomic.Int64
}

// applyReadDeadline applies d.asked to c.
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

// nanoseconds converts t to the unit of lazyDeadlines.
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

// SetWriteDeadline implements net.Conn. It may be called during a Write. On a closed connection it has no
// effect: fasthttp takes an error for a bug and panics, which would end the process. The next Write fails.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	err := setDeadline(&c.writes, nanoseconds(t), c.Conn.SetWriteDeadline)
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// DropPassed removes a deadline for writing that has passed. Fasthttp sets none before it answers 100 or refuses a
// request that it cannot read, so the one of the answer before would hold. Nothing may be written meanwhile.
func (c *Conn) DropPassed() {
	if at := c.writes.Load(); at != 0 && at < time.Now().UnixNano() {
		_ = c.SetWriteDeadline(time.Time{}) // if it fails, so does the write
	}
}

// SetDeadline implements net.Conn.
func (c *Conn) SetDeadline(t time.Time) error {
	_ = c.SetReadDeadline(t) // it never fails
	return c.SetWriteDeadline(t)
}
