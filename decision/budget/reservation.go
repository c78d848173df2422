package budget

import (
	"context"
	"slices"
)

// reservation has the amounts that an intent reserves while it is being decided. An intent that
// was sent several times takes one place.
type reservation struct {
	cells []cell
	by    int // the number of readings that share the reservation
	// committed is set once the allowance of the intent is stored or may be stored.
	committed bool
}

type intentKey struct{ org, intent string }

// has reports whether h contains what c adds.
func (h *reservation) has(c *cell) bool {
	return h != nil && slices.ContainsFunc(h.cells, func(o cell) bool { return o.key == c.key && o.amount == c.amount })
}

// snapshot sets the before count of each cell. It leaves out the reservation of the intent
// itself. It returns false if a window was dropped in the meantime.
func (r *Reading) snapshot() bool {
	k := r.counters
	k.leases.Lock()
	defer k.leases.Unlock()
	r.own = k.reserved[r.intent]
	for i := range r.cells {
		c := &r.cells[i]
		if c.window == nil {
			if k.readsLocked(c) == c.key {
				return false
			}
			continue
		}
		if k.window(c.key) != c.window || !c.window.covers(c.bucket) {
			return false
		}
		c.before, c.changes = c.window.total(c.bucket), c.window.changes
		if r.own.has(c) {
			c.before -= c.amount
		}
	}
	return true
}

// Reserve counts the intent as allowed. It returns false if a counter has changed since r read
// it. In that case nothing is counted, and the intent must be evaluated again. If Reserve
// returns an error, the intent must not be allowed.
func (r *Reading) Reserve(ctx context.Context) (bool, error) {
	if len(r.cells) == 0 {
		return true, nil
	}
	if ok, err := r.claim(ctx); !ok {
		return false, err
	}
	k := r.counters
	k.leases.Lock()
	defer k.leases.Unlock()
	if !r.reserveLocked() {
		r.unclaimLocked(len(r.cells))
		return false, nil
	}
	return true, nil
}

// reserveLocked does the rest of Reserve after the places of shared windows are claimed.
func (r *Reading) reserveLocked() bool {
	k := r.counters
	if k.reserved[r.intent] != r.own {
		return false
	}
	for i := range r.cells {
		c := &r.cells[i]
		if c.window == nil {
			if k.readsLocked(c) == c.key { // its count is known now
				return false
			}
			continue
		}
		if c.window.shared == nil && (k.window(c.key) != c.window || c.window.changes != c.changes) {
			return false
		}
	}
	h := r.own
	if h == nil {
		h = &reservation{cells: make([]cell, 0, len(r.cells))}
		k.reserved[r.intent], r.own = h, h
	}
	for i := range r.cells {
		if c := &r.cells[i]; !h.has(c) { // otherwise another request with the same intent has reserved it
			switch {
			case c.window == nil:
				c.change = &change{key: c.key, n: c.amount, part: c.bucket, over: r.at.Add(2 * c.counter.Window)}
				k.prepareLocked(c.change)
			case c.window.shared == nil:
				c.window.add(c.bucket, c.amount)
				c.window.held++
			}
			h.cells = append(h.cells, *c)
		}
	}
	h.by++
	r.reserved = true
	return true
}

// Commit ends the reservation of an allowance that is stored or may be stored. It does nothing if
// r is nil or reserves nothing.
func (r *Reading) Commit() { r.end(true) }

// Release gives the reservation back, because the allowance is not stored. It does nothing if r
// is nil or reserves nothing.
func (r *Reading) Release() { r.end(false) }

func (r *Reading) end(committed bool) {
	if r == nil || !r.reserved {
		return
	}
	r.reserved = false
	k, h := r.counters, r.own
	k.leases.Lock()
	defer k.leases.Unlock()
	h.by--
	h.committed = h.committed || committed
	if h.by > 0 {
		return
	}
	delete(k.reserved, r.intent)
	for i := range h.cells {
		c := &h.cells[i]
		if c.change != nil {
			n := int64(0)
			if !h.committed {
				n = -c.amount
			}
			k.endLocked(c.change, n)
			continue
		}
		if c.window.shared != nil && !h.committed {
			k.unclaimLocked(c)
			continue
		}
		c.window.held--
		if !h.committed {
			c.window.add(c.bucket, -c.amount)
		}
	}
}
