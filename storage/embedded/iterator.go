package embedded

import (
	"cmp"

	"github.com/RaduBerinde/btreemap"
	"github.com/cockroachdb/pebble/v2"
)

// order is the direction in which keys are read.
type order int

const (
	ascending  order = 1
	descending order = -1
)

// iterator iterates over the keys of Pebble and of the tail. After First, Last or a Seek
// it moves in one direction. It must be closed.
type iterator struct {
	p     *pebble.Iterator
	cs    []*cursorOf // of the tail, the newest first
	order order
	atP   bool      // p is valid
	at    *cursorOf // that has the current key, nil if p has it
	valid bool
}

// cursorOf is a position in a tree.
type cursorOf struct {
	tree         *tree
	lower, upper []byte // nil for no bound
	order        order
	buf          []kv
	i            int
	done         bool // nothing follows buf
}

const cursorRows = 32

func (c *cursorOf) valid() bool { return c.i < len(c.buf) }

func (c *cursorOf) next() {
	if c.i++; c.i < len(c.buf) || c.done || len(c.buf) == 0 {
		return
	}
	last := c.buf[len(c.buf)-1].k
	if c.order == descending {
		c.fillBack(btreemap.LT(last))
	} else {
		c.fill(btreemap.GT(last))
	}
}

func (c *cursorOf) seek(from []byte, o order) {
	if c.order = o; o == descending {
		upper := btreemap.Max[string]()
		if c.upper != nil {
			upper = btreemap.LT(string(c.upper))
		}
		c.fillBack(upper)
		return
	}
	lower := btreemap.GE(max(string(from), string(c.lower)))
	c.fill(lower)
}

func (c *cursorOf) fill(lower btreemap.LowerBound[string]) {
	c.buf, c.i = c.buf[:0], 0
	upper := btreemap.Max[string]()
	if c.upper != nil {
		upper = btreemap.LT(string(c.upper))
	}
	c.tree.keys.AscendFunc(lower, upper, c.take)
	c.done = len(c.buf) < cursorRows
}

func (c *cursorOf) fillBack(upper btreemap.UpperBound[string]) {
	c.buf, c.i = c.buf[:0], 0
	c.tree.keys.DescendFunc(upper, btreemap.GE(string(c.lower)), c.take)
	c.done = len(c.buf) < cursorRows
}

func (c *cursorOf) take(k, v string) bool {
	c.buf = append(c.buf, kv{k, v})
	return len(c.buf) < cursorRows
}

// newIterator returns an iterator over trees, the newest first, and p, which must be newer.
func newIterator(trees []*tree, p *pebble.Iterator, o *pebble.IterOptions) *iterator {
	it := &iterator{p: p}
	for _, t := range trees {
		c := &cursorOf{tree: t}
		if o != nil {
			c.lower, c.upper = o.LowerBound, o.UpperBound
		}
		it.cs = append(it.cs, c)
	}
	return it
}

// First moves to the first key and reports whether there is one.
func (it *iterator) First() bool { return it.start(nil, ascending, it.p.First()) }

// Last moves to the last key.
func (it *iterator) Last() bool { return it.start(nil, descending, it.p.Last()) }

// SeekGE moves to the first key that is not less than k.
func (it *iterator) SeekGE(k []byte) bool { return it.start(k, ascending, it.p.SeekGE(k)) }

// SeekPrefixGE moves to k, using filters, and reports whether it exists.
func (it *iterator) SeekPrefixGE(k []byte) bool {
	it.at = nil
	for _, c := range it.cs {
		if v, found := c.tree.get(k); found {
			c.buf, c.i, c.done = append(c.buf[:0], kv{string(k), v}), 0, true
			it.at, it.valid = c, true
			return true
		}
	}
	it.atP = it.p.SeekPrefixGE(k)
	it.valid = it.atP
	return it.valid
}

func (it *iterator) start(from []byte, o order, atP bool) bool {
	it.order, it.atP = o, atP
	for _, c := range it.cs {
		c.seek(from, o)
	}
	return it.settle()
}

// settle finds the current key: the least, or the greatest, of the next keys.
func (it *iterator) settle() bool {
	it.at, it.valid = nil, it.atP
	for _, c := range it.cs {
		if c.valid() && (!it.valid || it.before(c.buf[c.i].k)) {
			it.at, it.valid = c, true
		}
	}
	return it.valid
}

// before reports whether k comes before the current key, or is the same one in Pebble.
func (it *iterator) before(k string) bool {
	c := int(it.order) * cmp.Compare(k, string(it.Key()))
	return c < 0 || c == 0 && it.at == nil
}

// Next moves to the next key, after Last to the one before.
func (it *iterator) Next() bool {
	if !it.valid {
		return false
	}
	if len(it.cs) == 0 {
		it.atP = it.step()
		it.valid = it.atP
		return it.valid
	}
	k := string(it.Key())
	for _, c := range it.cs {
		if c.valid() && c.buf[c.i].k == k {
			c.next()
		}
	}
	if it.atP && string(it.p.Key()) == k {
		it.atP = it.step()
	}
	return it.settle()
}

func (it *iterator) step() bool {
	if it.order == descending {
		return it.p.Prev()
	}
	return it.p.Next()
}

// Key returns the current key, valid until the iterator moves.
func (it *iterator) Key() []byte {
	if it.at != nil {
		return []byte(it.at.buf[it.at.i].k)
	}
	return it.p.Key()
}

// ValueAndErr returns the current value, valid until the iterator moves.
func (it *iterator) ValueAndErr() ([]byte, error) {
	if it.at != nil {
		return []byte(it.at.buf[it.at.i].v), nil
	}
	return it.p.ValueAndErr()
}

// Error returns what kept the iterator from reading.
func (it *iterator) Error() error { return it.p.Error() }

// Close releases the iterator.
func (it *iterator) Close() error { return it.p.Close() }
