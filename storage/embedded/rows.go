package embedded

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"writ/storage"
)

// get returns a copy of the value at k, or storage.ErrNotFound.
func (s *Store) get(k key) ([]byte, error) {
	if v, found := s.tail.get(k); found {
		return []byte(v), s.health.stopped()
	}
	return s.stored(s.db, k) // what was moved there in between is found
}

// stored returns a copy of the value at k in src, or storage.ErrNotFound.
func (s *Store) stored(src pebble.Reader, k key) ([]byte, error) {
	if err := s.health.stopped(); err != nil {
		return nil, err
	}
	v, closer, err := src.Get(k)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, cmp.Or(s.read(nil), storage.ErrNotFound)
	}
	if err == nil {
		v = bytes.Clone(v)
		err = closer.Close()
	}
	return v, s.read(err)
}

// read reports how a read went, and returns the error of one that failed.
func (s *Store) read(err error) error {
	s.health.report(reading, err)
	if err != nil {
		err = fmt.Errorf("%w: reading: %w", storage.ErrUnavailable, err)
	}
	return err
}

// newIter returns an iterator over the present rows. The caller must close it.
func (s *Store) newIter(o *pebble.IterOptions) (*iterator, error) {
	return s.iterOf(s.db, o, s.tail.snapshot(o))
}

// iterOf returns an iterator over trees and src, which must be read after them.
func (s *Store) iterOf(src pebble.Reader, o *pebble.IterOptions, trees []*tree) (*iterator, error) {
	if err := s.health.stopped(); err != nil {
		return nil, err
	}
	it, err := src.NewIter(o)
	if err != nil {
		return nil, s.read(err)
	}
	return newIterator(trees, it, o), nil
}

// lookUp returns the value at k, valid until it moves, and whether it exists.
func (s *Store) lookUp(it *iterator, k key) (v []byte, found bool, err error) {
	found = it.SeekPrefixGE(k)
	if err = it.Error(); found {
		v, err = it.ValueAndErr()
	}
	return v, found, s.read(err)
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

// below calls f for the rows whose keys begin with prefix, with what follows it, until f stops
// it.
func (s *Store) below(ctx context.Context, prefix key, f func(rest, v []byte) (stop bool, err error)) error {
	return s.scan(ctx, prefix, prefix.end(), func(k, v []byte) (bool, error) { return f(k[len(prefix):], v) })
}

// eachOf calls f for the rows of a kind, with what follows the organization in their keys.
func (s *Store) eachOf(ctx context.Context, k kind, f func(org string, rest, v []byte) error) error {
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

// position splits a key of an organization.
func position(k []byte) (org, rest []byte, err error) {
	if org, rest, err = splitOrg(k[min(1, len(k)):]); err != nil {
		err = &storage.BreakError{Err: err}
	}
	return org, rest, err
}

// scanBack is scan from the last row to the first.
func (s *Store) scanBack(ctx context.Context, lower, upper key, f func(k, v []byte) (stop bool, err error)) error {
	return s.iterate(ctx, lower, upper, (*iterator).Last, f)
}

func (s *Store) iterate(
	ctx context.Context, lower, upper key, first func(*iterator) bool,
	f func(k, v []byte) (stop bool, err error),
) error {
	o := &pebble.IterOptions{LowerBound: lower, UpperBound: upper}
	return s.each(ctx, s.db, o, s.tail.snapshot(o), first, f)
}

// each calls f for the rows of trees and of src, which must be read after them.
func (s *Store) each(
	ctx context.Context, src pebble.Reader, o *pebble.IterOptions, trees []*tree, first func(*iterator) bool,
	f func(k, v []byte) (stop bool, err error),
) (err error) {
	it, err := s.iterOf(src, o, trees)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for ok := first(it); ok; ok = it.Next() {
		if err := ctx.Err(); err != nil {
			return err
		}
		v, err := it.ValueAndErr()
		if err != nil {
			return s.read(err)
		}
		if stop, err := f(it.Key(), v); stop || err != nil {
			return err
		}
	}
	return s.read(it.Error())
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
