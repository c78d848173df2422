package api

import (
	"context"
	"net"
	"sync/atomic"
	"time"
)

// deadlines hands out contexts that end within a time after the request began.
// Requests of the same moment share one: a context and a timer for each would
// cost more than looking up the policy.
type deadlines struct {
	base    context.Context // ends when the server gives up
	timeout time.Duration
	current atomic.Pointer[window]
}

// window is the context of the requests that begin in [start, start+width).
type window struct {
	ctx   context.Context
	start time.Time
}

// windowWidth is how much later than its timeout a request may end.
const windowWidth = 100 * time.Millisecond

// context returns a context that ends timeout to timeout+windowWidth from now.
func (d *deadlines) context(now time.Time) context.Context {
	w := d.current.Load()
	if w != nil && now.Sub(w.start) < windowWidth && w.ctx.Err() == nil {
		return w.ctx
	}
	ctx, cancel := context.WithTimeout(d.base, d.timeout+windowWidth)
	context.AfterFunc(ctx, cancel) // shared: none of its users may end it
	d.current.Store(&window{ctx, now})
	return ctx
}

// lazyDeadlines are the deadlines of a connection. Fasthttp sets three for every request,
// and each costs what decoding half an intent does: one to wait for the request, one to read
// the rest of it, which is mostly there already, and one to write the answer. They reach the
// connection only where they make a difference: the reader's when it reads, and none that is
// at most windowWidth before the one that stands. So a connection may take that much longer
// than its timeout, as a request may: see [deadlines].
type lazyDeadlines struct {
	// asked is the reader's deadline, in nanoseconds since 1970, 0 for none.
	asked atomic.Int64
	// reads and writes are those that stand.
	reads, writes atomic.Int64
}

// applyReadDeadline has the connection keep the deadline that was asked for.
func (d *lazyDeadlines) applyReadDeadline(c net.Conn) error {
	return stand(&d.reads, d.asked.Load(), c.SetReadDeadline)
}

// stand sets a deadline, unless the one that stands will do.
func stand(standing *atomic.Int64, asked int64, set func(time.Time) error) error {
	if late := standing.Load() - asked; asked == 0 && late == 0 || asked > 0 && 0 <= late &&
		late <= int64(windowWidth) {
		return nil
	}
	var t time.Time
	if asked > 0 {
		asked += int64(windowWidth)
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
func (c *conn) SetReadDeadline(t time.Time) error {
	c.asked.Store(nanoseconds(t))
	return nil
}

// SetWriteDeadline implements net.Conn. It may be called while something is written.
func (c *conn) SetWriteDeadline(t time.Time) error {
	return stand(&c.writes, nanoseconds(t), c.Conn.SetWriteDeadline)
}

// SetDeadline implements net.Conn.
func (c *conn) SetDeadline(t time.Time) error {
	_ = c.SetReadDeadline(t) // it never fails
	return c.SetWriteDeadline(t)
}
