package embedded

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"writ.example/writ/storage"
	"writ.example/writ/storage/embedded/index"
)

// readPanic turns a panic into an error.
func readPanic(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("reading a damaged file: %v", p)
	}
}

// get returns a copy of the value of a key, or storage.ErrNotFound.
func (s *Store) get(k key) ([]byte, error) { return s.getIn(s.state, k) }

// getIn is like get, but reads a state of Pebble, for example a batch.
func (s *Store) getIn(state pebble.Reader, k key) ([]byte, error) {
	if err := s.health.Stopped(); err != nil {
		return nil, err
	}
	v, closer, err := state.Get(k)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, cmp.Or(s.health.Read(nil), storage.ErrNotFound)
	}
	if err == nil {
		v = bytes.Clone(v)
		err = closer.Close()
	}
	return v, s.health.Read(err)
}

// count reads an 8-byte number. It returns 0 if the key does not exist.
func (s *Store) count(k key) (int64, error) {
	v, err := s.get(k)
	if errors.Is(err, storage.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	if len(v) != 8 {
		return 0, fmt.Errorf("decoding a stored number of %d bytes", len(v))
	}
	return int64(binary.BigEndian.Uint64(v)), nil
}

// visit takes a key and its value. Both are valid only during the call. If visit returns stop or an
// error, the scan ends.
type visit func(k, v []byte) (stop bool, err error)

// scan calls f in order for the keys from lower up to upper. It includes lower and excludes upper.
func (s *Store) scan(ctx context.Context, lower, upper key, f visit) error {
	return s.scanIn(ctx, s.state, lower, upper, f)
}

// scanIn is like scan, but reads a state of Pebble, for example a batch.
func (s *Store) scanIn(ctx context.Context, state pebble.Reader, lower, upper key, f visit) (err error) {
	if err := s.health.Stopped(); err != nil {
		return err
	}
	it, err := state.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		return s.health.Read(err)
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for ok := it.First(); ok; ok = it.Next() {
		if err := ctx.Err(); err != nil {
			return err
		}
		v, err := it.ValueAndErr()
		if err != nil {
			return s.health.Read(err)
		}
		if stop, err := f(it.Key(), v); stop || err != nil {
			return err
		}
	}
	return s.health.Read(it.Error())
}

// scanPrefix calls f for the rows whose keys begin with prefix. f gets the keys without the prefix.
func (s *Store) scanPrefix(ctx context.Context, prefix key, f visit) error {
	return s.scan(ctx, prefix, prefix.end(), func(k, v []byte) (bool, error) { return f(k[len(prefix):], v) })
}

// scanKind calls f for the rows of a kind. rest is the key after the organization.
func (s *Store) scanKind(ctx context.Context, k kind, f func(org string, rest, v []byte) error) error {
	org := ""
	return s.scan(ctx, key{byte(k)}, key{byte(k) + 1}, func(k, v []byte) (bool, error) {
		of, rest, err := position(k)
		if err != nil {
			return true, err
		}
		if string(of) != org {
			org = string(of)
		}
		return false, f(org, rest, v)
	})
}

// position splits a key into its organization and the rest. The first byte of the key is left out.
func position(k []byte) (org, rest []byte, err error) {
	if org, rest, err = splitOrg(k[min(1, len(k)):]); err != nil {
		err = &storage.BreakError{Err: err}
	}
	return org, rest, err
}

// newBatch returns an empty batch.
func (s *Store) newBatch() *batch { return &batch{b: s.db.NewBatch()} }

// batch collects the changes of one write. err is the first error of its methods.
type batch struct {
	b     *pebble.Batch
	chain [16]byte // the chain of the directory; set if rows are removed
	// counts are added to the stored ones. They are summed up here, because Pebble keeps each addition
	// until it compacts the key, and a read adds them all.
	counts map[string]*index.Sums
	err    error
}

// reset removes everything that was added to b.
func (b *batch) reset() {
	b.b.Reset()
	b.counts = nil
}

func (b *batch) set(k key, v []byte) {
	if b.err == nil {
		b.err = b.b.Set(k, v, nil)
	}
}

func (b *batch) delete(k key) {
	if b.err == nil {
		b.err = b.b.Delete(k, nil)
	}
}

// deleteRange deletes the keys from lower up to upper. It includes lower and excludes upper.
func (b *batch) deleteRange(lower, upper key) {
	if b.err == nil {
		b.err = b.b.DeleteRange(lower, upper, nil)
	}
}

func (b *batch) number(k key, n int64) {
	b.set(k, binary.BigEndian.AppendUint64(nil, uint64(n)))
}

// apply makes b durable. A batch that is not applied need not be closed.
func (s *Store) apply(b *batch) error {
	s.mergeCounts(b)
	if b.err != nil || b.b.Empty() {
		return b.err
	}
	if err := b.b.Commit(pebble.Sync); err != nil {
		s.health.Stop("writing a batch", err)
	}
	// failStopFS told Pebble that the write succeeded, even if the write failed.
	if err := s.health.Stopped(); err != nil {
		return err
	}
	return b.b.Close()
}

// finish makes b durable as the next write of changeStream. The caller holds writes.
func (s *Store) finish(b *batch) error {
	b.mark(changeStream, s.change+1)
	err := s.apply(b)
	if err == nil {
		s.change++
	}
	return err
}
