package embedded

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/google/uuid"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/embedded/index"
)

var _ storage.Journal = (*Store)(nil)

// A position is the number of a frame. Derived values have the keys
//
//	'W' 'v' key     value
//	'W' 'n'         the number of the last write: 8 bytes
//	'W' 'm' n(8)    its mark
//
// Each write deletes the mark of the write before: see streams.go. Open drops all values if writes are missing.

func derivedKey(part byte, rest ...byte) key { return append(key{byte(kindDerived), part}, rest...) }

func derivedMark(n uint64) key { return binary.BigEndian.AppendUint64(derivedKey('m'), n) }

// derivedWrites returns the number of the last write of derived values, and whether no write is missing.
func (s *Store) derivedWrites() (n uint64, whole bool, err error) {
	last, err := s.count(derivedKey('n'))
	if err != nil {
		return 0, false, err
	}
	n = uint64(last) //nolint:gosec // it counts
	var marks []key
	err = s.scanPrefix(context.Background(), derivedKey('m'), func(rest, _ []byte) (bool, error) {
		marks = append(marks, derivedKey('m', rest...))
		return false, nil
	})
	return n, len(marks) == 1 && bytes.Equal(marks[0], derivedMark(n)), err
}

// openDerived drops all derived values if a write is missing, of them or of others.
func (s *Store) openDerived(found *inspection) error {
	s.derived.writes = found.derived
	if found.derivedWhole && found.stale == "" && len(found.reasons) == 0 {
		return nil
	}
	b := s.newBatch()
	b.deleteRange(key{byte(kindDerived)}, key{byte(kindDerived) + 1})
	b.number(derivedKey('n'), int64(found.derived)) //nolint:gosec // it counts
	b.set(derivedMark(found.derived), nil)
	return s.apply(b)
}

// Position implements storage.Journal.
func (s *Store) Position(ctx context.Context) (uint64, error) {
	if err := errors.Join(ctx.Err(), s.health.Stopped()); err != nil {
		return 0, err
	}
	s.commits.Lock()
	last := s.log.Last()
	s.commits.Unlock()
	if s.async == nil {
		return last, nil
	}
	return last, s.syncLog()
}

// allowedAtOnce is how many rows Allowed reads from one state of the index. It takes about a millisecond.
const allowedAtOnce = 256

// Allowed implements storage.Journal.
func (s *Store) Allowed(
	ctx context.Context, org string, from time.Time, upTo uint64, yield func(), f func(*storage.Record) error,
) error {
	if err := checkOrg(org); err != nil {
		return err
	}
	prefix := byDecisionKey(org, engine.Allow)
	lower, upper := key(bytes.Clone(prefix)).id(storage.IDAt(from.Add(-storage.MaxSkew))), prefix.end()
	for {
		ids := make([]uuid.UUID, 0, allowedAtOnce)
		err := s.index.Scan(ctx, lower, upper, func(k, _ []byte) (bool, error) {
			id, err := uuid.FromBytes(k[len(prefix):])
			ids = append(ids, id)
			return len(ids) == allowedAtOnce, err
		})
		if err == nil {
			err = s.allowed(org, ids, from, upTo, f)
		}
		if err != nil || len(ids) < allowedAtOnce {
			return err
		}
		lower = append(key(bytes.Clone(prefix)).id(ids[len(ids)-1]), 0)
		yield()
	}
}

