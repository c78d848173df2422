package embedded

import (
	"context"
	"errors"
	"math"

	"github.com/google/uuid"

	"writ.example/writ/storage"
)

// CountImported implements storage.Importer.
func (s *Store) CountImported(ctx context.Context, org string) (n storage.Imported, err error) {
	if err := checkOrg(org); err != nil {
		return n, err
	}
	s.writes.Lock() // so that no row is removed in between
	defer s.writes.Unlock()
	tip, err := s.Tip(ctx)
	if err != nil {
		return n, err
	}
	err = s.eachImported(ctx, org, tip.ID, &n, func(string, uuid.UUID, *row) (bool, error) { return true, nil })
	return n, err
}

// RemoveImported implements storage.Importer.
func (s *Store) RemoveImported(ctx context.Context, org string, most int) (int, error) {
	if err := errors.Join(ctx.Err(), checkOrg(org)); err != nil {
		return 0, err
	}
	s.writes.Lock()
	defer s.writes.Unlock()
	s.commits.Lock()
	defer s.commits.Unlock()
	if err := s.health.writable(); err != nil {
		return 0, err
	}
	var (
		n     storage.Imported
		items [][]byte
		b     = s.newBatch()
		freed = make(garbage)
	)
	err := s.eachImported(ctx, org, s.tip.ID, &n, func(intent string, id uuid.UUID, r *row) (bool, error) {
		items = append(items, ofIntent(abandonedItem, org, intent, id, nil))
		err := s.abandon(b, &item{kind: abandonedItem, org: org, intent: intent, id: id}, math.MaxUint64)
		if r != nil {
			err = errors.Join(err, freed.add(s, r))
		}
		return n.All() < most, err
	})
	if err == nil {
		err = n.Removable()
	}
	if err == nil {
		err = s.addGarbage(b, freed)
	}
	if err != nil || n.All() == 0 {
		return 0, err
	}
	stored, err := s.writeImport(items)
	if err == nil {
		err = s.keepWith(b, stored.Number, s.finish)
	}
	if err == nil {
		err = s.tables.AddFrame(stored)
	}
	if err != nil {
		return 0, err
	}
	s.rewriteLater()
	return n.All(), nil
}

// eachImported calls f for each imported row of org and each imported tombstone, which has no row, until f returns
// false. It counts them in n. A row is imported if its head is in another chain than the chain of
// the store.
func (s *Store) eachImported(
	ctx context.Context, org string, chain [16]byte, n *storage.Imported,
	f func(intent string, id uuid.UUID, r *row) (more bool, err error),
) error {
	own, more := func(of [16]byte) bool { return of == chain }, true
	err := s.now().rows(ctx, of(org), func(row *row) (bool, error) {
		r, err := s.readRow(row, nil)
		if err != nil {
			return true, err
		}
		if foreign, err := n.AddRow(r, own); !foreign || err != nil {
			return false, err
		}
		more, err = f(r.IntentKey(), row.it.id, row)
		return !more, err
	})
	if err != nil || !more {
		return err
	}
	return s.scanPrefix(ctx, orgKey(kindIntent, org), func(name, v []byte) (bool, error) {
		id, left, imported, err := parseIntent(v, chain)
		if err != nil || !n.AddRemoved(&storage.Tombstone{Leaves: left, Imported: imported}, own) {
			return false, err
		}
		more, err := f(string(name), id, nil)
		return !more, err
	})
}
