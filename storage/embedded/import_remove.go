package embedded

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"writ/storage"
)

// CountImported implements storage.Importer.
func (s *Store) CountImported(ctx context.Context, org string) (n storage.Imported, err error) {
	if err := checkOrg(org); err != nil {
		return n, err
	}
	s.writes.Lock() // no row is removed in between
	defer s.writes.Unlock()
	tip, err := s.Tip(ctx)
	if err != nil {
		return n, err
	}
	err = s.eachImported(ctx, org, tip.ID, &n, func(string, uuid.UUID, *storage.Record) bool { return true })
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
	b := &batch{b: s.db.NewBatch()}
	var n storage.Imported
	err := s.eachImported(ctx, org, s.tip.ID, &n, func(intent string, id uuid.UUID, r *storage.Record) bool {
		b.delete(orgKey(kindIntent, org).text(intent))
		if r != nil {
			b.delete(recordKey(org, id))
			b.delete(settlementKey(org, id))
			b.delete(byDecisionKey(org, r.Decision).id(id))
		}
		return n.All() < most
	})
	if err == nil {
		err = n.Removable()
	}
	if err != nil || n.All() == 0 {
		return 0, errors.Join(err, b.b.Close())
	}
	return n.All(), s.finish(b)
}

// eachImported calls f for each row of org that is of another chain than the store's, and
// with a nil record for each tombstone of one, until f returns false. It counts them.
func (s *Store) eachImported(
	ctx context.Context, org string, chain [16]byte, n *storage.Imported, f func(intent string, id uuid.UUID, r *storage.Record) bool,
) error {
	own := func(of [16]byte) bool { return of == chain }
	prefix := orgKey(kindIntent, org)
	return s.scan(ctx, prefix, prefix.end(), func(k, v []byte) (bool, error) {
		intent := string(k[len(prefix):])
		id, left, imported, err := parseIntent(v, chain)
		if err != nil {
			return true, err
		}
		if len(left) > 0 {
			return n.AddRemoved(&storage.Tombstone{Leaves: left, Imported: imported}, own) && !f(intent, id, nil), nil
		}
		r, err := s.record(org, id)
		if err != nil {
			return true, err
		}
		foreign, err := n.AddRow(r, own)
		return foreign && !f(intent, id, r), err
	})
}
