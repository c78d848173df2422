package budget

import (
	"context"
	"slices"
)

// hold is what an intent has reserved while it is being decided, however many times it was
// sent: it takes one place.
type hold struct {
	cells []cell
	by    int // readings
	// stands is set once the decision that it was reserved for stands, or may stand.
	stands bool
}

type intentKey struct{ org, intent string }

// holds reports whether h is of what c adds.
func (h *hold) holds(c *cell) bool {
	return h != nil && slices.ContainsFunc(h.cells, func(o cell) bool { return o.key == c.key && o.amount == c.amount })
}

// look takes what the windows have come to without what the intent itself holds. It is
// false where a window was forgotten meanwhile.
func (r *Reading) look() bool {
	k := r.counters
	k.leases.Lock()
	defer k.leases.Unlock()
	r.hold = k.holds[r.intent]
	for i := range r.cells {
		c := &r.cells[i]
		if k.window(c.key) != c.window {
			return false
		}
		c.before, c.changes = c.window.total(), c.window.changes
		if r.hold.holds(c) {
			c.before -= c.amount
		}
	}
	return true
}

// Reserve counts the intent as allowed, unless one of the counters has changed since it
// was read: then nothing is counted and the intent must be evaluated again. An error means
// that it is not known, and that nothing may be allowed.
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

// reserveLocked is Reserve where what has to be claimed is.
func (r *Reading) reserveLocked() bool {
	k := r.counters
	if k.holds[r.intent] != r.hold {
		return false
	}
	for i := range r.cells {
		c := &r.cells[i]
		if c.window.shared == nil && (k.window(c.key) != c.window || c.window.changes != c.changes) {
			return false
		}
	}
	h := r.hold
	if h == nil {
		h = &hold{cells: make([]cell, 0, len(r.cells))}
		k.holds[r.intent], r.hold = h, h
	}
	for i := range r.cells {
		if c := &r.cells[i]; !h.holds(c) { // otherwise it is taken; another body is a conflict
			if c.window.shared == nil {
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

// Commit says that the decision which was reserved for stands, or may stand. A nil Reading,
// and one that reserves nothing, is left as it is.
func (r *Reading) Commit() { r.end(true) }

// Release gives back what was reserved, if anything is: no such decision stands.
func (r *Reading) Release() { r.end(false) }

func (r *Reading) end(stands bool) {
	if r == nil || !r.reserved {
		return
	}
	r.reserved = false
	k, h := r.counters, r.hold
	k.leases.Lock()
	defer k.leases.Unlock()
	h.by--
	h.stands = h.stands || stands
	if h.by > 0 {
		return
	}
	delete(k.holds, r.intent)
	for i := range h.cells {
		c := &h.cells[i]
		if c.window.shared != nil && !h.stands {
			k.unclaimLocked(c)
			continue
		}
		c.window.held--
		if !h.stands {
			c.window.add(c.bucket, -c.amount)
		}
	}
}
