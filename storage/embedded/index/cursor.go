package index

import (
	"cmp"
	"math"
	"slices"
	"sort"
)

// Cursor yields the entries of a name in order, or in reverse. It must not be used concurrently.
type Cursor struct {
	x     *Tables
	name  Name
	back  bool
	parts []partCursor
}

// partCursor is the place of a cursor in a part.
type partCursor struct {
	part int // its number
	p    *part
	span span
	// buf has the entries from start on, in the direction of the cursor. What follows it is not before from. Nothing
	// follows it if done is set.
	buf         []Entry
	i           int
	start, from Entry
	done, read  bool
}

// Cursor returns a cursor of the entries with an At from least to greatest. Seek must be called first.
func (x *Tables) Cursor(name Name, back bool, least, greatest uint64) *Cursor {
	c := &Cursor{x: x, name: name, back: back}
	for i, p := range x.all() {
		s := p.span(name.class())
		if s = (span{max(s.least, least), min(s.greatest, greatest)}); s.least <= s.greatest {
			c.parts = append(c.parts, partCursor{part: i, p: p, span: s})
		}
	}
	return c
}

// Skip leaves out the entries with a lesser At in the segments whose frames are all up to last.
func (c *Cursor) Skip(at, last uint64) {
	for i := range c.parts {
		p := &c.parts[i]
		if next := p.part + 1; next < len(c.x.all()) && c.x.all()[next].first <= last+1 {
			p.span.least = max(p.span.least, at)
		}
	}
}

// Seek moves to the first entry with this At, or to the next in the cursor's direction.
func (c *Cursor) Seek(at uint64) {
	for i := range c.parts {
		p, to := &c.parts[i], Entry{Name: c.name, At: at}
		if c.back {
			to.Frame, to.Item = math.MaxUint64, math.MaxUint32
		}
		switch {
		case c.back && at > p.span.greatest:
			to.At = p.span.greatest
		case !c.back && at < p.span.least:
			to.At = p.span.least
		}
		n := len(p.buf)
		if p.read && c.compare(p.start, to) <= 0 && (p.done || n > 0 && c.compare(p.buf[n-1], to) >= 0) {
			p.i = sort.Search(n, func(i int) bool { return c.compare(p.buf[i], to) >= 0 })
			continue
		}
		p.buf, p.i, p.start, p.from, p.read = p.buf[:0], 0, to, to, false
		p.done = to.At < p.span.least || to.At > p.span.greatest
	}
}

// compare compares entries of the cursor's name in its direction.
func (c *Cursor) compare(a, b Entry) int {
	d := cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Frame, b.Frame), cmp.Compare(a.Item, b.Item))
	if c.back {
		return -d
	}
	return d
}

// Next returns the next entry. ok is false at the end.
func (c *Cursor) Next() (e Entry, ok bool, err error) {
	p, err := c.next()
	if p == nil || err != nil {
		return e, false, err
	}
	p.i++
	return p.buf[p.i-1], true, nil
}

// next returns the place of the next entry, or nil.
func (c *Cursor) next() (*partCursor, error) {
	for {
		var best *partCursor
		var least Entry
		for i := range c.parts {
			p := &c.parts[i]
			e := p.from
			switch {
			case p.i < len(p.buf):
				e = p.buf[p.i]
			case p.done:
				continue
			}
			if best == nil || c.compare(e, least) < 0 {
				best, least = p, e
			}
		}
		if best == nil {
			return nil, c.x.c.Health.Stopped()
		}
		if best.i < len(best.buf) {
			return best, nil
		}
		if err := c.fill(best); err != nil {
			return nil, c.x.c.Health.Read(err)
		}
	}
}

// fill reads the entries that follow.
func (c *Cursor) fill(p *partCursor) (err error) {
	if p.i = 0; p.read {
		p.start = p.from
	}
	p.read = true
	p.buf, err = p.p.near(p.from, c.back, p.buf[:0])
	if err != nil {
		if err = c.x.mend(p.part, p.p, err); err == nil {
			p.buf, err = p.p.near(p.from, c.back, nil)
		}
	}
	if err != nil {
		return err
	}
	n := sort.Search(len(p.buf), func(i int) bool {
		return c.back && p.buf[i].At < p.span.least || !c.back && p.buf[i].At > p.span.greatest
	})
	p.done, p.buf = n < len(p.buf), p.buf[:n]
	if len(p.buf) == 0 {
		p.done = true
		return nil
	}
	p.from = p.buf[len(p.buf)-1]
	switch {
	case !c.back:
		p.from.Item++
	case p.from.Item > 0:
		p.from.Item--
	default:
		p.from.Frame, p.from.Item = p.from.Frame-1, math.MaxUint32
	}
	return nil
}

// Group appends to dst the entries with the next At, and moves behind them. They are in the order of
// the frames. It appends none at the end.
func (c *Cursor) Group(dst []Entry) ([]Entry, error) {
	start := len(dst)
	for {
		p, err := c.next()
		if p == nil || err != nil || len(dst) > start && dst[start].At != p.buf[p.i].At {
			if c.back {
				slices.Reverse(dst[start:])
			}
			return dst, err
		}
		dst = append(dst, p.buf[p.i])
		p.i++
	}
}

// Find appends to dst the entries with this At, in the order of the frames.
func (c *Cursor) Find(at uint64, dst []Entry) ([]Entry, error) {
	c.Seek(at)
	if p, err := c.next(); p == nil || err != nil || p.buf[p.i].At != at {
		return dst, err
	}
	return c.Group(dst)
}
