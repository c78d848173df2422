package api

import (
	"context"
	"sync/atomic"
	"time"
)

// deadlines hands out request contexts with a timeout. Requests that begin within windowWidth share
// one context. A context and a timer for each request would cost more than looking up the policy.
type deadlines struct {
	base    context.Context // ends when the shutdown's time is over
	timeout time.Duration
	current atomic.Pointer[window]
}

// window is the context that requests share if they begin in [start, start+width).
type window struct {
	ctx   context.Context
	start time.Time
}

// windowWidth is the longest time by which a request may run longer than its timeout.
const windowWidth = 100 * time.Millisecond

// context returns a context whose deadline is between timeout and timeout+windowWidth after now.
func (d *deadlines) context(now time.Time) context.Context {
	w := d.current.Load()
	if w != nil && now.Sub(w.start) < windowWidth && w.ctx.Err() == nil {
		return w.ctx
	}
	ctx, cancel := context.WithTimeout(d.base, d.timeout+windowWidth)
	context.AfterFunc(ctx, cancel) // requests share ctx, so no request may cancel it
	d.current.Store(&window{ctx, now})
	return ctx
}
