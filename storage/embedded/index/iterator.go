package index

import (
	"bytes"
	"cmp"

	"github.com/RaduBerinde/btreemap"
	"github.com/cockroachdb/pebble/v2"
)

type order int

const (
	ascending  order = 1
	descending order = -1
)

// Iterator reads the keys of one moment in order. It must be closed.
type Iterator struct {
	health Health

	pebble  *pebble.Iterator
	cursors []*cursor // cursors of the tail, the newest first
	order   order
	stored  bool    // pebble is at a key
	current *cursor // cursor at the current key; nil if pebble is at that key
	valid   bool    // whether there is a current key
}

type cursor struct {
	memtable     *memtable
	lower, upper []byte // nil for no bound
	order        order
	buf          []kv
	i            int
	done         bool // whether the memtable has no key after buf
}

const cursorRows = 32

func (c *cursor) valid() bool { return c.i < len(c.buf) }

func (c *cursor) next() {
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

func (c *cursor) seek(from []byte, o order) {
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

func (c *cursor) fill(lower btreemap.LowerBound[string]) {
	c.buf, c.i = c.buf[:0], 0
	upper := btreemap.Max[string]()
	if c.upper != nil {
		upper = btreemap.LT(string(c.upper))
	}
	c.memtable.keys.AscendFunc(lower, upper, c.take)
	c.done = len(c.buf) < cursorRows
}

func (c *cursor) fillBack(upper btreemap.UpperBound[string]) {
	c.buf, c.i = c.buf[:0], 0
	c.memtable.keys.DescendFunc(upper, btreemap.GE(string(c.lower)), c.take)
	c.done = len(c.buf) < cursorRows
}

func (c *cursor) take(k, v string) bool {
	c.buf = append(c.buf, kv{k, v})
	return len(c.buf) < cursorRows
}

// newIterator returns an iterator over memtables, the newest first, and over p. p must be created
// after the memtables were taken.
func newIterator(h Health, memtables []*memtable, p *pebble.Iterator, o *pebble.IterOptions) *Iterator {
	it := &Iterator{health: h, pebble: p}
	for _, t := range memtables {
		c := &cursor{memtable: t}
		if o != nil {
			c.lower, c.upper = o.LowerBound, o.UpperBound
		}
		it.cursors = append(it.cursors, c)
	}
	return it
}

// first moves to the first key and reports whether there is one.
func (it *Iterator) first() bool { return it.start(nil, ascending, it.pebble.First()) }

// last moves to the last key.
func (it *Iterator) last() bool { return it.start(nil, descending, it.pebble.Last()) }

// seekGE moves to the first key that is not less than k.
func (it *Iterator) seekGE(k []byte) bool { return it.start(k, ascending, it.pebble.SeekGE(k)) }

func (it *Iterator) start(from []byte, o order, stored bool) bool {
	it.order, it.stored = o, stored
	for _, c := range it.cursors {
		c.seek(from, o)
	}
	return it.settle()
}

// settle finds the current key. That is the least of the cursors' next keys, or the greatest in
// descending order.
func (it *Iterator) settle() bool {
	it.current, it.valid = nil, it.stored
	for _, c := range it.cursors {
		if c.valid() && (!it.valid || it.before(c.buf[c.i].k)) {
			it.current, it.valid = c, true
		}
	}
	return it.valid
}

// before reports whether k comes before the current key. before is also true if k equals the
// current key and Pebble is at that key, because memory has the newer value.
func (it *Iterator) before(k string) bool {
	c := int(it.order) * cmp.Compare(k, string(it.key()))
	return c < 0 || c == 0 && it.current == nil
}

// next moves to the next key in the iterator's direction.
func (it *Iterator) next() bool {
	if !it.valid {
		return false
	}
	if len(it.cursors) == 0 {
		it.stored = it.step()
		it.valid = it.stored
		return it.valid
	}
	k := string(it.key())
	for _, c := range it.cursors {
		if c.valid() && c.buf[c.i].k == k {
			c.next()
		}
	}
	if it.stored && string(it.pebble.Key()) == k {
		it.stored = it.step()
	}
	return it.settle()
}

func (it *Iterator) step() bool {
	if it.order == descending {
		return it.pebble.Prev()
	}
	return it.pebble.Next()
}

// key returns the current key. The key is valid until the iterator moves.
func (it *Iterator) key() []byte {
	if it.current != nil {
		return []byte(it.current.buf[it.current.i].k)
	}
	return it.pebble.Key()
}

// value returns the current value. The value is valid until the iterator moves.
func (it *Iterator) value() ([]byte, error) {
	if it.current != nil {
		return []byte(it.current.buf[it.current.i].v), nil
	}
	return it.pebble.ValueAndErr()
}

// Close releases the iterator.
func (it *Iterator) Close() error { return it.pebble.Close() }

// Seek returns the value of a key and whether the key exists. The value is valid until the iterator
// moves.
func (it *Iterator) Seek(k []byte) (v []byte, found bool, err error) {
	return it.read(it.seekGE(k) && bytes.Equal(it.key(), k))
}

// Next returns the value of the key after the current one, if that key is k.
func (it *Iterator) Next(k []byte) (v []byte, found bool, err error) {
	return it.read(it.next() && bytes.Equal(it.key(), k))
}

func (it *Iterator) read(found bool) (v []byte, _ bool, err error) {
	if err = it.pebble.Error(); found && err == nil {
		v, err = it.value()
	}
	return v, found, it.health.Read(err)
}

// Iter returns an iterator over all keys.
func (x *Index) Iter() (*Iterator, error) { return x.iterator(x.c.DB, nil, x.tail.snapshot(nil)) }

// iterator returns an iterator over memtables and state. The memtables must be taken before the
// state is read, because keys may move from memory to Pebble in between.
func (x *Index) iterator(state pebble.Reader, o *pebble.IterOptions, memtables []*memtable) (*Iterator, error) {
	if err := x.c.Health.Stopped(); err != nil {
		return nil, err
	}
	p, err := state.NewIter(o)
	if err != nil {
		return nil, x.c.Health.Read(err)
	}
	return newIterator(x.c.Health, memtables, p, o), nil
}
