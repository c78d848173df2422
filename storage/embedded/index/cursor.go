package index

import (
	"math"
	"slices"
	"sort"
)

// Cursor yields the entries of a name in order, or in reverse. It must not be used concurrently.
type Cursor struct {
	x     *Tables
	name  Name
	back  bool
	parts []partCursor // in the direction of the cursor, by where their spans begin
	block []byte       // room to read a block
}

// partCursor is the place of a cursor in a part.
type partCursor struct {
	part int // its number
	p    *part
	last uint64 // frame that it can have
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
	last := uint64(math.MaxUint64)
	for i, p := range slices.Backward(x.all()) {
		s := p.span(name.class())
		s = span{max(s.least, least), min(s.greatest, greatest)}
		if s.least <= s.greatest && !p.lacks(x, name) {
			c.parts = append(c.parts, partCursor{part: i, p: p, last: last, span: s})
		}
		last = p.first - 1
	}
	if !back {
		slices.Reverse(c.parts)
	}
	c.sort()
	return c
}

func (c *Cursor) sort() {
	slices.SortStableFunc(c.parts, func(a, b partCursor) int { return c.compare(c.begin(&a), c.begin(&b)) })
}

// first and final return the entries between which all of a part are that have an At.
func (c *Cursor) first(p *partCursor, at uint64) Entry {
	return Entry{Name: c.name, At: at, Frame: p.p.first}
}
func (c *Cursor) final(p *partCursor, at uint64) Entry {
	return Entry{c.name, at, p.last, math.MaxUint32}
}

// begin returns where the entries of a part begin at the earliest.
func (c *Cursor) begin(p *partCursor) Entry {
	if c.back {
		return c.final(p, p.span.greatest)
	}
	return c.first(p, p.span.least)
}

// end returns where they end at the latest.
func (c *Cursor) end(p *partCursor) Entry {
	if c.back {
		return c.first(p, p.span.least)
	}
	return c.final(p, p.span.greatest)
}

// Skip leaves out the entries with a lesser At in the segments whose frames are all up to last.
func (c *Cursor) Skip(at, last uint64) {
	for i := range c.parts {
		if p := &c.parts[i]; p.last <= last {
			p.span.least = max(p.span.least, at)
		}
	}
	c.sort()
}

// Seek moves to the first entry with this At, or to the next in the cursor's direction.
func (c *Cursor) Seek(at uint64) {
	for i := range c.parts {
		c.seek(&c.parts[i], at)
	}
}

func (c *Cursor) seek(p *partCursor, at uint64) {
	to := c.first(p, max(at, p.span.least))
	if c.back {
		to = c.final(p, min(at, p.span.greatest))
	}
	n := len(p.buf)
	if p.read && c.compare(p.start, to) <= 0 && (p.done || n > 0 && c.compare(p.buf[n-1], to) >= 0) {
		p.i = sort.Search(n, func(i int) bool { return c.compare(p.buf[i], to) >= 0 })
		return
	}
	p.buf, p.i, p.start, p.from, p.read = p.buf[:0], 0, to, to, false
	p.done = to.At < p.span.least || to.At > p.span.greatest
}

// compare compares entries of the cursor's name in its direction.
func (c *Cursor) compare(a, b Entry) int {
	if c.back {
		a, b = b, a
	}
	return compare(a, b)
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
	parts:
		for i := range c.parts {
			p := &c.parts[i]
			e := p.from
			switch {
			case p.i < len(p.buf):
				e = p.buf[p.i]
			case p.done:
				continue
			}
			if best != nil && c.compare(c.begin(p), least) > 0 {
				break parts // the others begin later too
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
	p.buf, p.read, p.done = p.buf[:0], true, true
	var more bool
	p.buf, more, err = p.p.near(p.from, c.end(p), c.back, p.buf, &c.block)
	if err != nil {
		if err = c.x.mend(p.part, p.p, err); err == nil {
			p.buf, more, err = p.p.near(p.from, c.end(p), c.back, nil, &c.block)
		}
	}
	if len(p.buf) == 0 || err != nil {
		p.read = err == nil
		return err
	}
	p.done, p.from = !more, p.buf[len(p.buf)-1]
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

// Find appends to dst the entries with this At, in the order of the frames. It reads only the segments that can have
// some. Seek must be called before the next Group or Next.
func (c *Cursor) Find(at uint64, dst []Entry) ([]Entry, error) {
	start := len(dst)
	for i := range c.parts {
		p := &c.parts[i]
		if at < p.span.least || at > p.span.greatest {
			continue
		}
		for c.seek(p, at); p.i < len(p.buf) || !p.done && p.from.At == at; {
			if p.i == len(p.buf) {
				if err := c.fill(p); err != nil {
					return dst, c.x.c.Health.Read(err)
				}
				continue
			}
			if p.buf[p.i].At != at {
				break
			}
			dst = append(dst, p.buf[p.i])
			p.i++
		}
	}
	slices.SortFunc(dst[start:], compare)
	return dst, c.x.c.Health.Stopped()
}