// allowed calls f for those of the rows with these ids that [Store.Allowed] is about.
func (s *Store) allowed(
	org string, ids []uuid.UUID, from time.Time, upTo uint64, f func(*storage.Record) error,
) (err error) {
	it, err := s.index.Iter()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	filter := storage.Filter{Decision: engine.Allow, From: from}
	for _, id := range ids {
		r, err := s.bareRow(it, org, id, upTo, &filter)
		if err == nil && r != nil {
			err = f(r)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// bareRow returns a row and its settlement without receipts, as they were at a position. It returns nil if the row
// was not there, or if the filter does not select it.
func (s *Store) bareRow(
	it *index.Iterator, org string, id uuid.UUID, upTo uint64, filter *storage.Filter,
) (*storage.Record, error) {
	k := recordKey(org, id)
	v, found, err := it.Seek(k)
	if !found || err != nil { // retention has removed it in between
		return nil, err
	}
	row, err := s.itemUpTo(v, recordItem, upTo)
	if row.kind == 0 || err != nil {
		return nil, err
	}
	r, err := parseRecord(org, id, []byte(row.body), filter)
	if r == nil || err != nil {
		return nil, err
	}
	if v, found, err = it.Next(append(k, settlementMark)); !found || err != nil {
		return r, err
	}
	settled, err := s.itemUpTo(v, settlementItem, upTo)
	if settled.kind == 0 || err != nil {
		return r, err
	}
	return r, parseSettlement(r, []byte(settled.body))
}

// itemUpTo does what item does. If the item is in a frame after upTo, it returns none.
func (s *Store) itemUpTo(v []byte, kind byte, upTo uint64) (item, error) {
	at, err := parseLocation(v)
	if err != nil || at.frame > upTo {
		return item{}, err
	}
	_, it, _, err := s.item(v, kind)
	return it, err
}

// Since implements storage.Journal.
func (s *Store) Since(
	ctx context.Context, after, upTo uint64, wanted func(org string) bool, f func(r *storage.Record, settled bool),
) error {
	for number := after + 1; number <= upTo; number++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		stored, err := s.log.Frame(number)
		if err != nil {
			return s.health.Read(err)
		}
		for i, b := range stored.Items {
			if err := s.since(b, upTo, wanted, f); err != nil {
				return fmt.Errorf("frame %d, item %d: %w", number, i, err)
			}
		}
	}
	return nil
}

func (s *Store) since(b []byte, upTo uint64, wanted func(string) bool, f func(*storage.Record, bool)) error {
	filter := storage.Filter{Decision: engine.Allow}
	it, err := parseItem(b)
	switch {
	case err != nil:
		return err
	case it.kind == abandonedItem:
		return storage.ErrConflict
	case it.kind != recordItem && it.kind != settlementItem || !wanted(it.org):
		return nil
	case it.kind == recordItem:
		r, err := parseRecord(it.org, it.id, []byte(it.body), &filter)
		if r != nil && err == nil {
			f(r, false)
		}
		return err
	}
	rows, err := s.index.Iter()
	if err != nil {
		return err
	}
	r, err := s.bareRow(rows, it.org, it.id, upTo, &filter)
	if err = errors.Join(err, rows.Close()); err == nil && r != nil && r.Settlement != nil {
		f(r, true)
	}
	return err
}

// Derived implements storage.Journal.
func (s *Store) Derived(k []byte) ([]byte, error) {
	return s.index.GetIn(s.db, derivedKey('v', k...))
}

// Derive implements storage.Journal.
func (s *Store) Derive(ctx context.Context, d storage.Derivation) error {
	if err := errors.Join(ctx.Err(), s.health.writable()); err != nil {
		return err
	}
	s.derived.Lock()
	defer s.derived.Unlock()
	b := s.newBatch()
	for _, r := range d.Drop {
		b.deleteRange(derivedKey('v').text(r[0]), derivedKey('v').text(r[1]))
	}
	for k, v := range d.Set {
		b.set(derivedKey('v').text(k), v)
	}
	n := s.derived.writes + 1
	b.number(derivedKey('n'), int64(n)) //nolint:gosec // it counts
	b.set(derivedMark(n), nil)
	if b.err == nil {
		b.err = b.b.SingleDelete(derivedMark(n-1), nil)
	}
	if b.err != nil {
		return b.err
	}
	// Commits are durable already, so derived values need not be.
	if err := errors.Join(s.db.Apply(b.b, pebble.NoSync), s.health.Stopped()); err != nil {
		return fmt.Errorf("writing derived values: %w", err)
	}
	s.derived.writes = n
	return nil
}
