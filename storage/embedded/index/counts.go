package index

import (
	"encoding/binary"
	"errors"
	"io"

	"github.com/cockroachdb/pebble/v2"
)

// Sums has the numbers of a key of counts.
type Sums [24]int64

// AppendSum appends n at place i to the value of a key of counts. A value is
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

// Merger adds the values of keys of counts. It has the name of Pebble's own merger,
// which joins values, because joined values have the same sums. Therefore a database from before
// the sums can still be opened, and its format be named. It is no pebble.DeletableValueMerger: if the
// sum of a MERGE and an older SET is deleted, the SET comes back, and the compaction panics.
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
