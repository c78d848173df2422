package api

import (
	"context"
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
