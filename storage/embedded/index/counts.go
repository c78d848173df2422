package index

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/RaduBerinde/btreemap"
	"github.com/cockroachdb/pebble/v2"
)

// Sums has the numbers of a key that begins with [Counts].
type Sums [24]int64

// AppendSum appends n at place i to the value of a key that begins with [Counts]. A value is
// *(uvarint(place) varint(n)), and each number of a key is the sum of those at its place.
func AppendSum(v []byte, i int, n int64) []byte {
	return binary.AppendVarint(binary.AppendUvarint(v, uint64(i)), n) //nolint:gosec // it is a place
}

// Add adds the numbers of a value.
func (s *Sums) Add(v []byte) error {
	for len(v) > 0 {
		i, n := binary.Uvarint(v)
		if n <= 0 || i >= uint64(len(s)) {
			return errSums
		}
		v = v[n:]
		sum, n := binary.Varint(v)
		if n <= 0 {
			return errSums
		}
		v = v[n:]
		s[i] += sum
	}
	return nil
}

var errSums = errors.New("stored sums are damaged")

// Value returns the value of s. It is empty if all numbers are 0.
func (s *Sums) Value() (v []byte) {
	for i, n := range s {
		if n != 0 {
			v = AppendSum(v, i, n)
		}
	}
	return v
}

// Merger adds the values of keys that begin with [Counts]. It has the name of Pebble's own merger,
// which joins values, because joined values have the same sums. Therefore a database from before
// the sums can still be opened, and its format be named.
var Merger = &pebble.Merger{
	Name: pebble.DefaultMerger.Name,
	Merge: func(_, v []byte) (pebble.ValueMerger, error) {
		m := new(summing)
		return m, m.sums.Add(v)
	},
}

type summing struct{ sums Sums }

func (m *summing) MergeNewer(v []byte) error { return m.sums.Add(v) }
func (m *summing) MergeOlder(v []byte) error { return m.sums.Add(v) }

func (m *summing) Finish(bool) ([]byte, io.Closer, error) { return m.sums.Value(), nil, nil }

// DeletableFinish deletes a key whose numbers are all 0.
func (m *summing) DeletableFinish(includesBase bool) (v []byte, del bool, c io.Closer, err error) {
	v = m.sums.Value()
	return v, includesBase && len(v) == 0, nil, nil
}

// counters are the sums of a memtable.
type counters struct {
	byKey map[string]*Sums
	// keys has the keys in order, except those that were added since the last read.
	keys  *btreemap.BTreeMap[string, *Sums]
	added []string
	err   error // of the first value that cannot be read
}

func newCounters() counters {
	return counters{byKey: make(map[string]*Sums), keys: btreemap.New[string, *Sums](16, cmp.Compare[string])}
}

func (c *counters) add(row textRow) {
	sums := c.byKey[row.key()]
	if sums == nil {
		sums = new(Sums)
		c.byKey[row.key()] = sums
		c.added = append(c.added, row.key())
	}
	c.err = cmp.Or(c.err, sums.Add([]byte(row.value())))
}

// within returns copies of the sums with keys from lower up to upper.
func (c *counters) within(lower, upper []byte) (found []keySums) {
	for _, k := range c.added {
		c.keys.ReplaceOrInsert(k, c.byKey[k])
	}
	c.added = c.added[:0]
	c.keys.AscendFunc(btreemap.GE(string(lower)), btreemap.LT(string(upper)), func(k string, s *Sums) bool {
		found = append(found, keySums{k, *s})
		return true
	})
	return found
}

type keySums struct {
	k    string
	sums Sums
}

// frozenSums are sums of a memtable up to a frame.
type frozenSums struct {
	frame uint64
	sums  []keySums
}

// counts returns the sums of all memtables with keys from lower up to upper.
func (t *tail) counts(lower, upper []byte) (all []frozenSums, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, of := range t.memtables {
		all = append(all, frozenSums{of.frame, of.counters.within(lower, upper)})
		err = cmp.Or(err, of.counters.err)
	}
	return all, err
}

// Counts calls f with the sums of keys from lower up to upper, which begin with [Counts], as they
// were at one moment. f may get several sums of one key, which count together.
func (x *Index) Counts(ctx context.Context, lower, upper []byte, f func(k []byte, s *Sums) error) (err error) {
	// The memtables come first: what has moved to the database in between is recognized by its frame.
	tail, err := x.tail.counts(lower, upper)
	if err != nil {
		return err
	}
	state := x.c.DB.NewSnapshot()
	defer func() { err = errors.Join(err, state.Close()) }()
	indexed, err := x.indexedIn(state)
	if err != nil {
		return err
	}
	err = x.ScanIn(ctx, state, lower, upper, func(k, v []byte) (bool, error) {
		var sums Sums
		if err := sums.Add(v); err != nil {
			return true, fmt.Errorf("key %x: %w", k, err)
		}
		return false, f(k, &sums)
	})
	for _, of := range slices.Backward(tail) {
		for i := range of.sums {
			if err == nil && of.frame > indexed {
				err = f([]byte(of.sums[i].k), &of.sums[i].sums)
			}
		}
	}
	return err
}
