package embedded

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"github.com/go-json-experiment/json"

	"writ/storage"
)

// get returns a copy of the value at k, or storage.ErrNotFound.
func (s *Store) get(k key) (v []byte, err error) {
	if err := s.health.stopped(); err != nil {
		return nil, err
	}
	if v, found := s.tail.get(k); found {
		return []byte(v), nil
	}
	it, err := s.iterOf(s.db, nil) // what was moved there in between is found
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	v, err = s.seek(it, k)
	return append([]byte{}, v...), err
}

// newIter returns an iterator over the present rows. The caller must close it.
func (s *Store) newIter(o *pebble.IterOptions) (*iterator, error) {
	return s.iterOf(s.db, o, s.tail.snapshot(o)...)
}

// rows are those of the store, or of the store with an uncommitted batch.
type rows interface {
	NewIter(o *pebble.IterOptions) (*pebble.Iterator, error)
}

// iterOf is newIter for r, which must be read after trees were.
func (s *Store) iterOf(r rows, o *pebble.IterOptions, trees ...*tree) (*iterator, error) {
	if err := s.health.stopped(); err != nil {
		return nil, err
	}
	it, err := r.NewIter(o)
	if err != nil {
		s.health.report(reading, err)
		return nil, fmt.Errorf("%w: reading: %w", storage.ErrUnavailable, err)
	}
	return newIterator(trees, it, o), nil
}

// seek returns the value at k, valid until it moves, or storage.ErrNotFound.
func (s *Store) seek(it *iterator, k key) (v []byte, err error) {
	v, found, err := s.lookUp(it, k)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: reading: %w", storage.ErrUnavailable, err)
	case !found:
		return nil, storage.ErrNotFound
	}
	return v, nil
}

// lookUp returns the value at k, valid until it moves, and whether it exists.
func (s *Store) lookUp(it *iterator, k key) (v []byte, found bool, err error) {
	found = it.SeekPrefixGE(k)
	if err = it.Error(); found {
		v, err = it.ValueAndErr()
	}
	s.health.report(reading, err)
	return v, found, err
}

// readPanic turns a panic into an error.
func readPanic(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("reading a damaged file: %v", p)
	}
}

// count reads an 8-byte number, 0 if the key does not exist.
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

// scan calls f for the rows from lower up to upper until f stops it. The slices are valid
// only during the call.
func (s *Store) scan(ctx context.Context, lower, upper key, f func(k, v []byte) (stop bool, err error)) error {
	return s.iterate(ctx, lower, upper, (*iterator).First, f)
}

// scanBack is scan from the last row to the first.
func (s *Store) scanBack(ctx context.Context, lower, upper key, f func(k, v []byte) (stop bool, err error)) error {
	return s.iterate(ctx, lower, upper, (*iterator).Last, f)
}

func (s *Store) iterate(
	ctx context.Context, lower, upper key, first func(*iterator) bool,
	f func(k, v []byte) (stop bool, err error),
) (err error) {
	it, err := s.newIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	return s.each(ctx, it, first, f)
}

// each calls f for the rows of it.
func (s *Store) each(
	ctx context.Context, it *iterator, first func(*iterator) bool,
	f func(k, v []byte) (stop bool, err error),
) error {
	for ok := first(it); ok; ok = it.Next() {
		if err := ctx.Err(); err != nil {
			return err
		}
		v, err := it.ValueAndErr()
		if err != nil {
			s.health.report(reading, err)
			return fmt.Errorf("%w: reading: %w", storage.ErrUnavailable, err)
		}
		if stop, err := f(it.Key(), v); stop || err != nil {
			return err
		}
	}
	s.health.report(reading, it.Error())
	if err := it.Error(); err != nil {
		return fmt.Errorf("%w: reading: %w", storage.ErrUnavailable, err)
	}
	return nil
}

// newBatch returns an empty batch.
func (s *Store) newBatch() *batch { return &batch{b: s.db.NewBatch()} }

// batch collects the changes of one write. Its methods keep the first error.
type batch struct {
	b     *pebble.Batch
	chain [16]byte // the directory's, if rows are removed
	err   error
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

// deleteRange deletes the keys from lower up to upper, without that.
func (b *batch) deleteRange(lower, upper key) {
	if b.err == nil {
		b.err = b.b.DeleteRange(lower, upper, nil)
	}
}

// document puts doc as JSON.
func (b *batch) document(k key, doc any) {
	v, err := json.Marshal(doc, json.Deterministic(true))
	if err != nil {
		b.err = errors.Join(b.err, fmt.Errorf("encoding %T: %w", doc, err))
		return
	}
	b.set(k, v)
}

func (b *batch) number(k key, n int64) {
	b.set(k, binary.BigEndian.AppendUint64(nil, uint64(n)))
}

// apply makes b durable. A failure stops the store, because it is unknown how much of b
// the log holds. A batch that is not applied need not be closed.
func (s *Store) apply(b *batch) error {
	if b.err != nil || b.b.Empty() {
		return b.err
	}
	if err := b.b.Commit(pebble.Sync); err != nil {
		s.health.stop("writing a batch", err)
	}
	// Pebble was told that the write succeeded even if it failed: see failStopFS.
	if err := s.health.stopped(); err != nil {
		return err
	}
	return b.b.Close()
}

// finish makes b durable as the next write of changeStream. writes is held.
func (s *Store) finish(b *batch) error {
	b.link(changeStream, s.change+1)
	err := s.apply(b)
	if err == nil {
		s.change++
	}
	return err
}
