package embedded

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/embedded/segment"
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

// allowedAtOnce is how many rows Allowed reads before it yields. It takes about a millisecond.
const allowedAtOnce = 256

// Allowed implements storage.Journal.
func (s *Store) Allowed(
	ctx context.Context, org string, from time.Time, upTo uint64, yield func(), f func(*storage.Record) error,
) error {
	if err := checkOrg(org); err != nil {
		return err
	}
	q, n, view := of(org), 0, s.until(upTo)
	q.decision, q.from = engine.Allow, storage.IDAt(from.Add(-storage.MaxSkew))
	q.filter = &storage.Filter{Decision: engine.Allow, From: from}
	return view.rows(ctx, q, func(row *row) (bool, error) {
		if n++; n%allowedAtOnce == 0 {
			yield()
		}
		r, err := s.bare(row, q.filter)
		if err == nil && r != nil {
			err = f(r)
		}
		return false, err
	})
}

// until returns the view of the rows in frames up to a position.
func (s *Store) until(upTo uint64) rowView {
	v := s.now()
	v.upTo = upTo
	return v
}

// bare reads a row and its settlement without receipts. It returns nil if the filter does not select the row.
func (s *Store) bare(row *row, filter *storage.Filter) (*storage.Record, error) {
	if row.skipped {
		return nil, nil //nolint:nilnil // the filter does not select the row
	}
	r, err := parseRecord(row.it.org, row.it.id, row.it.body, filter)
	if r == nil || err != nil || row.settled.frame == 0 {
		return r, err
	}
	_, settled, err := s.at(row.settled)
	if err != nil {
		return nil, err
	}
	return r, parseSettlement(r, settled.body)
}

// Since implements storage.Journal.
func (s *Store) Since(
	ctx context.Context, after, upTo uint64, wanted func(org string) bool, f func(r *storage.Record, settled bool),
) error {
	var room segment.Room
	for number := after + 1; number <= upTo; number++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		stored, err := s.log.Frame(number, &room)
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
		r, err := parseRecord(it.org, it.id, it.body, &filter)
		if r != nil && err == nil {
			f(r, false)
		}
		return err
	}
	row, err := s.until(upTo).find(it.org, it.id)
	if errors.Is(err, storage.ErrNotFound) { // retention has removed it in between
		return nil
	}
	if err != nil {
		return err
	}
	r, err := s.bare(&row, &filter)
	if err == nil && r != nil && r.Settlement != nil {
		f(r, true)
	}
	return err
}

// Derived implements storage.Journal.
func (s *Store) Derived(k []byte) ([]byte, error) {
	return s.get(derivedKey('v', k...))
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
